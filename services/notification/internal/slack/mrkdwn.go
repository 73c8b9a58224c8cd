package slack

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// MaxTextCharacters is where Slack refuses a text.
const MaxTextCharacters = 40_000

// Mrkdwn writes Markdown the way Slack reads it: its own signs for emphasis and
// links, and &, < and > escaped everywhere else, so that no text becomes a
// command such as <!channel>. The one exception is <@U…>, which calls a user as
// its author meant.
func Mrkdwn(markdown string) string {
	source := []byte(markdown)
	root := goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.Table, extension.Linkify)).
		Parser().Parse(text.NewReader(source))
	w := &writer{source: source}
	w.blocks(root, "")
	return strings.Trim(w.out.String(), "\n")
}

// Escape makes text literal for Slack, apart from user mentions.
func Escape(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
	return regexp.MustCompile(`&lt;@([UW][A-Z0-9]{1,31})&gt;`).ReplaceAllString(s, "<@$1>")
}

type writer struct {
	source []byte
	out    strings.Builder
}

// blocks writes the blocks in n, each line behind prefix, an empty line between two.
func (w *writer) blocks(n ast.Node, prefix string) {
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		_, tight := child.(*ast.TextBlock)
		if child.PreviousSibling() != nil && !tight {
			if _, list := child.(*ast.List); !list || n.Kind() != ast.KindListItem {
				w.line(prefix, "")
			}
		}
		w.block(child, prefix)
	}
}

func (w *writer) block(n ast.Node, prefix string) {
	switch b := n.(type) {
	case *ast.Heading:
		w.lines(prefix, "*"+strings.ReplaceAll(w.inline(b), "*", "")+"*")
	case *ast.Paragraph, *ast.TextBlock:
		w.lines(prefix, w.inline(b))
	case *ast.Blockquote:
		w.blocks(b, prefix+"> ")
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		w.lines(prefix, "```\n"+Escape(w.raw(b))+"```")
	case *ast.HTMLBlock:
		w.lines(prefix, strings.TrimRight(Escape(w.raw(b)), "\n"))
	case *ast.ThematicBreak:
		w.line(prefix, "———")
	case *ast.List:
		w.list(b, prefix)
	case *extast.Table:
		w.lines(prefix, w.table(b))
	default:
		w.blocks(n, prefix)
	}
}

func (w *writer) list(l *ast.List, prefix string) {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		bullet := "• "
		if l.IsOrdered() {
			bullet = strconv.Itoa(number) + ". "
			number++
		}
		inner := &writer{source: w.source}
		inner.blocks(item, "")
		indent := bullet
		for text := range strings.SplitSeq(strings.Trim(inner.out.String(), "\n"), "\n") {
			w.line(prefix, indent+text)
			indent = "    "
		}
	}
}

// table has no form in Slack: it is shown as text of fixed width.
func (w *writer) table(t *extast.Table) string {
	var rows []string
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, w.inline(cell))
		}
		rows = append(rows, strings.Join(cells, " | "))
	}
	return "```\n" + strings.Join(rows, "\n") + "\n```"
}

func (w *writer) raw(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(w.source))
	}
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() {
		b.Write(html.ClosureLine.Value(w.source))
	}
	return b.String()
}

// inline writes running text. Neighbouring texts are escaped together, because
// the parser may cut a user mention in two.
func (w *writer) inline(n ast.Node) string {
	_, code := n.(*ast.CodeSpan)
	var out, run strings.Builder
	flush := func() {
		out.WriteString(Escape(run.String()))
		run.Reset()
	}
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		c, ok := child.(*ast.Text)
		if !ok {
			flush()
			out.WriteString(w.span(child))
			continue
		}
		value := c.Segment.Value(w.source)
		if !code {
			value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
		}
		run.Write(value)
		if c.SoftLineBreak() || c.HardLineBreak() {
			run.WriteByte('\n')
		}
	}
	flush()
	return out.String()
}

func (w *writer) span(n ast.Node) string {
	switch s := n.(type) {
	case *ast.String:
		return Escape(string(s.Value))
	case *ast.CodeSpan:
		return "`" + w.inline(s) + "`"
	case *ast.Emphasis:
		sign := "_"
		if s.Level == 2 {
			sign = "*"
		}
		return sign + w.inline(s) + sign
	case *extast.Strikethrough:
		return "~" + w.inline(s) + "~"
	case *ast.Link:
		return link(string(s.Destination), w.inline(s))
	case *ast.Image:
		return link(string(s.Destination), w.inline(s))
	case *ast.AutoLink:
		return link(string(s.URL(w.source)), "")
	case *ast.RawHTML:
		var b strings.Builder
		for i := range s.Segments.Len() {
			segment := s.Segments.At(i)
			b.Write(segment.Value(w.source))
		}
		return Escape(b.String())
	default:
		return w.inline(n)
	}
}

// link writes a link. A destination that Slack could take for a command, or
// for the end of the link, is shown as text.
func link(destination, label string) string {
	safe := regexp.MustCompile(`^(https?://|mailto:)[^\s<>|]+$`)
	if !safe.MatchString(destination) {
		return strings.TrimSpace(label + " (" + Escape(destination) + ")")
	}
	destination = strings.ReplaceAll(destination, "&", "&amp;")
	if label == "" {
		return "<" + destination + ">"
	}
	return "<" + destination + "|" + strings.NewReplacer("|", "¦", "\n", " ").Replace(label) + ">"
}

func (w *writer) lines(prefix, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		w.line(prefix, line)
	}
}

func (w *writer) line(prefix, text string) {
	w.out.WriteString(strings.TrimRight(prefix+text, " "))
	w.out.WriteByte('\n')
}
