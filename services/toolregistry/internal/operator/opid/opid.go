// Package opid makes the ids by which an operator's assistant finishes a write that came back unknown: an assistant has no turn
// to repeat, so it sends the same call again with the `op_id` that the call answered.
//
// An op_id is one call and no other. It carries when it was minted, which tool it is for and a digest of the arguments, and is
// authenticated together with the token that it was given to: brought back by another token, to another tool or with another
// argument, it is refused before anything is written. It is the operation id under which the tool's service keeps the write in
// its ledger, so it needs no memory here and any process of the registry takes what another one minted.
//
//	base64url( version 1 ‖ milliseconds 6 ‖ nonce 8 ‖ tool 8 ‖ arguments 16 ‖ MAC 32 )
package opid

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// MaxBytes is the longest text that is looked at.
	MaxBytes = 128
	// Lifetime is how long an op_id is taken back: a day less than the services keep their ledgers.
	Lifetime = 29 * 24 * time.Hour

	version   = 1
	purpose   = "op_id"
	nonceSize = 8
	toolSize  = 8
	argsSize  = 16
	macSize   = 32

	instantEnd = 1 + 6
	nonceEnd   = instantEnd + nonceSize
	toolEnd    = nonceEnd + toolSize
	bodySize   = toolEnd + argsSize
)

// Keys authenticate ids; the principal keys of the process are some.
type Keys interface {
	MAC(purpose string, data []byte) []byte
	Confirms(purpose string, data, mac []byte) bool
}

// Call is what an op_id stands for.
type Call struct {
	// Holder is whom the id is given to, `<kind>:<token>`.
	Holder string
	// Tool is its name.
	Tool string
	// Digest is of the arguments as they were read.
	Digest []byte
}

// Minter mints ids and takes them back. Safe for concurrent use.
type Minter struct {
	keys Keys
	now  func() time.Time
}

// New makes a minter.
func New(keys Keys, now func() time.Time) *Minter { return &Minter{keys, now} }

// Mint answers a new id for a call: two equal calls are two operations.
func (m *Minter) Mint(c Call) string {
	body := make([]byte, bodySize, bodySize+macSize)
	var instant [8]byte
	binary.BigEndian.PutUint64(instant[:], uint64(m.now().UnixMilli()))
	body[0] = version
	copy(body[1:instantEnd], instant[2:])
	_, _ = rand.Read(body[instantEnd:nonceEnd]) // never fails: it ends the program instead
	copy(body[nonceEnd:toolEnd], toolDigest(c.Tool))
	copy(body[toolEnd:bodySize], argsDigest(c.Digest))
	return base64.RawURLEncoding.EncodeToString(append(body, m.mac(body, c.Holder)...))
}

// Check refuses, with class invalid and before anything is written, an id that was not minted for this very call. An id has one
// spelling: what decodes to the same bytes (spare bits, line breaks) would be another operation to a ledger.
func (m *Minter) Check(id string, c Call) error {
	if len(id) > MaxBytes {
		return refused("`op_id` has %d bytes, and none of ours has more than %d.", len(id), MaxBytes)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(sealed) != bodySize+macSize || sealed[0] != version || base64.RawURLEncoding.EncodeToString(sealed) != id {
		return refused("`op_id` is not one that a call of yours answered. Leave it out for a new call.")
	}
	body, mac := sealed[:bodySize], sealed[bodySize:]
	if !m.keys.Confirms(purpose, covered(body, c.Holder), mac) {
		return refused("`op_id` is not one that a call with your token answered. Leave it out for a new call.")
	}
	switch {
	case !bytes.Equal(body[nonceEnd:toolEnd], toolDigest(c.Tool)):
		return refused("`op_id` belongs to a call of another tool, not of `%s`.", c.Tool)
	case !bytes.Equal(body[toolEnd:bodySize], argsDigest(c.Digest)):
		return refused("`op_id` belongs to a call with other arguments. Send exactly those of the call that answered it, or leave `op_id` out for a new call.")
	case m.now().Sub(minted(body)) > Lifetime:
		return refused("`op_id` is older than %d days, and nobody can say any more whether its call landed. Look before you write again, then leave it out.",
			int(Lifetime.Hours()/24))
	default:
		return nil
	}
}

func minted(body []byte) time.Time {
	var instant [8]byte
	copy(instant[2:], body[1:instantEnd])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(instant[:])))
}

// mac covers the holder, whom the id does not name.
func (m *Minter) mac(body []byte, holder string) []byte {
	return m.keys.MAC(purpose, covered(body, holder))
}

func covered(body []byte, holder string) []byte { return append(bytes.Clone(body), holder...) }

func toolDigest(tool string) []byte {
	sum := sha256.Sum256([]byte(tool))
	return sum[:toolSize]
}

func argsDigest(digest []byte) []byte {
	sum := sha256.Sum256(digest)
	return sum[:argsSize]
}

func refused(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...).WithField("op_id").WithReason("OP_ID_REFUSED")
}
