package splice

import (
	"strings"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// replace answers the text with another entry at index.
func (d *document) replace(index int, entry Object, r render) (string, bool) {
	if start, ok := d.bracket(); ok {
		spans, _, ok := brackets(d.text, start)
		if !ok || index >= len(spans) {
			return "", false
		}
		s := spans[index]
		return d.text[:s.from] + entry.JSON() + d.text[s.to:], true
	}
	column, dashes, ok := d.dashes()
	if !ok {
		return "", false
	}
	s := dashes[index]
	return d.with(s.from, s.to, r(entry, column)), true
}

// append answers the text with an entry behind the last.
func (d *document) append(entry Object, r render) (string, bool) {
	indent := max(d.root.Column-1, 0)
	switch {
	case d.list == nil:
		if strings.HasPrefix(strings.TrimSpace(d.lineOf(d.root)), "{") {
			return "", false // a document in braces has no line to add
		}
		end := len(d.lines)
		return d.with(end, end, strings.Repeat(" ", indent)+d.key+":\n"+r(entry, indent+2)), true
	case d.list.Kind == yamltree.Null:
		_, value, _ := strings.Cut(d.lines[d.line], ":")
		if value = strings.TrimSpace(value); value != "" && !strings.HasPrefix(value, "#") {
			return "", false // a null that is written out
		}
		return d.with(d.line+1, d.line+1, r(entry, indent+2)), true
	}
	if start, ok := d.bracket(); ok {
		spans, _, ok := brackets(d.text, start)
		if !ok {
			return "", false
		}
		if len(spans) == 0 {
			return d.text[:start+1] + entry.JSON() + d.text[start+1:], true
		}
		end := spans[len(spans)-1].to
		return d.text[:end] + ", " + entry.JSON() + d.text[end:], true
	}
	column, dashes, ok := d.dashes()
	if !ok {
		return "", false
	}
	end := dashes[len(dashes)-1].to
	return d.with(end, end, r(entry, column)), true
}

// with answers the text with the lines from (included) to (excluded) replaced.
func (d *document) with(from, to int, by string) string {
	before := strings.Join(d.lines[:from], "")
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	return before + by + strings.Join(d.lines[to:], "")
}

func (d *document) lineOf(n *yamltree.Node) string { return d.lines[n.Line-1] }

// bracket answers where a flow list begins, and false for a block list.
func (d *document) bracket() (offset int, ok bool) {
	for _, line := range d.lines[:d.list.Line-1] {
		offset += len(line)
	}
	line := []rune(d.lineOf(d.list))
	if d.list.Column > len(line) || line[d.list.Column-1] != '[' {
		return 0, false
	}
	return offset + len(string(line[:d.list.Column-1])), true
}

// span is a range: the first and the one behind the last.
type span struct{ from, to int }

// dashes finds the lines of each entry of a block list, and the column of its dashes from 0. Comments and blank lines in front of
// a dash belong to what follows them.
func (d *document) dashes() (column int, all []span, ok bool) {
	column = d.list.Column - 1
	for i := d.list.Line - 1; i < len(d.lines); i++ {
		body := strings.TrimLeft(d.lines[i], " ")
		indent := len(d.lines[i]) - len(body)
		body = strings.TrimSpace(body)
		switch {
		case body == "", strings.HasPrefix(body, "#") && indent <= column:
			continue
		case indent == column && (body == "-" || strings.HasPrefix(body, "- ")):
			all = append(all, span{i, i + 1})
			continue
		case indent > column && len(all) > 0:
			all[len(all)-1].to = i + 1
			continue
		}
		break
	}
	return column, all, len(all) == len(d.list.Items) && len(all) > 0
}

// brackets finds the entries of the flow list that begins at start, and where it ends.
func brackets(text string, start int) (all []span, end int, ok bool) {
	depth, from, last := 0, -1, -1
	fresh := true // a scalar may begin here, so a quote opens one
	for i := start; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '#' && strings.ContainsRune(" \t\n", rune(text[i-1])):
			for i < len(text) && text[i] != '\n' {
				i++
			}
			continue
		case (c == '"' || c == '\'') && fresh:
			if from < 0 {
				from = i
			}
			if i = closing(text, i); i < 0 {
				return nil, 0, false
			}
			fresh, last = false, i
			continue
		case c == '[' || c == '{':
			if depth == 1 && from < 0 {
				from = i
			}
			depth++
			fresh = true
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				if from >= 0 {
					all = append(all, span{from, last + 1})
				}
				return all, i, true
			}
			fresh = false
		case c == ',':
			if depth == 1 && from >= 0 {
				all = append(all, span{from, last + 1})
				from = -1
			}
			fresh = true
			continue
		default:
			fresh = c == ':'
			if depth == 1 && from < 0 {
				from = i
			}
		}
		last = i
	}
	return nil, 0, false
}

// closing answers where a quoted scalar that opens at i ends, and -1 when it does not.
func closing(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i
		}
	}
	return -1
}
