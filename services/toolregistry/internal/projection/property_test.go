package projection_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/inputschema"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/projection"
)

var keywords = []string{
	"type", "properties", "required", "additionalProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "enum", "const",
	"$ref", "$defs", "definitions", "$anchor", "$id", "$schema", "$dynamicRef", "pattern", "patternProperties", "format", "description",
	"title", "if", "then", "dependencies", "dependentSchemas", "minimum", "exclusiveMinimum", "unevaluatedProperties", "propertyNames",
	"a", "b", "filter[x]", "",
}

var scalars = []any{
	nil, true, false, 0, -1.5, json.Number("9007199254740993"), "object", "array", "string", "#", "#/$defs/a", "#/properties/a", "#a",
	"#/anyOf/0", "https://example.com/s", "http://json-schema.org/draft-07/schema#", "a)(", "^x$", "a", "b", "filter[x]",
}

// anything draws JSON that resembles a schema, in the wrong places too.
func anything(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		switch {
		case depth == 0 || kind < 2:
			return rapid.SampledFrom(scalars).Draw(t, "scalar")
		case kind < 4:
			return rapid.SliceOfN(anything(depth-1), 0, 3).Draw(t, "list")
		default:
			return rapid.MapOfN(rapid.SampledFrom(keywords), anything(depth-1), 0, 5).Draw(t, "object")
		}
	})
}

// schema draws something that is mostly a schema: what a keyword holds is of the right kind.
func schema(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		s := map[string]any{}
		names := rapid.SampledFrom([]string{"a", "b", "c", "filter[x]", "$top"})
		inner := func(label string) any {
			if depth == 0 {
				return map[string]any{"type": rapid.SampledFrom([]string{"string", "array", "object", "integer"}).Draw(t, label)}
			}
			return schema(depth-1).Draw(t, label)
		}
		for _, keyword := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			"type", "properties", "required", "closed", "items", "anyOf", "oneOf", "allOf", "not", "const", "$ref", "$defs", "pattern", "patternProperties",
		}), 0, 5, rapid.ID).Draw(t, "keywords") {
			switch keyword {
			case "type":
				s["type"] = rapid.SampledFrom([]string{"object", "object", "array", "string"}).Draw(t, "type")
			case "properties", "patternProperties", "$defs":
				members := map[string]any{}
				for _, name := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID).Draw(t, "names") {
					members[name] = inner(name)
				}
				s[keyword] = members
			case "required":
				s["required"] = rapid.SliceOfNDistinct(names, 0, 3, rapid.ID).Draw(t, "required")
			case "closed":
				s["additionalProperties"] = false
			case "items", "not":
				s[keyword] = inner(keyword)
			case "anyOf", "oneOf", "allOf":
				list := []any{}
				for range rapid.IntRange(1, 3).Draw(t, "branches") {
					list = append(list, inner(keyword))
				}
				s[keyword] = list
			case "const":
				s["const"] = rapid.SampledFrom(scalars).Draw(t, "const")
			case "$ref":
				s["$ref"] = rapid.SampledFrom([]string{"#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/anyOf/0"}).Draw(t, "ref")
			case "pattern":
				s["pattern"] = rapid.SampledFrom([]string{"^a$", "(?!x)", "[", "a)("}).Draw(t, "pattern")
			}
		}
		return s
	})
}

// checkShown holds for any text: what is shown to a provider is what it takes.
func checkShown(t *rapid.T, text string) {
	usable := true
	if _, err := inputschema.Compile([]byte(text)); err != nil {
		usable = false
	}
	results := projection.All(text)
	for _, provider := range dialect.Providers() {
		result := results[provider]
		switch {
		case result.Refused != "":
			require.Empty(t, result.Schema)
		case result.Schema != "":
			require.LessOrEqual(t, len(result.Schema), dialect.MaxBytes)
			require.NoError(t, dialect.Check(provider, []byte(result.Schema)), "%s\nfrom %s", result.Schema, text)
			again := projection.All(result.Schema)[provider]
			require.Empty(t, again, "a projection is its own projection: %s", result.Schema)
		case usable:
			require.NoError(t, dialect.Check(provider, []byte(text)), text)
		}
	}
}

func TestAnyJSONIsProjectedToWhatTheProviderTakesOrRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(anything(5).Draw(t, "value"))
		require.NoError(t, err)
		checkShown(t, string(text))
	})
}

func TestAnySchemaOfAnObjectIsProjectedToWhatTheProviderTakesOrRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn, ok := schema(3).Draw(t, "schema").(map[string]any)
		require.True(t, ok)
		drawn["type"] = "object"
		text, err := json.Marshal(drawn)
		require.NoError(t, err)
		checkShown(t, string(text))
	})
}

// A projection without alternatives may allow more than the schema, and never less.
func TestAProjectionRefusesNothingThatTheSchemaTakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn, ok := schema(2).Draw(t, "schema").(map[string]any)
		require.True(t, ok)
		drawn["type"] = "object"
		delete(drawn, "anyOf")
		delete(drawn, "oneOf")
		text, err := json.Marshal(drawn)
		require.NoError(t, err)
		original := compiled(string(text))
		if original == nil {
			return
		}
		arguments := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "filter[x]", "$top"}), anything(1), 0, 3).Draw(t, "arguments")
		value := any(arguments)
		if original.Validate(value) != nil {
			return
		}
		for provider, result := range projection.All(string(text)) {
			if shown := compiled(result.Schema); shown != nil {
				require.NoError(t, shown.Validate(value), "%s: %s\nfrom %s", provider, result.Schema, text)
			}
		}
	})
}

func compiled(text string) *jsonschema.Schema {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil
	}
	compiler := jsonschema.NewCompiler()
	if compiler.AddResource("tool:///schema", document) != nil {
		return nil
	}
	s, err := compiler.Compile("tool:///schema")
	if err != nil {
		return nil
	}
	return s
}
