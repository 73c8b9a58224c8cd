// Package inputschema checks arguments against the JSON Schema that an MCP server wrote.
//
// Such a schema is a stranger's text. It is read as draft 2020-12 unless it names another dialect, nothing is fetched for it,
// and it cannot cost more than its bounds: bytes, depth and subschemas when it is compiled, and steps when arguments are
// checked, because a few references to themselves make a small schema take for ever.
//
// The check is there to give a model a sentence before the server is asked. The server checks too, so where Go cannot run
// what a schema says (a look-ahead in a pattern), the check lets pass.
package inputschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a schema and of a check.
const (
	MaxBytes      = 512 << 10
	MaxDepth      = 64
	MaxSubschemas = 20_000
	MaxSteps      = 200_000
)

// location names the one document that a compiler knows.
const location = "tool:///schema"

// Schema checks arguments. Safe for concurrent use.
type Schema struct {
	names []string

	mu       sync.Mutex // one check at a time: the meter counts for one
	compiled *jsonschema.Schema
	meter    *meter
}

// Names answers the arguments that the schema's root names, in no order.
func (s *Schema) Names() []string { return s.names }

// Compile reads a schema. Its errors are sentences that say why the tool cannot be used.
func Compile(text []byte) (*Schema, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("its schema has %d bytes; at most %d are read", len(text), MaxBytes)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, errors.New("its schema is not JSON")
	}
	root, ok := document.(map[string]any)
	if !ok || root["type"] != "object" {
		return nil, errors.New("the root of its schema does not say `type: object`")
	}
	nodes := 0
	if err := bounded(document, 0, &nodes); err != nil {
		return nil, err
	}
	m := &meter{}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(nothing{})
	compiler.UseRegexpEngine(compilePattern)
	compiler.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     "tool:///steps",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return m, nil },
	})
	compiler.AssertVocabs()
	if err := compiler.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("its schema cannot be read: %s", reason(err))
	}
	compiled, err := compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("its schema cannot be used: %s", reason(err))
	}
	s := &Schema{compiled: compiled, meter: m}
	for name := range compiled.Properties {
		s.names = append(s.names, name)
	}
	return s, nil
}

// Arguments counts the properties that a schema's root names, without compiling it; 0 for what is no schema.
func Arguments(text []byte) int {
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(text, &root) != nil {
		return 0
	}
	return len(root.Properties)
}

func bounded(value any, depth int, nodes *int) error {
	if *nodes++; depth > MaxDepth || *nodes > MaxSubschemas {
		return fmt.Errorf("its schema is deeper than %d levels or has more than %d parts", MaxDepth, MaxSubschemas)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if err := bounded(inner, depth+1, nodes); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := bounded(inner, depth+1, nodes); err != nil {
				return err
			}
		}
	}
	return nil
}

// reason shortens the library's error to what a person needs: the first line without our own file name.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if cause, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err); ok {
			leaf := deepest(cause)
			return fmt.Sprintf("at %q %s", "/"+strings.Join(leaf.InstanceLocation, "/"), said(leaf))
		}
	}
	return strings.ReplaceAll(line, location, "")
}

// nothing loads nothing: a reference out of the schema is a fault of the schema.
type nothing struct{}

// Load implements [jsonschema.URLLoader].
func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is not part of the schema, and nothing is fetched", url)
}

// errSteps ends a check that costs too much.
var errSteps = errors.New("too many steps")

// meter is visited once for every schema that is applied to a value.
type meter struct{ steps int }

// Validate implements [jsonschema.SchemaExt]. It panics past the bound, as a validation cannot be ended otherwise; Check recovers.
func (m *meter) Validate(*jsonschema.ValidatorContext, any) {
	if m.steps++; m.steps > MaxSteps {
		panic(errSteps)
	}
}
