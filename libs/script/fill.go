package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// filler puts values in the place of {{placeholders}}:
//
//	{{opening}}               the opening, whole
//	{{fact.<name>}}           a fact of the scene
//	{{match.<n>}}             a group of the rule's regex
//	{{result.<tool>}}         the tool's last result, whole
//	{{result.<tool>.<path>}}  a value in it, when it is JSON: keys and list positions, with dots between
type filler struct {
	scene  Scene
	groups []string
}

// value fills every text in v. A text that is one placeholder and nothing else becomes the value itself, with its type.
func (f filler) value(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if name, whole := onePlaceholder(v); whole {
			return f.lookUp(name)
		}
		return f.text(v)
	case map[string]any:
		filled := make(map[string]any, len(v))
		for key, item := range v {
			value, err := f.value(item)
			if err != nil {
				return nil, err
			}
			filled[key] = value
		}
		return filled, nil
	case []any:
		filled := make([]any, len(v))
		for i, item := range v {
			value, err := f.value(item)
			if err != nil {
				return nil, err
			}
			filled[i] = value
		}
		return filled, nil
	default:
		return v, nil
	}
}

func (f filler) text(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}}")
		if !closed {
			return "", fault.New(fault.Invalid, "A placeholder is not closed: {{%s", rest)
		}
		value, err := f.lookUp(strings.TrimSpace(name))
		if err != nil {
			return "", err
		}
		out.WriteString(plain(value))
		text = after
	}
}

func (f filler) lookUp(name string) (any, error) {
	kind, rest, _ := strings.Cut(name, ".")
	switch kind {
	case "opening":
		return f.scene.Opening, nil
	case "fact":
		if value, known := f.scene.Facts[rest]; known {
			return value, nil
		}
	case "match":
		if n, err := strconv.Atoi(rest); err == nil && n >= 0 && n < len(f.groups) {
			return f.groups[n], nil
		}
	case "result":
		tool, path, deeper := strings.Cut(rest, ".")
		result, known := f.scene.Results[tool]
		if known && !deeper {
			return result, nil
		}
		var value any
		if known && json.Unmarshal([]byte(result), &value) == nil {
			if found, ok := descend(value, strings.Split(path, ".")); ok {
				return found, nil
			}
		}
	}
	return nil, fault.New(fault.Invalid, "Nothing fills {{%s}}.", name)
}

func descend(value any, path []string) (any, bool) {
	for _, key := range path {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

func onePlaceholder(text string) (name string, whole bool) {
	groups := regexp.MustCompile(`^\{\{\s*([^{}]+?)\s*\}\}$`).FindStringSubmatch(text)
	if groups == nil {
		return "", false
	}
	return groups[1], true
}

// plain answers a value as text, a structure as JSON.
func plain(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case map[string]any, []any:
		encoded, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(encoded)
	default:
		return fmt.Sprint(v)
	}
}
