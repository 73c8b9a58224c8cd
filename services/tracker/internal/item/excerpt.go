package item

import (
	"strings"
	"unicode/utf8"
)

// maxExcerptBytes is how much of a comment a row of history shows.
const maxExcerptBytes = 600

// Excerpt answers the beginning of a text on one line, in whole words where there are any, with `…` where it goes on.
func Excerpt(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if len(line) <= maxExcerptBytes {
		return line
	}
	cut := maxExcerptBytes - len("…")
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	if space := strings.LastIndexByte(line[:cut+1], ' '); space > 0 {
		cut = space
	}
	return line[:cut] + "…"
}
