// Package github reads what GitHub sends: it verifies a webhook's signature,
// says what a payload means for whom, and knows how conversations are keyed
// and how our own comments are marked. It does no I/O.
package github

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Source names the vendor in keys and rows.
const Source = "github"

const signaturePrefix = "sha256="

// Verify reports whether signature, the X-Hub-Signature-256 header, is that of
// body under secret. It takes the same time for every wrong one. An empty
// secret verifies nothing.
func Verify(secret, signature string, body []byte) bool {
	given, err := hex.DecodeString(strings.TrimPrefix(signature, signaturePrefix))
	if err != nil || secret == "" || !strings.HasPrefix(signature, signaturePrefix) {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}
