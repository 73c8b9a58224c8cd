// Package token makes API tokens and reads them.
//
// A token is 256 random bits in text. It is shown once, when it is made; what is kept is its hash, which is enough to
// recognise it and useless to whoever reads the table. Because the token is random through and through, a plain SHA-256
// is the right hash: there is no dictionary to slow down.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

const (
	// Prefix begins every token, so that people and scanners recognise one.
	Prefix = "bp_"

	secretBytes = 32
	// hintChars of the random part are shown in lists: enough to tell tokens apart, 36 of 256 bits.
	hintChars = 6
)

// Token is a token's text with what may be kept of it.
type Token struct {
	// Text is the whole token. It must not be stored or logged.
	Text string
	// Hint is its beginning.
	Hint string
	// Hash is the SHA-256 of Text.
	Hash []byte
}

// New makes a token.
func New() Token {
	secret := make([]byte, secretBytes)
	// Read never fails: it ends the process when the system has no randomness to give.
	_, _ = rand.Read(secret)
	text := Prefix + base64.RawURLEncoding.EncodeToString(secret)
	return Token{Text: text, Hint: text[:len(Prefix)+hintChars], Hash: Hash(text)}
}

// WellFormed reports whether text can be a token at all, so that anything else is refused without asking the database.
func WellFormed(text string) bool {
	secret, ok := strings.CutPrefix(text, Prefix)
	if !ok {
		return false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	return err == nil && len(raw) == secretBytes
}

// Hash answers what is kept of a token's text.
func Hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// Matches compares a kept hash with the text's, in a time that does not tell how much of them agrees.
func Matches(hash []byte, text string) bool {
	return subtle.ConstantTimeCompare(hash, Hash(text)) == 1
}
