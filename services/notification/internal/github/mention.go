package github

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Mention is an account, or a team of an organisation, that a text calls.
type Mention struct {
	// Login is in lower case, the organisation's for a team.
	Login string
	// Team is the team's slug in lower case, empty for an account.
	Team string
}

// opaque stands in running text for what is not: code, links, images, HTML,
// the edges of emphasis.
const opaque = '\uFFFC'

// Mentions answers whom a Markdown text calls, each once, in order. As on the
// site, a name counts only in running text that is the author's own: not in
// code, quotations, links, addresses or HTML, and not as a part of a longer
// word. A text longer than any comment calls nobody.
func Mentions(markdown string) []Mention {
	if !strings.Contains(markdown, "@") || utf8.RuneCountInString(markdown) > MaxCommentCharacters {
		return nil
	}
	if intricate(markdown) {
		return once(nil, inText(plain(markdown)))
	}
	source := []byte(markdown)
	parser := goldmark.New(goldmark.WithExtensions(extension.Linkify)).Parser()
	var found []Mention
	collect(parser.Parse(text.NewReader(source)), source, &found)
	return found
}

// once adds to found what is not in it yet.
func once(found, more []Mention) []Mention {
	for _, m := range more {
		if !slices.Contains(found, m) {
			found = append(found, m)
		}
	}
	return found
}

var (
	// nested is a line's quotation and list signs.
	nested = regexp.MustCompile(`(?m)^(?:[ \t]*(?:[>*+-]|[0-9]{1,9}[.)])[ \t]?){40,}`)
	// outside is what plain leaves out within a line.
	outside = regexp.MustCompile("`[^`\n]*`|https?://\\S+|<!--.*?-->|\\[[^][\n]*\\]\\([^)\n]*\\)")
	// call is a sign with a name, and a team's name, behind it.
	call = regexp.MustCompile(`@([A-Za-z0-9](?:-?[A-Za-z0-9])*(?:\[bot\])?)(/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?`)
	// fence begins and ends a block of code.
	fence = regexp.MustCompile("^ {0,3}(```|~~~)")
)

// maxBrackets is more than an honest comment has.
const maxBrackets = 500

// intricate reports a text that costs the parser time that grows with the
// square of its length. Anybody may comment, and one comment must not hold up
// the others.
func intricate(markdown string) bool {
	return strings.Count(markdown, "[") > maxBrackets || nested.MatchString(markdown)
}

// plain is what is left of an intricate text without code, quotations and
// links, roughly: it reads line by line.
func plain(markdown string) string {
	var kept strings.Builder
	fenced := false
	for line := range strings.SplitSeq(markdown, "\n") {
		if fence.MatchString(line) {
			fenced = !fenced
			continue
		}
		if !fenced && !strings.HasPrefix(strings.TrimLeft(line, " "), ">") {
			kept.WriteString(outside.ReplaceAllString(line, string(opaque)))
			kept.WriteByte('\n')
		}
	}
	return kept.String()
}

// collect walks blocks; the inline content of each is read as one text.
func collect(n ast.Node, source []byte, found *[]Mention) {
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch child.Kind() {
		case ast.KindBlockquote, ast.KindCodeBlock, ast.KindFencedCodeBlock, ast.KindHTMLBlock:
			continue
		default:
		}
		if inline := child.FirstChild(); inline != nil && inline.Type() == ast.TypeInline {
			var running strings.Builder
			flatten(child, source, &running)
			*found = once(*found, inText(running.String()))
			continue
		}
		collect(child, source, found)
	}
}

func flatten(n ast.Node, source []byte, into *strings.Builder) {
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		switch c := child.(type) {
		case *ast.Text:
			into.Write(c.Segment.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				into.WriteByte('\n')
			}
		case *ast.String:
			into.Write(c.Value)
		case *ast.CodeSpan, *ast.Link, *ast.AutoLink, *ast.Image, *ast.RawHTML:
			into.WriteRune(opaque)
		default: // emphasis and the like: a name does not reach over its edges
			into.WriteRune(opaque)
			flatten(child, source, into)
			into.WriteRune(opaque)
		}
	}
}

// maxLogin is the longest account name.
const maxLogin = 39

// inText reads running text. What stands before the sign and after the name
// decides: `a@b`, `/@b`, `@b@c` and `@b_c` call nobody.
func inText(running string) []Mention {
	var found []Mention
	for _, at := range call.FindAllStringSubmatchIndex(running, -1) {
		login, team := running[at[2]:at[3]], ""
		if at[4] >= 0 {
			team = running[at[4]+1 : at[5]]
		}
		if len(strings.TrimSuffix(login, "[bot]")) > maxLogin || !opens(running[:at[0]]) || !closes(running[at[1]:]) {
			continue
		}
		found = append(found, Mention{Login: strings.ToLower(login), Team: strings.ToLower(team)})
	}
	return found
}

// opens reports whether a name may begin after before.
func opens(before string) bool {
	last, size := utf8.DecodeLastRuneInString(before)
	return size == 0 || !wordly(last) && !strings.ContainsRune("@/.`-=&?", last)
}

// closes reports whether a name is over where after begins. A full stop ends
// it unless it goes on as an address does.
func closes(after string) bool {
	next, size := utf8.DecodeRuneInString(after)
	if next == '.' {
		beyond, _ := utf8.DecodeRuneInString(after[size:])
		return !wordly(beyond)
	}
	return size == 0 || !wordly(next) && !strings.ContainsRune("@/-", next)
}

func wordly(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f && r != opaque && unicode.IsLetter(r)
}
