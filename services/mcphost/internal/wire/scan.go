package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// maxDepth is how deep values may be nested. A program that reads them recursively survives this.
const maxDepth = 10000

// maxMembers bounds the members of an object that is taken apart: each takes several times the memory of its bytes.
const maxMembers = 100_000

var errJSON = errors.New("it is no JSON")

// ErrMany is what is wrong with a value of more parts than are taken apart.
var ErrMany = errors.New("it has too many parts")

// Member is a member of an object, its value as it was written.
type Member struct {
	Name  string
	Value []byte
}

// Object answers the members of an object, in order, repeated names included. All of the object is checked to be JSON.
func Object(data []byte) ([]Member, error) { return object(data, nil) }

func object(data []byte, members []Member) ([]Member, error) {
	i := space(data, 0)
	if i >= len(data) || data[i] != '{' {
		return nil, errJSON
	}
	end, err := scanObject(data, i, 0, func(name, value []byte) error {
		text, ok := Text(name)
		if !ok {
			return errJSON
		}
		if len(members) == maxMembers {
			return ErrMany
		}
		members = append(members, Member{Name: text, Value: value})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if space(data, end) != len(data) {
		return nil, errJSON
	}
	return members, nil
}

// Elements answers the elements of an array, each as it was written. More than most of them are [ErrMany].
func Elements(data []byte, most int) ([][]byte, error) {
	i := space(data, 0)
	if i >= len(data) || data[i] != '[' {
		return nil, errJSON
	}
	var elements [][]byte
	end, err := scanArray(data, i, 0, func(value []byte) error {
		if len(elements) == most {
			return ErrMany
		}
		elements = append(elements, value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if space(data, end) != len(data) {
		return nil, errJSON
	}
	return elements, nil
}

// Get answers the last member of a name, and nil when there is none.
func Get(members []Member, name string) []byte {
	for i := len(members) - 1; i >= 0; i-- {
		if members[i].Name == name {
			return members[i].Value
		}
	}
	return nil
}

// Build writes an object of members.
func Build(members []Member) []byte {
	size := 2
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, Quote(m.Name)...)
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
}

// Set answers the members with one replaced, all of that name, or added at the end. The members given are left as they are.
func Set(members []Member, name string, value []byte) []Member {
	out := make([]Member, 0, len(members)+1)
	done := false
	for _, m := range members {
		if m.Name != name {
			out = append(out, m)
		} else if !done {
			out, done = append(out, Member{Name: name, Value: value}), true
		}
	}
	if !done {
		out = append(out, Member{Name: name, Value: value})
	}
	return out
}

// Without answers the members but those of some names.
func Without(members []Member, names ...string) []Member {
	out := make([]Member, 0, len(members))
	for _, m := range members {
		if !slices.Contains(names, m.Name) {
			out = append(out, m)
		}
	}
	return out
}

// Text reads a JSON text.
func Text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return "", false
	}
	return text, true
}

// Quote writes a text as JSON.
func Quote(text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			data, err := json.Marshal(text)
			if err != nil {
				panic(fmt.Errorf("a text does not marshal: %w", err))
			}
			return data
		}
	}
	b := append(make([]byte, 0, len(text)+2), '"')
	return append(append(b, text...), '"')
}

// scanValue answers the index behind the value at i.
func scanValue(d []byte, i, depth int) (int, error) {
	if i >= len(d) || depth > maxDepth {
		return 0, errJSON
	}
	switch c := d[i]; {
	case c == '"':
		return scanText(d, i)
	case c == '{':
		return scanObject(d, i, depth, nil)
	case c == '[':
		return scanArray(d, i, depth, nil)
	case c == '-' || c >= '0' && c <= '9':
		return scanNumber(d, i)
	default:
		for _, word := range []string{"true", "false", "null"} {
			if c == word[0] && len(d)-i >= len(word) && string(d[i:i+len(word)]) == word {
				return i + len(word), nil
			}
		}
		return 0, errJSON
	}
}

// scanObject reads the object at i and shows each member, the name with its quotes.
func scanObject(d []byte, i, depth int, show func(name, value []byte) error) (int, error) {
	i = space(d, i+1)
	if i < len(d) && d[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(d) || d[i] != '"' {
			return 0, errJSON
		}
		nameEnd, err := scanText(d, i)
		if err != nil {
			return 0, err
		}
		at := space(d, nameEnd)
		if at >= len(d) || d[at] != ':' {
			return 0, errJSON
		}
		at = space(d, at+1)
		end, err := scanValue(d, at, depth+1)
		if err != nil {
			return 0, err
		}
		if show != nil {
			if err := show(d[i:nameEnd], d[at:end]); err != nil {
				return 0, err
			}
		}
		more, next, err := separator(d, end, '}')
		if err != nil || !more {
			return next, err
		}
		i = next
	}
}

func scanArray(d []byte, i, depth int, show func(value []byte) error) (int, error) {
	i = space(d, i+1)
	if i < len(d) && d[i] == ']' {
		return i + 1, nil
	}
	for {
		end, err := scanValue(d, i, depth+1)
		if err != nil {
			return 0, err
		}
		if show != nil {
			if err := show(d[i:end]); err != nil {
				return 0, err
			}
		}
		more, next, err := separator(d, end, ']')
		if err != nil || !more {
			return next, err
		}
		i = next
	}
}

// separator reads what stands behind a value: a comma, with the place of the next value, or the end.
func separator(d []byte, i int, end byte) (more bool, next int, err error) {
	i = space(d, i)
	switch {
	case i >= len(d):
		return false, 0, errJSON
	case d[i] == ',':
		return true, space(d, i+1), nil
	case d[i] == end:
		return false, i + 1, nil
	default:
		return false, 0, errJSON
	}
}

func scanText(d []byte, i int) (int, error) {
	for i++; i < len(d); i++ {
		switch c := d[i]; {
		case c == '"':
			return i + 1, nil
		case c < ' ':
			return 0, errJSON
		case c == '\\':
			i++
			if i >= len(d) {
				return 0, errJSON
			}
			if d[i] == 'u' {
				if i+4 >= len(d) || !hex(d[i+1]) || !hex(d[i+2]) || !hex(d[i+3]) || !hex(d[i+4]) {
					return 0, errJSON
				}
				i += 4
			} else if bytes.IndexByte([]byte(`"\/bfnrt`), d[i]) < 0 {
				return 0, errJSON
			}
		}
	}
	return 0, errJSON
}

func hex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func scanNumber(d []byte, i int) (int, error) {
	if d[i] == '-' {
		i++
	}
	whole := digits(d, i)
	if whole == i || d[i] == '0' && whole > i+1 {
		return 0, errJSON
	}
	i = whole
	if i < len(d) && d[i] == '.' {
		fraction := digits(d, i+1)
		if fraction == i+1 {
			return 0, errJSON
		}
		i = fraction
	}
	if i < len(d) && (d[i] == 'e' || d[i] == 'E') {
		i++
		if i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		exponent := digits(d, i)
		if exponent == i {
			return 0, errJSON
		}
		i = exponent
	}
	return i, nil
}

func digits(d []byte, i int) int {
	for i < len(d) && d[i] >= '0' && d[i] <= '9' {
		i++
	}
	return i
}

func space(d []byte, i int) int {
	for i < len(d) && (d[i] == ' ' || d[i] == '\t' || d[i] == '\n' || d[i] == '\r') {
		i++
	}
	return i
}
