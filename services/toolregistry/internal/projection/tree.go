package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// object is a JSON object that keeps the order of its members: a model reads arguments in it.
type object struct {
	names   []string
	members map[string]any
}

func newObject() *object { return &object{members: map[string]any{}} }

func (o *object) get(name string) any { return o.members[name] }

func (o *object) has(name string) bool {
	_, ok := o.members[name]
	return ok
}

func (o *object) set(name string, value any) {
	if !o.has(name) {
		o.names = append(o.names, name)
	}
	o.members[name] = value
}

func (o *object) remove(names ...string) {
	for _, name := range names {
		delete(o.members, name)
	}
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return slices.Contains(names, n) })
}

// without answers a copy that lacks some members. What they hold is shared: nothing here changes a value in place that it has not
// made itself.
func (o *object) without(names ...string) *object {
	kept := newObject()
	for _, name := range o.names {
		if !slices.Contains(names, name) {
			kept.set(name, o.members[name])
		}
	}
	return kept
}

// Bounds of a document: what is larger is not a schema that anybody offers.
const maxDepth, maxNodes = 64, 20_000

var (
	errTooDeep  = errors.New("has more levels or parts than are read")
	errNotAnAll = errors.New("is not one JSON value")
)

// parse reads one JSON value. Objects are *object, lists []any, numbers json.Number: digits stay as they are.
func parse(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	nodes := 0
	value, err := parseValue(decoder, 0, &nodes)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotAnAll
	}
	return value, nil
}

func parseValue(decoder *json.Decoder, depth int, nodes *int) (any, error) {
	if *nodes++; depth > maxDepth || *nodes > maxNodes {
		return nil, errTooDeep
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, errNotAnAll
	}
	switch token {
	case json.Delim('{'):
		o := newObject()
		for decoder.More() {
			name, err := decoder.Token()
			if err != nil {
				return nil, errNotAnAll
			}
			value, err := parseValue(decoder, depth+1, nodes)
			if err != nil {
				return nil, err
			}
			o.set(fmt.Sprint(name), value)
		}
		if _, err := decoder.Token(); err != nil {
			return nil, errNotAnAll
		}
		return o, nil
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			value, err := parseValue(decoder, depth+1, nodes)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		if _, err := decoder.Token(); err != nil {
			return nil, errNotAnAll
		}
		return list, nil
	default:
		return token, nil
	}
}

// write answers a value as compact JSON.
func write(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	writeValue(&b, encoder, value)
	return b.String()
}

func writeValue(b *bytes.Buffer, encoder *json.Encoder, value any) {
	switch v := value.(type) {
	case *object:
		b.WriteByte('{')
		for i, name := range v.names {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, encoder, name)
			b.WriteByte(':')
			writeValue(b, encoder, v.members[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, inner := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeValue(b, encoder, inner)
		}
		b.WriteByte(']')
	default:
		// A string, a number, a boolean or null: none of them can fail.
		_ = encoder.Encode(v)
		b.Truncate(b.Len() - 1)
	}
}

func same(a, b any) bool { return write(a) == write(b) }
