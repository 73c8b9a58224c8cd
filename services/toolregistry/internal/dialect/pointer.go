package dialect

import (
	"net/url"
	"strconv"
	"strings"
)

// Step follows one step of a JSON pointer, as it is written in a reference, into a member or an element.
func Step(at any, step string) (any, bool) {
	name := Unescape(step)
	switch v := at.(type) {
	case map[string]any:
		inner, ok := v[name]
		return inner, ok
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	default:
		return nil, false
	}
}

// Unescape answers the name that a step of a pointer in a reference means.
func Unescape(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}
