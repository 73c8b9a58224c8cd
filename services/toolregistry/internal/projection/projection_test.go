package projection_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/projection"
)

// taken answers what a provider is shown, which passes its rules.
func taken(t *testing.T, provider, schema string) string {
	t.Helper()
	result := projection.All(schema)[provider]
	require.Empty(t, result.Refused, schema)
	shown := result.Schema
	if shown == "" {
		shown = schema
	}
	require.NoError(t, dialect.Check(provider, []byte(shown)), shown)
	return shown
}

func TestWhatAProviderTakesIsLeftAlone(t *testing.T) {
	t.Parallel()
	require.Empty(t, projection.All(`{ "type":"object","$schema":"https://json-schema.org/draft/2020-12/schema",
		"properties":{"b":{"type":"string","enum":["x"]},"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/n"}]}},"required":["b"],
		"$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}},"additionalProperties":false}`))
}

func TestProjectionsKeepWhatTheSchemaMeans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ provider, schema, want string }{
		"an object without properties": {
			dialect.OpenAI, `{"type":"object"}`, `{"type":"object","properties":{}}`,
		},
		"an array without items": {
			dialect.OpenAI, `{"type":"object","properties":{"a":{"type":["array","null"]}}}`,
			`{"type":"object","properties":{"a":{"type":["array","null"],"items":{}}}}`,
		},
		"alternatives of what is required": {
			dialect.Anthropic, `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"},"k":{}},"required":["k"],"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"},"k":{}},"required":["k"],"description":"Fit at least one of these: (1) ` + "`a`; (2) `b`" + `."}`,
		},
		"alternatives of objects": {
			dialect.OpenAI, `{"type":"object","description":"Attach.","oneOf":[
				{"type":"object","properties":{"kind":{"const":"text"},"text":{"type":"string"}},"required":["kind","text"],"additionalProperties":false},
				{"$ref":"#/$defs/url"},{"type":"null"}],
				"$defs":{"url":{"title":"By address","type":"object","properties":{"kind":{"const":"url"},"url":{"type":"string"}},"required":["kind","url"],"additionalProperties":false}}}`,
			`{"type":"object","description":"Attach.\nFit exactly one of these: (1) ` + "`kind` is \\\"text\\\", `text`; (2) `kind` is \\\"url\\\", `url`" + ` (By address).",
				"$defs":{"url":{"title":"By address","type":"object","properties":{"kind":{"const":"url"},"url":{"type":"string"}},"required":["kind","url"],"additionalProperties":false}},
				"properties":{"kind":{"enum":["text","url"]},"text":{"type":"string"},"url":{"type":"string"}},"additionalProperties":false,"required":["kind"]}`,
		},
		"parts that all hold": {
			dialect.Anthropic, `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"a":{"minLength":2},"b":{}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string","minLength":2},"b":{}},"required":["a"]}`,
		},
		"a reference as the root": {
			dialect.Anthropic, `{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}}}`,
			`{"type":"object","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}},"properties":{"n":{"$ref":"#/$defs/n"}}}`,
		},
		"names that Anthropic does not take": {
			dialect.Anthropic, `{"type":"object","properties":{"filter[id]":{"type":"string"},"ok":{}},"required":["filter[id]"],"additionalProperties":false}`,
			`{"type":"object","properties":{"ok":{}},"required":["filter[id]"],"additionalProperties":false,
				"description":"It takes the argument \"filter[id]\" too, by exactly this name.","patternProperties":{"^filter\\[id\\]$":{"type":"string"}}}`,
		},
		"a property that is all of another schema": {
			dialect.OpenAI, `{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/s"}],"description":"A."}},"$defs":{"s":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"description":"A.","$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`,
		},
		"parts that all hold, deeper": {
			dialect.OpenAI, `{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/s"},{"maxLength":9}]}},"$defs":{"s":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"maxLength":9,"type":"string"}},"$defs":{"s":{"type":"string"}}}`,
		},
		"what is refused at the root is told": {
			dialect.OpenAI, `{"type":"object","properties":{"n":{"type":"integer"}},"not":{"required":["x"]},"enum":[{"n":9007199254740993}]}`,
			`{"type":"object","properties":{"n":{"type":"integer"}},"description":"The arguments are one of [{\"n\":9007199254740993}].\nArguments that fit this schema are refused: {\"required\":[\"x\"]}."}`,
		},
		"a pattern that nobody can read": {
			dialect.Anthropic, `{"type":"object","properties":{"a":{"type":"string","pattern":"a)("},"b":{"type":"string","pattern":"^(?!x)"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"It has the form ` + "`a)(`" + `."},"b":{"type":"string","pattern":"^(?!x)"}}}`,
		},
		"an older draft": {
			dialect.Anthropic, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}],"additionalItems":false}},"dependencies":{"a":["b"]}}`,
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}],"items":false}},"dependentRequired":{"a":["b"]},"dependentSchemas":{}}`,
		},
		"the oldest draft": {
			dialect.OpenAI, `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
			`{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}}}`,
		},
		"a reference into what was folded away": {
			dialect.Anthropic, `{"type":"object","properties":{"again":{"$ref":"#/anyOf/0/properties/a"}},"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{}}}]}`,
			`{"type":"object","properties":{"again":{"$ref":"#/$defs/moved_1"},"a":{"type":"string"},"b":{}},
				"description":"Fit at least one of these: (1) some of ` + "`a`; (2) some of `b`" + `.","$defs":{"moved_1":{"type":"string"}}}`,
		},
		"a reference to an anchor": {
			dialect.OpenAI, `{"type":"object","properties":{"a":{"$ref":"#here"},"b":{"$anchor":"here","type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/moved_1"},"b":{"type":"string"}},"$defs":{"moved_1":{"type":"string"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := taken(t, c.provider, c.schema)
			require.JSONEq(t, c.want, shown, shown)
		})
	}
}

func TestArgumentsStayInTheirOrder(t *testing.T) {
	t.Parallel()
	shown := taken(t, dialect.OpenAI, `{"type":"object","properties":{"z":{"type":"array"},"a":{},"m":{}}}`)
	require.Equal(t, `{"type":"object","properties":{"z":{"type":"array","items":{}},"a":{},"m":{}}}`, shown)
}

func TestWhatCannotBeShownIsRefusedForThatProviderAlone(t *testing.T) {
	t.Parallel()
	deep := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		deep += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"},{"type":"object"}]},`, i, i+1, i+1)
	}
	deep += `"d40":{"type":"object","properties":{"x":{}}}}}`
	results := projection.All(deep)
	require.NotContains(t, results, dialect.Anthropic)
	require.Contains(t, results[dialect.OpenAI].Refused, "takes too long")

	for schema, why := range map[string]string{
		`[]`:                                "is not an object",
		`{`:                                 "is not one JSON value",
		`{"type":"object"} {}`:              "is not one JSON value",
		`{"type":"array"}`:                  "`type: object`",
		`{"type":"object","anyOf":[false]}`: "fits no arguments",
		`{"type":"object","anyOf":[{"type":"string"}]}`:                                               "fits no arguments",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/s"}}}`:                       "not within it",
		`{"type":"object","description":"` + strings.Repeat("x", dialect.MaxBytes) + `"}`:             "at most",
		`{"type":"object","allOf":[{"description":"` + strings.Repeat("x", dialect.MaxBytes) + `"}]}`: "at most",
		`{"type":"object","not":` + strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 101):  "more levels",
	} {
		for _, provider := range dialect.Providers() {
			require.Contains(t, projection.All(schema)[provider].Refused, why, schema)
		}
	}
}

func TestEveryResultNamesAKnownProvider(t *testing.T) {
	t.Parallel()
	for provider, result := range projection.All(`{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}`) {
		require.Contains(t, dialect.Providers(), provider)
		require.True(t, json.Valid([]byte(result.Schema)))
	}
}
