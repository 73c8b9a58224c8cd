package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// SnippetBytes is about what a snippet holds.
const SnippetBytes = 200

// ellipsis stands where a snippet leaves out text.
const ellipsis = "…"

// Snippet answers the part of text that holds most of what was looked for, at most SnippetBytes long and cut at whole characters,
// and how much that is. weights are the words and what each is worth. Without any of them it is the text's beginning, worth 0.
func Snippet(text string, weights map[string]float32) (string, float32) {
	var hits []Word
	Each(text, func(w Word) {
		if weights[w.Text] > 0 {
			hits = append(hits, w)
		}
	})
	if len(hits) == 0 {
		return cut(text, 0, 0), 0
	}
	best, from, to := float32(0), 0, 0
	for first, last := 0, 0; first < len(hits); first++ {
		for last = max(last, first); last+1 < len(hits) && hits[last+1].End-hits[first].At <= SnippetBytes-2*len(ellipsis); {
			last++
		}
		if worth := worth(hits[first:last+1], weights); worth > best {
			best, from, to = worth, hits[first].At, hits[last].End
		}
	}
	return cut(text, from, to), best
}

// worth counts every word once.
func worth(hits []Word, weights map[string]float32) (sum float32) {
	seen := make(map[string]bool, len(hits))
	for _, h := range hits {
		if !seen[h.Text] {
			seen[h.Text] = true
			sum += weights[h.Text]
		}
	}
	return sum
}

// cut answers the part of text round from..to in one line.
func cut(text string, from, to int) string {
	if len(text) <= SnippetBytes {
		return line(text)
	}
	room := SnippetBytes - 2*len(ellipsis)
	to = min(to, from+room)
	start := max(0, min(from-(room-(to-from))/2, len(text)-room))
	end := min(len(text), start+room)
	if start > 0 {
		start = forward(text, start, from)
	}
	if end < len(text) {
		end = back(text, end, from, to)
	}
	snippet := line(text[start:end])
	if start > 0 {
		snippet = ellipsis + snippet
	}
	if end < len(text) {
		snippet += ellipsis
	}
	return snippet
}

// forward moves a beginning to the next word, or at least to a whole character, but not past limit.
func forward(text string, at, limit int) int {
	for at < limit && !starts(text, at) {
		at++
	}
	if space := strings.IndexFunc(text[at:max(at, limit)], unicode.IsSpace); space >= 0 && space < SnippetBytes/8 {
		at += space
	}
	return at
}

// back moves an end to a whole character after from, and to the last space after to where one is near.
func back(text string, at, from, to int) int {
	for at > from && !starts(text, at) {
		at--
	}
	to = min(to, at)
	if space := strings.LastIndexFunc(text[to:at], unicode.IsSpace); space >= 0 && at-to-space < SnippetBytes/8 {
		at = to + space
	}
	return at
}

// starts reports whether a character with all its marks begins at at.
func starts(text string, at int) bool {
	if at >= len(text) || !utf8.RuneStart(text[at]) {
		return at >= len(text)
	}
	r, _ := utf8.DecodeRuneInString(text[at:])
	if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	return before != '\u200d'
}

// line puts text into one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
