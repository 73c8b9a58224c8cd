package child

import (
	"strings"
	"unicode"
)

// printable answers a line without terminal sequences, control characters and the space around it, as valid UTF-8.
func printable(line string) string {
	const escape = '\x1b'
	var clean strings.Builder
	sequence := false // between an escape and the letter that ends it
	for _, r := range strings.ToValidUTF8(line, "\uFFFD") {
		switch {
		case sequence:
			sequence = r == '[' || r == ';' || r == '?' || r >= '0' && r <= '9'
		case r == escape:
			sequence = true
		case r == '\t':
			clean.WriteByte(' ')
		case !unicode.IsControl(r):
			clean.WriteRune(r)
		}
	}
	return strings.TrimSpace(clean.String())
}
