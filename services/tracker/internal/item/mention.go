package item

import (
	"regexp"
	"slices"
	"strings"
)

// MaxMentions is how many colleagues one text may name.
const MaxMentions = 32

// A handle after an at sign that does not stand inside a word, so that an e-mail address names nobody.
var mention = regexp.MustCompile(`(^|[^A-Za-z0-9_@./-])@([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)`)

var (
	fence  = regexp.MustCompile("(?s)```.*?(```|$)|~~~.*?(~~~|$)")
	span   = regexp.MustCompile("`[^`\n]*`")
	quoted = regexp.MustCompile(`(?m)^>.*$`)
)

// Mentions answers the handles that a Markdown text names, each once, in order. Code and quoted lines name nobody.
func Mentions(text string) []string {
	for _, silent := range []*regexp.Regexp{fence, span, quoted} {
		text = silent.ReplaceAllString(text, " ")
	}
	var handles []string
	for _, found := range mention.FindAllStringSubmatch(strings.ToLower(text), -1) {
		if !slices.Contains(handles, found[2]) {
			handles = append(handles, found[2])
		}
	}
	return handles
}
