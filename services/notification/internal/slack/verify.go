// Package slack reads what Slack sends: it verifies a request's signature,
// says what an event means for the seat whose app heard it, knows how
// conversations are keyed and how our own messages are marked, and writes
// Markdown the way Slack reads it. It does no I/O.
package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Source names the vendor in keys and rows.
const Source = "slack"

const (
	signaturePrefix = "v0="
	// window is how far the vendor's clock and ours may be apart, either way.
	window = 5 * time.Minute
)

// Verify reports whether signature and stamp, the headers X-Slack-Signature
// and X-Slack-Request-Timestamp, are those of body under secret, and made
// within five minutes of now. It takes the same time for every wrong
// signature. An empty secret verifies nothing.
func Verify(secret, signature, stamp string, body []byte, now time.Time) bool {
	given, err := hex.DecodeString(strings.TrimPrefix(signature, signaturePrefix))
	if err != nil || secret == "" || !strings.HasPrefix(signature, signaturePrefix) {
		return false
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > window {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}
