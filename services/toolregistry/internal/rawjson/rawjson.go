// Package rawjson changes the outermost members of a JSON object and leaves every other byte as it was: numbers keep their
// digits, members their order, and what nobody here knows passes through.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Member is a name and its value.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object is a JSON object, in order. The zero value is an empty one. Changing it answers a new object; values are shared.
type Object []Member

// few is how many members are searched one after the other. Looking through more for each that comes would take whoever reads a
// large object time that grows with the square of its members.
const few = 32

// Parse reads one object. A name that stands in it twice is refused: two readers would not read the same.
func Parse(text []byte) (Object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("it is not one JSON object")
	}
	object := Object{}
	var seen map[string]bool // once there are many
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		text, ok := name.(string)
		if !ok {
			return nil, errors.New("it is not JSON")
		}
		if seen[text] || seen == nil && object.Has(text) {
			return nil, fmt.Errorf("it has the member %q twice", text)
		}
		member := Member{Name: text}
		if err := decoder.Decode(&member.Value); err != nil {
			return nil, fmt.Errorf("it is not JSON: %w", err)
		}
		object = append(object, member)
		switch {
		case seen != nil:
			seen[text] = true
		case len(object) > few:
			seen = object.names()
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the object")
	}
	return object, nil
}

func (o Object) names() map[string]bool {
	names := make(map[string]bool, len(o))
	for _, m := range o {
		names[m.Name] = true
	}
	return names
}

// Get answers a member's value; nil when there is none.
func (o Object) Get(name string) json.RawMessage {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Has reports whether there is a member of that name.
func (o Object) Has(name string) bool { return o.Get(name) != nil }

// Text answers a member that is a string.
func (o Object) Text(name string) (text string, ok bool) {
	value := o.Get(name)
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(value, &text) == nil
}

// Object answers a member that is an object.
func (o Object) Object(name string) (Object, bool) {
	value := o.Get(name)
	if value == nil {
		return nil, false
	}
	object, err := Parse(value)
	return object, err == nil
}

// With answers the object with a member's value replaced, or added at the end.
func (o Object) With(name string, value json.RawMessage) Object {
	changed := slices.Clone(o)
	for i := range changed {
		if changed[i].Name == name {
			changed[i].Value = value
			return changed
		}
	}
	return append(changed, Member{name, value})
}

// Without answers the object without some members.
func (o Object) Without(names ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return slices.Contains(names, m.Name) })
}

// Bytes writes the object.
func (o Object) Bytes() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(Quote(m.Name))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Quote writes a string, without escaping what only HTML minds.
func Quote(text string) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return json.RawMessage(`""`) // a string cannot fail
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Line writes a document without the space between its parts, so that it is one line. What is not JSON stays as it is.
func Line(document []byte) []byte {
	if bytes.IndexByte(document, '\n') < 0 && bytes.IndexByte(document, '\r') < 0 {
		return document
	}
	var b bytes.Buffer
	if err := json.Compact(&b, document); err != nil {
		return document
	}
	return b.Bytes()
}
