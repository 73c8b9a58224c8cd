// Package sealed encrypts secrets for storage.
//
// Each value is sealed with AES-256-GCM under one key, with its name bound in: a sealed value that is copied to another
// name, or changed by a bit, does not open. What is stored tells which key sealed it, so a wrong key is said to be wrong
// instead of looking like damage.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/bullpenhq/bullpen/libs/config"
)

const (
	keyBytes   = 32
	keyIDBytes = 4
	nonceBytes = 12
	version    = 1
	header     = 1 + keyIDBytes + nonceBytes
)

// Reasons why a value does not open.
var (
	// ErrOtherKey: it was sealed with another key.
	ErrOtherKey = errors.New("sealed with another key")
	// ErrDamaged: it is not what was sealed under this name.
	ErrDamaged = errors.New("not what was sealed under this name")
)

// Box seals and opens. It is safe for concurrent use.
type Box struct {
	aead cipher.AEAD
	id   [keyIDBytes]byte
	mark []byte
}

// NewBox makes a box of a key of 32 bytes, written in base64 or in hex. Its errors do not repeat the key.
func NewBox(key config.Secret) (*Box, error) {
	raw, ok := decode(strings.TrimSpace(key.Reveal()))
	if !ok {
		return nil, fmt.Errorf("must be %d bytes written in base64 or in hex, as `openssl rand -base64 32` prints", keyBytes)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	b := &Box{aead: aead, mark: derive(raw, "bullpen.secret.digest")}
	copy(b.id[:], derive(raw, "bullpen.secret.key-id"))
	return b, nil
}

func decode(text string) ([]byte, bool) {
	for _, try := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if raw, err := try(text); err == nil && len(raw) == keyBytes {
			return raw, true
		}
	}
	return nil, false
}

func derive(key []byte, use string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(use))
	return mac.Sum(nil)
}

// bound is the additional data: what the value is sealed for.
func bound(name string) []byte { return []byte("bullpen.secret.v1\x00" + name) }

// Seal encrypts a value for a name. The same value never seals to the same bytes twice.
func (b *Box) Seal(name, value string) []byte {
	out := make([]byte, header, header+len(value)+b.aead.Overhead())
	out[0] = version
	copy(out[1:], b.id[:])
	nonce := out[1+keyIDBytes : header]
	_, _ = rand.Read(nonce) // ends the process rather than fail
	return b.aead.Seal(out, nonce, []byte(value), bound(name))
}

// Open decrypts what Seal answered for the same name. It fails with [ErrOtherKey] or [ErrDamaged].
func (b *Box) Open(name string, box []byte) (string, error) {
	if len(box) < header || box[0] != version {
		return "", ErrDamaged
	}
	if !hmac.Equal(box[1:1+keyIDBytes], b.id[:]) {
		return "", ErrOtherKey
	}
	value, err := b.aead.Open(nil, box[1+keyIDBytes:header], box[header:], bound(name))
	if err != nil {
		return "", ErrDamaged
	}
	return string(value), nil
}

// Digest answers a keyed hash of a text that holds a secret: equal for equal texts, and no help to whoever would guess them.
func (b *Box) Digest(text []byte) []byte {
	mac := hmac.New(sha256.New, b.mark)
	mac.Write(text)
	return mac.Sum(nil)
}
