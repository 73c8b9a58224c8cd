package toolrule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// maxDepth bounds nesting: a condition has no use for more, and recursion for less.
const maxDepth = 200

// Arguments reads one JSON object as a condition sees it. Whole numbers are exact (int, or uint where that is too small), others
// are doubles. A name that is given twice, be it in another case, is refused: two readers of such a text could each believe another
// value, and one of them would be the rule. Empty text is an empty object.
func Arguments(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	value, err := read(decoder, 0)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments must be one JSON object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more text after the arguments")
	}
	return object, nil
}

func read(decoder *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the arguments are nested more than %d deep", maxDepth)
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, errors.New("the arguments are not JSON")
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return readObject(decoder, depth)
		}
		return readList(decoder, depth)
	case json.Number:
		return number(t)
	default:
		return token, nil
	}
}

func readObject(decoder *json.Decoder, depth int) (map[string]any, error) {
	object, given := map[string]any{}, map[string]string{}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errors.New("the arguments are not JSON")
		}
		switch earlier, twice := given[folded(name)]; {
		case twice && earlier == name:
			return nil, fmt.Errorf("`%s` is given twice; give it once", name)
		case twice:
			return nil, fmt.Errorf("`%s` and `%s` differ only in case; give one", earlier, name)
		}
		given[folded(name)] = name
		if object[name], err = read(decoder, depth+1); err != nil {
			return nil, err
		}
	}
	return object, closing(decoder)
}

// folded answers the one spelling of a name for all that differ from it only in case.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		next := unicode.SimpleFold(r)
		for next > r {
			r, next = next, unicode.SimpleFold(next)
		}
		return next
	}, name)
}

func readList(decoder *json.Decoder, depth int) ([]any, error) {
	list := []any{}
	for decoder.More() {
		member, err := read(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, member)
	}
	return list, closing(decoder)
}

func closing(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return errors.New("the arguments are not JSON")
	}
	return nil
}

func number(n json.Number) (any, error) {
	if whole, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return whole, nil
	}
	if whole, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return whole, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %.40s is out of range", n.String())
	}
	return f, nil
}
