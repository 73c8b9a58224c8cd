package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// maxDepth is how deep an entry may nest.
const maxDepth = 16

// Object is a mapping in the order it was written. Its values are Objects, []any, string, bool, json.Number and nil.
type Object []Field

// Field is a key and its value.
type Field struct {
	Key   string
	Value any
}

// ParseObject reads a JSON object. Its errors are half sentences for whoever wrote it, and repeat no value.
func ParseObject(text string) (Object, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	value, err := decode(decoder, 0)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("has something behind its end")
		}
	}
	if err != nil {
		return nil, err
	}
	object, ok := value.(Object)
	if !ok {
		return nil, errors.New("must be a JSON object")
	}
	return object, nil
}

func decode(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, errors.New("is not JSON")
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return token, nil
	}
	if depth >= maxDepth {
		return nil, fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			value, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, end(d)
	}
	object, seen := Object{}, map[string]bool{}
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return nil, errors.New("is not JSON")
		}
		if seen[key] {
			return nil, errors.New("has a key twice in one object")
		}
		seen[key] = true
		value, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		object = append(object, Field{key, value})
	}
	return object, end(d)
}

func end(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return errors.New("is not JSON")
	}
	return nil
}

// JSON writes the object on one line, in its order. It is YAML in flow style too.
func (o Object) JSON() string {
	var b bytes.Buffer
	writeJSON(&b, o)
	return b.String()
}

func writeJSON(b *bytes.Buffer, value any) {
	switch v := value.(type) {
	case Object:
		b.WriteByte('{')
		for i, f := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeJSON(b, f.Key)
			b.WriteString(": ")
			writeJSON(b, f.Value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	default:
		encoder := json.NewEncoder(b)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(v) // text, numbers and true or false always can be
		b.Truncate(b.Len() - 1)
	}
}

// Text answers the text under a key; false when there is none.
func (o Object) Text(key string) (string, bool) {
	for _, f := range o {
		if f.Key == key {
			text, ok := f.Value.(string)
			return text, ok
		}
	}
	return "", false
}

// Without answers the object without a key.
func (o Object) Without(key string) Object {
	out := make(Object, 0, len(o))
	for _, f := range o {
		if f.Key != key {
			out = append(out, f)
		}
	}
	return out
}

// Texts answers the object with every text in it replaced by what change answers. A path is keys, and places in lists from 0,
// joined by dots.
func (o Object) Texts(change func(path, text string) string) Object {
	changed, _ := texts("", o, change).(Object)
	return changed
}

func texts(path string, value any, change func(path, text string) string) any {
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch v := value.(type) {
	case Object:
		out := make(Object, 0, len(v))
		for _, f := range v {
			out = append(out, Field{f.Key, texts(below(f.Key), f.Value, change)})
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for i, item := range v {
			out = append(out, texts(below(strconv.Itoa(i)), item, change))
		}
		return out
	case string:
		return change(path, v)
	default:
		return value
	}
}

// fromNode answers a value of a document as an object holds it.
func fromNode(n *yamltree.Node) any {
	switch n.Kind {
	case yamltree.Map:
		out := Object{}
		for _, e := range n.Entries {
			out = append(out, Field{e.Key, fromNode(e.Value)})
		}
		return out
	case yamltree.List:
		out := []any{}
		for _, item := range n.Items {
			out = append(out, fromNode(item))
		}
		return out
	case yamltree.String:
		return n.Text
	case yamltree.Bool:
		return n.True
	case yamltree.Int, yamltree.Float:
		if json.Valid([]byte(n.Text)) {
			return json.Number(n.Text)
		}
		return n.Text // such as 0x1f, which JSON does not know
	case yamltree.Null:
	}
	return nil
}

// node answers the object as it must read once it stands in a document.
func (o Object) node() *yamltree.Node {
	root, flaw := yamltree.Parse(o.JSON())
	if flaw != nil {
		return &yamltree.Node{Kind: -1} // nothing is the same as it
	}
	return root
}

// render writes an entry as lines of a block list whose dashes stand at a column from 0.
type render func(entry Object, column int) string

// block writes an entry as people do.
func block(entry Object, column int) string {
	text, err := yaml.MarshalWithOptions(yamlValue(entry), yaml.Indent(2), yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		return ""
	}
	var b strings.Builder
	first := true
	for line := range strings.Lines(string(text)) {
		switch {
		case first:
			b.WriteString(strings.Repeat(" ", column) + "- ")
			first = false
		case strings.TrimSpace(line) != "":
			b.WriteString(strings.Repeat(" ", column+2))
		}
		b.WriteString(line)
	}
	return b.String()
}

// flow writes an entry as JSON, which leaves nothing to a style.
func flow(entry Object, column int) string {
	return strings.Repeat(" ", column) + "- " + entry.JSON() + "\n"
}

func yamlValue(value any) any {
	switch v := value.(type) {
	case Object:
		out := make(yaml.MapSlice, 0, len(v))
		for _, f := range v {
			out = append(out, yaml.MapItem{Key: f.Key, Value: yamlValue(f.Value)})
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, yamlValue(item))
		}
		return out
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // what does not fit reads otherwise, and is then written as JSON
		return f
	default:
		return value
	}
}
