// Package hygiene cleans what a tool answered before anybody reads it: the model, the audit or an event. Failures are cleaned
// like results.
//
// Three rules. Text that holds NUL or is not UTF-8 is binary and refused whole. Control characters are taken out, tab, line feed
// and carriage return apart. Secrets that are known by their shape are replaced by `[REDACTED:kind]`. Nothing is ever cut.
//
// Cleaning is idempotent: clean text stays as it is, to the byte. [Cleaner.JSON] cleans inside the strings of a document and touches
// nothing else, so that numbers keep their digits, members their order, and valid JSON stays valid.
//
// Secrets that have no shape are redacted by whoever resolved them.
package hygiene

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// ErrBinary refuses what is not text.
var ErrBinary = errors.New("binary data")

// Cleaner cleans. It is never changed, and safe for concurrent use.
type Cleaner struct{ shapes []shape }

// New makes a cleaner with every shape that is known.
func New() *Cleaner { return &Cleaner{shapes: shapes()} }

// Text cleans plain text. The only error is [ErrBinary].
func (c *Cleaner) Text(text string) (string, error) {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return "", ErrBinary
	}
	return c.redact(strip(text)), nil
}

// strip takes out control characters. It copies only what has some.
func strip(text string) string {
	if strings.IndexFunc(text, control) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return -1
		}
		return r
	}, text)
}

func control(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
}
