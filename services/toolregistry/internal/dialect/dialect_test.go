package dialect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
)

func TestEachProviderRefusesItsOwn(t *testing.T) {
	t.Parallel()
	const both = "both"
	for schema, c := range map[string]struct{ refuses, why string }{
		`{"type":"object","properties":{}}`: {"", ""},
		`null`:                              {both, "`type: object`"},
		`{"properties":{}}`:                 {both, "`type: object`"},
		`{"type":"object","properties":{},"oneOf":[{}]}`:                                            {both, "`oneOf` at its root"},
		`{"type":"object","properties":{},"not":{}}`:                                                {dialect.OpenAI, "`not` at its root"},
		`{"type":"object"}`:                                                                         {dialect.OpenAI, "without `properties`"},
		`{"type":"object","properties":{"a":{"items":{"type":["null","array"]}}}}`:                  {dialect.OpenAI, "without `items` at \"/properties/a/items\""},
		`{"type":"object","properties":{"a":{"not":{"allOf":[{}]}}}}`:                               {dialect.OpenAI, "`allOf` at"},
		`{"type":"object","properties":{"a b":{}}}`:                                                 {dialect.Anthropic, "does not match"},
		`{"type":"object","properties":{"` + strings.Repeat("a", 65) + `":{}}}`:                     {dialect.Anthropic, "does not match"},
		`{"type":"object","properties":{"a":{"enum":[{"allOf":1,"properties":{"a b":1}}]}}}`:        {"", ""},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}}}`:                                 {both, "not within it"},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/n~1x%20y"}},"$defs":{"n/x y":true}}`:   {"", ""},
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a/anyOf/0"}}}`:                    {both, "not within it"},
		`{"type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`:                {both, "draft 2020-12"},
		`{"type":"object","properties":{"a":{"items":[{"type":"string"}]}}}`:                        {both, "draft 2020-12"},
		`{"type":"object","title":"` + strings.Repeat("x", dialect.MaxBytes) + `","properties":{}}`: {both, "at most"},
		`{"type":"object"`: {both, "not JSON"},
	} {
		for _, provider := range dialect.Providers() {
			err := dialect.Check(provider, []byte(schema))
			if c.refuses == both || c.refuses == provider {
				require.ErrorContains(t, err, c.why, schema)
			} else {
				require.NoError(t, err, "%s: %s", provider, schema)
			}
		}
	}
}
