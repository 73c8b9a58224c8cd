package page

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

var (
	code = regexp.MustCompile("(?s)```.*?(?:```|$)|~~~.*?(?:~~~|$)|`[^`\n]*`")
	link = regexp.MustCompile(`(?:#/knowledge)?/pages/([0-9a-fA-F-]{36})`)
	// A handle after an at sign that does not stand inside a word.
	mention = regexp.MustCompile(`(?:^|[^A-Za-z0-9_@./-])@([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)`)
)

// prose is a Markdown text without its code, which links and mentions nobody.
func prose(body string) string { return code.ReplaceAllString(body, " ") }

// Links answers the pages that a text links to, each once: by the id in an address of a page, percent-encoded or not. A bare id is no link.
func Links(body string) []uuid.UUID {
	text := prose(body)
	if decoded, err := url.PathUnescape(text); err == nil {
		text = decoded
	}
	var ids []uuid.UUID
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		if id, err := uuid.Parse(found[1]); err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Mentions answers the handles that a text names, each once, in order.
func Mentions(body string) []string {
	var handles []string
	for _, found := range mention.FindAllStringSubmatch(strings.ToLower(prose(body)), -1) {
		if !slices.Contains(handles, found[1]) {
			handles = append(handles, found[1])
		}
	}
	return handles
}

// Words answers what a query asks for: its words, without case and signs, each once.
func Words(query string) []string {
	var words []string
	for _, word := range strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

const snippetBytes = 200

// Snippet previews a text around the first of the words that it holds: at most 200 bytes, cut between words, with an ellipsis at
// each cut.
func Snippet(body string, words []string) string {
	text := strings.Join(strings.Fields(body), " ")
	if len(text) <= snippetBytes {
		return text
	}
	at := first(text, words)
	const room = snippetBytes - 2*len("…")
	begin := max(0, at-room/3)
	if begin > 0 {
		begin = boundary(text, begin)
	}
	end := min(len(text), begin+room)
	if end < len(text) {
		if space := strings.LastIndexByte(text[begin:end], ' '); space > 0 {
			end = begin + space
		} else {
			for end > begin && !utf8.RuneStart(text[end]) {
				end--
			}
		}
	}
	snippet := text[begin:end]
	if begin > 0 {
		snippet = "…" + snippet
	}
	if end < len(text) {
		snippet += "…"
	}
	return snippet
}

// first answers where the first word stands, ASCII case aside; 0 when none does.
func first(text string, words []string) int {
	at := -1
	lower := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return unicode.ToLower(r)
		}
		return r // other letters may change their length
	}, text)
	for _, word := range words {
		if i := strings.Index(lower, word); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return max(at, 0)
}

// boundary moves a cut to the beginning of a word, or at least of a character.
func boundary(text string, at int) int {
	if space := strings.IndexByte(text[at:], ' '); space >= 0 && space < snippetBytes/4 {
		return at + space + 1
	}
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}
