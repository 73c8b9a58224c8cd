package imports

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// Limits of what an item takes, as the contract says them.
const (
	maxTitle      = 256
	maxBody       = 64 << 10
	maxComment    = 32 << 10
	maxLabels     = 40
	maxLabel      = 64
	maxComments   = 1000
	maxPerson     = 200
	maxExternalID = 256
)

// fact is something of theirs that has no place in an item of ours.
type fact struct{ name, value string }

// fit makes an item one that ours can hold. Nothing is lost: facts without a place stand under the description, what is too long goes
// on in the thread. What remains too large is a problem.
func (r *Record) fit(facts []fact) {
	i := r.Item
	i.Title = oneLine(clean(i.GetTitle()))
	if i.GetTitle() == "" {
		i.Title = "(no title)"
		r.warn("it has no title")
	}
	body := clean(i.GetBody())
	if len(i.GetTitle()) > maxTitle {
		body = i.GetTitle() + "\n\n" + body
		i.Title = shorten(i.GetTitle(), maxTitle)
		r.warn("the title is longer than %d bytes: it is shortened, and stands whole above the description", maxTitle)
	}
	facts = r.fitLabels(facts)
	i.Body = strings.TrimSpace(body)
	if rest := footer(facts); rest != "" {
		if i.GetBody() != "" {
			rest = i.GetBody() + "\n\n---\n\n" + rest
		}
		i.Body = rest
	}
	i.Reporter = shorten(clean(i.GetReporter()), maxPerson)
	r.fitTexts()
	switch {
	case len(i.GetExternalId()) > maxExternalID:
		r.Problem = fmt.Sprintf("its name is %d bytes long, and at most %d are taken", len(i.GetExternalId()), maxExternalID)
	case len(i.GetComments()) > maxComments:
		r.Problem = fmt.Sprintf("it has %d comments, and at most %d are taken", len(i.GetComments()), maxComments)
	}
}

// fitLabels keeps the labels that an item takes and makes facts of the rest.
func (r *Record) fitLabels(facts []fact) []fact {
	var labels, rest []string
	for _, label := range r.Item.GetLabels() {
		label = oneLine(clean(label))
		switch {
		case label == "" || slices.Contains(labels, label):
		case len(label) > maxLabel || len(labels) == maxLabels:
			rest = append(rest, label)
		default:
			labels = append(labels, label)
		}
	}
	r.Item.Labels = labels
	if len(rest) == 0 {
		return facts
	}
	r.warn("%d labels do not fit and stand under the description", len(rest))
	return append(facts, fact{"Labels", strings.Join(rest, ", ")})
}

// footer writes facts: those of one line below each other, then those of more with their lines.
func footer(facts []fact) string {
	var lines, texts []string
	for _, f := range facts {
		name := f.name
		if custom, ok := strings.CutPrefix(name, "Custom field ("); ok {
			name = strings.TrimSuffix(custom, ")")
		}
		value := strings.TrimSpace(clean(f.value))
		switch {
		case value == "":
		case strings.Contains(value, "\n"):
			texts = append(texts, name+":\n\n"+value)
		default:
			lines = append(lines, name+": "+oneLine(value))
		}
	}
	if len(lines) > 0 {
		texts = append([]string{strings.Join(lines, "  \n")}, texts...)
	}
	return strings.Join(texts, "\n\n")
}

// fitTexts lets texts that are too long go on in the thread.
func (r *Record) fitTexts() {
	i := r.Item
	var thread []*trackerv1.ImportedComment
	if parts := split(i.GetBody(), maxBody); len(parts) > 1 {
		r.warn("the description is longer than %d KiB and goes on in the thread", maxBody>>10)
		i.Body = parts[0]
		for _, part := range split(strings.Join(parts[1:], ""), maxComment) {
			thread = append(thread, &trackerv1.ImportedComment{Author: i.GetReporter(), Body: part, CreateTime: i.GetCreateTime()})
		}
	}
	for _, c := range i.GetComments() {
		text := clean(c.GetBody())
		if strings.TrimSpace(text) == "" {
			continue
		}
		parts := split(text, maxComment)
		if len(parts) > 1 {
			r.warn("a comment is longer than %d KiB and goes on in the next one", maxComment>>10)
		}
		for _, part := range parts {
			thread = append(thread, &trackerv1.ImportedComment{Author: shorten(clean(c.GetAuthor()), maxPerson), Body: part, CreateTime: c.GetCreateTime()})
		}
	}
	i.Comments = thread
}

// split parts a text into pieces of at most limit bytes that together are the text: between lines where that is possible, between
// characters otherwise.
func split(text string, limit int) []string {
	var parts []string
	for len(text) > limit {
		cut := strings.LastIndexByte(text[:limit], '\n') + 1
		if cut <= limit/2 {
			for cut = limit; !utf8.RuneStart(text[cut]); cut-- {
			}
		}
		parts = append(parts, text[:cut])
		text = text[cut:]
	}
	return append(parts, text)
}

// shorten ends a text that is too long with an ellipsis, after a whole word where that is possible.
func shorten(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	cut := limit - len(ellipsis)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	if space := strings.LastIndexByte(text[:cut], ' '); space > cut/2 {
		cut = space
	}
	return text[:cut] + ellipsis
}

// clean makes a text one that can be stored: valid UTF-8 with line feeds and without NUL.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.ReplaceAll(text, "\x00", "\ufffd")
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
