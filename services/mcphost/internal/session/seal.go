package session

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// seal makes the states behind which calls are kept open. Its key lives as long as the session, which is as long as the calls do: a
// state of another server, another seat's own instance or an earlier session opens nothing.
type seal struct {
	aead   cipher.AEAD
	random io.Reader
}

func newSeal(random io.Reader) seal {
	const size = 32
	key := make([]byte, size)
	if _, err := io.ReadFull(random, key); err != nil {
		panic(fmt.Errorf("no randomness: %w", err)) // the system has none: nothing here is safe then
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the size is right
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return seal{aead: aead, random: random}
}

// close seals the number of a kept call until a moment, for whoever repeats the request that it is bound to.
func (s seal) close(kept int64, until time.Time, bound []byte) string {
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := io.ReadFull(s.random, nonce); err != nil {
		panic(fmt.Errorf("no randomness: %w", err))
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(kept))
	plain = binary.BigEndian.AppendUint64(plain, uint64(until.Unix()))
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, bound))
}

// open answers the number, and false for a state that was changed, is not ours, or whose time is over.
func (s seal) open(state string, now time.Time, bound []byte) (kept int64, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(data) < s.aead.NonceSize() {
		return 0, false
	}
	plain, err := s.aead.Open(nil, data[:s.aead.NonceSize()], data[s.aead.NonceSize():], bound)
	const size = 16
	if err != nil || len(plain) != size {
		return 0, false
	}
	until := time.Unix(int64(binary.BigEndian.Uint64(plain[8:])), 0)
	return int64(binary.BigEndian.Uint64(plain)), !now.After(until)
}

// bound answers what a request must repeat to go on: who asks, the method, and the parameters but for those of the round. Blanks and
// the order of members do not count.
func bound(owner, method string, params []wire.Member) []byte {
	rest := wire.Build(wire.Without(params, "_meta", "inputResponses", "requestState"))
	decoder := json.NewDecoder(strings.NewReader(string(rest)))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) == nil {
		if canonical, err := json.Marshal(value); err == nil {
			rest = canonical
		}
	}
	return fmt.Appendf(nil, "%q %q %s", owner, method, rest)
}
