package session

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// modernHeaders are those of a modern request. A process never sees them.
func modernHeaders(method string) http.Header {
	return http.Header{http.CanonicalHeaderKey(headerVersion): {modern}, headerMethod: {method}}
}

// headers answers what a request over modern HTTP says of itself beside its body; nil elsewhere. name is the tool, the prompt or the
// address of the resource, arguments are a tool's.
func (s *Session) headers(method, name string, arguments []byte) http.Header {
	if !s.modern || s.options.HTTP == nil {
		return nil
	}
	header := modernHeaders(method)
	if name != "" {
		header.Set(headerName, headerValue(name))
	}
	if method != methodCall {
		return header
	}
	if all := s.bindings.Load(); all != nil {
		for _, b := range (*all)[name] {
			if value, ok := b.find(arguments); ok {
				header.Set(headerParam+b.header, value)
			}
		}
	}
	return header
}

// binding is an argument of a tool that is to be seen in a header as well.
type binding struct {
	header string
	path   []string
}

// find answers the argument as a header has it. One that is absent, null or no primitive has none.
func (b binding) find(arguments []byte) (string, bool) {
	value := arguments
	for _, name := range b.path {
		members, err := wire.Object(value)
		if err != nil {
			return "", false
		}
		if value = wire.Get(members, name); value == nil {
			return "", false
		}
	}
	switch text, ok := wire.Text(value); {
	case ok:
		return headerValue(text), true
	case string(value) == "true" || string(value) == "false":
		return string(value), true
	default:
		return integer(value)
	}
}

// integer reads a whole number that every reader of JSON reads alike.
func integer(value []byte) (string, bool) {
	const most = 1<<53 - 1
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return strconv.FormatInt(n, 10), n >= -most && n <= most
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != float64(int64(f)) || f < -most || f > most {
		return "", false
	}
	return strconv.FormatInt(int64(f), 10), true
}

// headerValue writes a text so that a header carries it: as it is, or in base64 between marks.
func headerValue(text string) string {
	const begin, end = "=?base64?", "?="
	plain := strings.TrimSpace(text) == text && (!strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end))
	for i := range len(text) {
		plain = plain && text[i] >= ' ' && text[i] <= '~'
	}
	if plain {
		return text
	}
	return begin + base64.StdEncoding.EncodeToString([]byte(text)) + end
}

const (
	annotation = "x-mcp-header"
	// maxSchemaDepth bounds how deep a schema is searched for annotations; one that is nested deeper cannot be used.
	maxSchemaDepth = 200
)

// bindingsOf answers which arguments of a tool go into headers, and an error that says why the tool cannot be used.
func bindingsOf(tool []wire.Member) ([]binding, error) {
	schema := wire.Get(tool, "inputSchema")
	if !strings.Contains(string(schema), annotation) {
		return nil, nil
	}
	var root any
	decoder := json.NewDecoder(strings.NewReader(string(schema)))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("its input schema cannot be read: %w", err)
	}
	w := annotations{seen: map[string]bool{}}
	err := w.walk(root, nil, 0, true)
	return w.found, err
}

// annotations collects the annotations of a schema.
type annotations struct {
	found []binding
	seen  map[string]bool
}

// walk looks at a schema, or at anything within one. reachable says that nothing but properties leads here from the root.
func (w *annotations) walk(node any, path []string, depth int, reachable bool) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("its input schema is nested more than %d deep", maxSchemaDepth)
	}
	switch n := node.(type) {
	case []any:
		for _, element := range n {
			if err := w.walk(element, path, depth+1, false); err != nil {
				return err
			}
		}
	case map[string]any:
		if value, annotated := n[annotation]; annotated {
			if err := w.add(value, n["type"], path, reachable); err != nil {
				return err
			}
		}
		for keyword, member := range n {
			if err := w.member(keyword, member, path, depth, reachable); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *annotations) member(keyword string, member any, path []string, depth int, reachable bool) error {
	switch keyword {
	case annotation, "const", "enum", "default", "examples":
		return nil // values, not schemas
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		named, ok := member.(map[string]any)
		if !ok {
			return nil
		}
		for name, schema := range named {
			at := append(append([]string(nil), path...), name)
			if err := w.walk(schema, at, depth+1, reachable && keyword == "properties"); err != nil {
				return err
			}
		}
		return nil
	default:
		return w.walk(member, path, depth+1, false)
	}
}

func (w *annotations) add(value, kind any, path []string, reachable bool) error {
	where := strings.Join(path, ".")
	name, ok := value.(string)
	switch {
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s stands at %q, which is no property of the arguments", annotation, where)
	case !ok || !token(name):
		return fmt.Errorf("%s of %q is no name of a header", annotation, where)
	case kind != "string" && kind != "integer" && kind != "boolean":
		return fmt.Errorf("%s of %q stands on a value that is no string, integer or boolean", annotation, where)
	case w.seen[strings.ToLower(name)]:
		return fmt.Errorf("%s names the header %q twice", annotation, name)
	}
	w.seen[strings.ToLower(name)] = true
	w.found = append(w.found, binding{header: name, path: path})
	return nil
}

// token reports whether a text can be part of the name of a header.
func token(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}
