package item

import "unicode/utf8"

// Shorten answers a text of at most so many bytes: the whole, or its beginning up to a whole character, with `…` for the rest.
func Shorten(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	cut := max(0, bytes-len("…"))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
