package inputschema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/inputschema"
)

func TestArgumentsAreRefusedWithTheirPath(t *testing.T) {
	t.Parallel()
	schema, err := inputschema.Compile([]byte(`{"type":"object","additionalProperties":false,"required":["owner"],"properties":{
		"owner":{"type":"string"},"state":{"enum":["open","closed"]},"labels":{"type":"array","items":{"type":"string"}},
		"page":{"type":"integer","minimum":1},"where":{"type":"object","required":["path"]}}}`))
	require.NoError(t, err)
	require.NoError(t, schema.Check(`{"owner":"a","state":"open","page":9007199254740993}`))
	for arguments, want := range map[string][2]string{
		`{}`:                             {"owner", "`owner` is required"},
		`{"ownr":"a","owner":"a"}`:       {"ownr", "unknown argument `ownr`; did you mean `owner`?"},
		`{"owner":5}`:                    {"owner", "`owner` must be of type string, not number"},
		`{"owner":"a","state":"odd"}`:    {"state", "`state` must be one of \"open\", \"closed\""},
		`{"owner":"a","labels":["x",1]}`: {"labels[1]", "`labels[1]` must be of type string"},
		`{"owner":"a","page":0}`:         {"page", "`page` is not as the tool's schema wants it"},
		`{"owner":"a","where":{}}`:       {"where.path", "`where.path` is required"},
		`[]`:                             {"", "must be one JSON object"},
		`{"owner":"a"} x`:                {"", "more text after it"},
		"{\"owner\":\"\xff\"}":           {"", "UTF-8"},
		`{"owner":`:                      {"", "not JSON"},
	} {
		f, ok := fault.As(schema.Check(arguments))
		require.True(t, ok, arguments)
		require.Equal(t, fault.Invalid, f.Class)
		require.Equal(t, want[0], f.Field, arguments)
		require.Contains(t, f.Message, want[1])
	}
}

func TestUnusableSchemasSayWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, why string }{
		"text that is not JSON":        {`{`, "not JSON"},
		"a root that is not an object": {`{"type":"string"}`, "`type: object`"},
		"a boolean":                    {`true`, "`type: object`"},
		"a keyword of the wrong kind":  {`{"type":"object","properties":{"a":{"type":"strange"}}}`, "cannot be used"},
		"a reference to the network":   {`{"type":"object","properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "nothing is fetched"},
		"a reference to a file":        {`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "nothing is fetched"},
		"a dialect that nobody speaks": {`{"$schema":"https://example.com/dialect","type":"object"}`, "nothing is fetched"},
		"more levels than are read":    {`{"type":"object","not":` + strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 101), "deeper than"},
		"more bytes than are read":     {`{"type":"object","title":"` + strings.Repeat("x", inputschema.MaxBytes) + `"}`, "at most"},
	} {
		_, err := inputschema.Compile([]byte(c.schema))
		require.ErrorContains(t, err, c.why, name)
	}
}

func TestASchemaThatWouldTakeForEverIsLeftToTheServer(t *testing.T) {
	t.Parallel()
	schema, err := inputschema.Compile([]byte(`{"type":"object","$defs":{"n":{"allOf":[
		{"properties":{"n":{"$ref":"#/$defs/n"}}},{"properties":{"n":{"$ref":"#/$defs/n"}}},{"properties":{"n":{"$ref":"#/$defs/n"}}}]}},"$ref":"#/$defs/n"}`))
	require.NoError(t, err)
	require.NoError(t, schema.Check(strings.Repeat(`{"n":`, 40)+`{}`+strings.Repeat(`}`, 40)))
	require.NoError(t, schema.Check(`{"n":{}}`), "the next check starts anew")
}

func TestAPatternThatGoCannotRunMatches(t *testing.T) {
	t.Parallel()
	schema, err := inputschema.Compile([]byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x).*$"}}}`))
	require.NoError(t, err)
	require.NoError(t, schema.Check(`{"a":"y"}`))
}

func TestOlderDialectsAreRead(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"} {
		_, err := inputschema.Compile([]byte(`{"$schema":"` + dialect + `","type":"object","properties":{"a":{"type":"string"}}}`))
		require.NoError(t, err)
	}
}
