package catalogue_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
)

var update = flag.Bool("update", false, "write docs/reference/tools.* anew")

const reference = "../../../../docs/reference"

// entry is a tool as a model and a caller see it; the golden file is the list of all. `buf breaking` sees neither a renamed tool
// nor a tightened limit: a review of this file does.
type entry struct {
	Name        string          `json:"name"`
	RPC         string          `json:"rpc"`
	Audiences   []string        `json:"audiences"`
	ReadOnly    *bool           `json:"read_only"`
	Destructive *bool           `json:"destructive"`
	Idempotent  *bool           `json:"idempotent"`
	OpenWorld   *bool           `json:"open_world"`
	Delivers    string          `json:"delivers"`
	Requires    []string        `json:"requires"`
	EngineLocal bool            `json:"engine_local"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func TestCatalogueIsTheOneThatWasReviewed(t *testing.T) {
	t.Parallel()
	var entries []entry
	for _, tool := range load(t).Tools() {
		entries = append(entries, entry{
			tool.Name, tool.Procedure, tool.Audiences, tool.ReadOnly, tool.Destructive, tool.Idempotent, tool.OpenWorld,
			tool.Delivers, append([]string{}, tool.Requires...), tool.EngineLocal, tool.Description, tool.Schema,
		})
	}
	text, err := json.Marshal(entries)
	require.NoError(t, err)
	var golden bytes.Buffer
	require.NoError(t, json.Indent(&golden, text, "", "  "))
	golden.WriteByte('\n')
	matches(t, "tools.golden.json", golden.Bytes())
	matches(t, "tools.md", page(load(t)))
}

func matches(t *testing.T, name string, now []byte) {
	t.Helper()
	path := filepath.Join(reference, name)
	if *update {
		require.NoError(t, os.MkdirAll(reference, 0o755))
		require.NoError(t, os.WriteFile(path, now, 0o644))
	}
	reviewed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(reviewed), string(now),
		"the catalogue differs from docs/reference/%s: run go test -run Catalogue -update in services/toolregistry/internal/catalogue, and say why in the commit", name)
}

// page writes the catalogue for people.
func page(c *catalogue.Catalogue) []byte {
	var b bytes.Buffer
	b.WriteString("# Tools\n\nEvery tool of the suite's own, as a model reads it. Written from the contracts by the tests of " +
		"`services/toolregistry/internal/catalogue`; do not edit.\n\n")
	b.WriteString("| tool | service | for | reads only | delivers to | needs |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, t := range c.Tools() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s | %s | %s |\n", t.Name, t.Name, t.Service, strings.Join(t.Audiences, ", "),
			yes(t.ReadOnly), t.Delivers, strings.Join(t.Requires, ", "))
	}
	for _, t := range c.Tools() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n`%s`", t.Name, t.Description, t.Procedure)
		if t.EngineLocal {
			b.WriteString(" (run by the turn engine)")
		}
		b.WriteString("\n\n")
		arguments(&b, t)
	}
	return b.Bytes()
}

type schema struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	Required    []string          `json:"required"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
}

func arguments(b *bytes.Buffer, t *catalogue.Tool) {
	var s schema
	if err := json.Unmarshal(t.Schema, &s); err != nil {
		fmt.Fprintf(b, "%v\n", err)
		return
	}
	if len(s.Properties) == 0 {
		b.WriteString("It takes no arguments.\n")
		return
	}
	b.WriteString("| argument | type | what it says |\n| --- | --- | --- |\n")
	fields := t.Input.Descriptor().Fields()
	for i := range fields.Len() {
		name := string(fields.Get(i).Name())
		property := s.Properties[name]
		text := property.Description
		if values := closedSet(property); len(values) > 0 {
			text += " One of " + strings.Join(values, ", ") + "."
		}
		if property.Default != nil {
			text += " Default: `" + string(property.Default) + "`."
		}
		star := ""
		if slices.Contains(s.Required, name) {
			star = " (required)"
		}
		kind := property.Type
		if property.Items != nil {
			kind = "list of " + property.Items.Type
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", name, star, kind, strings.ReplaceAll(text, "\n", " "))
	}
}

func closedSet(s schema) []string {
	values := s.Enum
	if s.Items != nil {
		values = s.Items.Enum
	}
	var quoted []string
	for _, v := range values {
		if v != "" {
			quoted = append(quoted, "`"+v+"`")
		}
	}
	return quoted
}

func yes(hint *bool) string {
	switch {
	case hint == nil:
		return "unknown"
	case *hint:
		return "yes"
	default:
		return "no"
	}
}
