// Package splice edits one entry of a list in a YAML document and leaves every other byte as it was written: comments, order,
// quotes and blank lines of the rest are their author's.
//
// It works on the text. The parser's tree says which entry is meant, and the text where it begins and ends: by the dashes of a
// block list, by the brackets of a flow list. Because nobody can say of every form of YAML that such an edit is right, each
// result is read again and must differ from what was there in that entry and in nothing else; a document for which that cannot
// be had is refused with [ErrForm], and its author puts it as a whole.
//
// Comments inside an entry that is replaced go with it.
package splice

import (
	"errors"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// ErrForm says that a document is written in a form in which one entry cannot be edited by itself.
var ErrForm = errors.New("the document is written in a form in which one entry cannot be edited by itself")

// List answers the entries under a key at the root of a document, as far as they are objects; others are nil in their place.
func List(text, key string) ([]Object, error) {
	root, flaw := yamltree.Parse(text)
	if flaw != nil {
		return nil, flaw
	}
	list, _ := under(root, key)
	var out []Object
	for _, item := range items(list) {
		object, _ := fromNode(item).(Object)
		out = append(out, object)
	}
	return out, nil
}

// Replace puts an entry in the place of the one at index.
func Replace(text, key string, index int, entry Object) (string, error) {
	d, err := open(text, key)
	if err != nil || index < 0 || index >= len(items(d.list)) {
		return "", ErrForm
	}
	want := slices.Clone(items(d.list))
	want[index] = entry.node()
	return d.edit(want, func(r render) (string, bool) { return d.replace(index, entry, r) })
}

// Append puts an entry behind the last one, and makes the list where there is none.
func Append(text, key string, entry Object) (string, error) {
	d, err := open(text, key)
	if err != nil {
		return "", ErrForm
	}
	want := append(slices.Clone(items(d.list)), entry.node())
	return d.edit(want, func(r render) (string, bool) { return d.append(entry, r) })
}

// document is a text with the list that is edited in it.
type document struct {
	text, key string
	lines     []string
	root      *yamltree.Node
	// list is nil when the key is missing; line is the key's, from 0.
	list *yamltree.Node
	line int
}

func open(text, key string) (*document, error) {
	root, flaw := yamltree.Parse(text)
	if flaw != nil {
		return nil, flaw
	}
	d := &document{text: text, key: key, lines: slices.Collect(strings.Lines(text)), root: root}
	d.list, d.line = under(root, key)
	if root.Kind != yamltree.Map || d.list != nil && d.list.Kind != yamltree.List && d.list.Kind != yamltree.Null {
		return nil, ErrForm
	}
	// A carriage return alone ends a line for the parser and not for an editor.
	if strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
		return nil, ErrForm
	}
	return d, nil
}

// edit tries the readable form of an entry and then the one without choices, and answers the first that reads as wanted.
func (d *document) edit(want []*yamltree.Node, write func(render) (string, bool)) (string, error) {
	for _, r := range []render{block, flow} {
		text, ok := write(r)
		if ok && d.holds(text, want) {
			return text, nil
		}
	}
	return "", ErrForm
}

// holds reports whether a text is this document with the list want and nothing else changed.
func (d *document) holds(text string, want []*yamltree.Node) bool {
	root, flaw := yamltree.Parse(text)
	if flaw != nil || root.Kind != yamltree.Map {
		return false
	}
	others := func(n *yamltree.Node) *yamltree.Node {
		rest := slices.DeleteFunc(slices.Clone(n.Entries), func(e yamltree.Entry) bool { return e.Key == d.key })
		return &yamltree.Node{Kind: yamltree.Map, Entries: rest}
	}
	if !same(others(root), others(d.root)) {
		return false
	}
	list, _ := under(root, d.key)
	return list != nil && slices.EqualFunc(items(list), want, same)
}

// under answers the value of the first entry with a key, and its line from 0.
func under(root *yamltree.Node, key string) (*yamltree.Node, int) {
	for _, e := range root.Entries {
		if e.Key == key {
			return e.Value, e.Line - 1
		}
	}
	return nil, 0
}

func items(list *yamltree.Node) []*yamltree.Node {
	if list == nil {
		return nil
	}
	return list.Items
}

// same compares values wherever they stand. Text is text, however it is quoted.
func same(a, b *yamltree.Node) bool {
	if a.Kind != b.Kind || a.Text != b.Text || len(a.Items) != len(b.Items) || len(a.Entries) != len(b.Entries) {
		return false
	}
	for i := range a.Items {
		if !same(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for i := range a.Entries {
		if a.Entries[i].Key != b.Entries[i].Key || !same(a.Entries[i].Value, b.Entries[i].Value) {
			return false
		}
	}
	return true
}
