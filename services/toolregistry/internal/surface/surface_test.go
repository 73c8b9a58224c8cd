package surface_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

func builtin(name string, engineLocal bool) *surface.Tool {
	return &surface.Tool{Name: name, Source: surface.Builtin, EngineLocal: engineLocal}
}

func listed(name string) string { return `{"name":"` + name + `","inputSchema":{"type":"object"}}` }

func read(texts ...string) []*surface.Definition { return new(surface.Reader).Read(texts) }

func find(t *testing.T, s *surface.Surface, name, source string) *surface.Tool {
	t.Helper()
	for _, tool := range s.Tools() {
		if tool.Name == name && tool.Source == source {
			return tool
		}
	}
	require.Fail(t, "not listed", "%s of %s", name, source)
	return nil
}

func TestASeatsOwnServersComeBeforeTheCompanys(t *testing.T) {
	t.Parallel()
	s := surface.Build(
		[]*surface.Tool{builtin("search", false), builtin("submit_work", true)},
		[]surface.Server{
			{Name: "wiki", State: surface.Ready, Tools: read(listed("search"), listed("read"))},
			{Name: "mine", State: surface.Ready, Own: true, Tools: read(listed("search"), listed("read"), listed("submit_work"))},
		})
	for name, source := range map[string]string{"search": "mcp:mine", "read": "mcp:mine", "submit_work": surface.Builtin} {
		tool, ok := s.Lookup(name)
		require.True(t, ok)
		require.Equal(t, source, tool.Source, name)
		require.Empty(t, tool.Quarantine)
	}
	require.Equal(t, "its name is taken by the tool of mcp:mine", find(t, s, "search", surface.Builtin).Quarantine)
	require.Equal(t, "its name is taken by the tool of mcp:mine", find(t, s, "read", "mcp:wiki").Quarantine)
	require.Equal(t, "its name is taken by the tool of builtin", find(t, s, "submit_work", "mcp:mine").Quarantine)
	require.Len(t, s.Tools(), 7, "nothing is hidden")
}

func TestTheDocumentsOrderSettlesCollisionsOfServers(t *testing.T) {
	t.Parallel()
	first := surface.Server{Name: "a", State: surface.Ready, Tools: read(listed("get"))}
	second := surface.Server{Name: "b", State: surface.Ready, Tools: read(listed("get"))}
	for range 20 {
		tool, _ := surface.Build(nil, []surface.Server{first, second}).Lookup("get")
		require.Equal(t, "mcp:a", tool.Source)
		tool, _ = surface.Build(nil, []surface.Server{second, first}).Lookup("get")
		require.Equal(t, "mcp:b", tool.Source)
	}
}

func TestABadToolIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	s := surface.Build(nil, []surface.Server{{Name: "odd", State: surface.Ready, Tools: read(
		listed("good"), listed("good"), `{"name":"rootless","inputSchema":{"type":"array"}}`, `{"name":"schemaless"}`, `[]`, `{"inputSchema":{}}`,
		listed("two words"),
	)}})
	require.Equal(t, []string{"good"}, s.Names())
	require.Contains(t, find(t, s, "rootless", "mcp:odd").Quarantine, "type: object")
	require.NotEmpty(t, find(t, s, "schemaless", "mcp:odd").Quarantine)
	require.Contains(t, find(t, s, "odd#5", "mcp:odd").Quarantine, "does not describe it as a tool")
	require.Contains(t, find(t, s, "(unnamed)", "mcp:odd").Quarantine, "no name")
	require.NotEmpty(t, find(t, s, "two words", "mcp:odd").Quarantine)
	tool, ok := s.Lookup("rootless")
	require.True(t, ok, "a call of it is answered with the reason")
	require.NotEmpty(t, tool.Quarantine)
}

func TestWhatATerminalWouldObeyIsNotShown(t *testing.T) {
	t.Parallel()
	s := surface.Build(nil, []surface.Server{{Name: "odd", State: surface.Ready, Tools: read(
		`{"name":"say","title":"a\u0007b","description":"one\u0000\u001b[31m\n\ttwo \u202ethree","inputSchema":{"type":"object"}}`,
		listed(`\u202ereply`), listed(`new\nline`), listed(`prüfe`),
	)}})
	say := find(t, s, "say", "mcp:odd")
	require.Equal(t, "ab", say.Title)
	require.Equal(t, "one[31m\n\ttwo three", say.Description)
	require.NotEmpty(t, find(t, s, `"\u202ereply"`, "mcp:odd").Quarantine)
	require.NotEmpty(t, find(t, s, `"new\nline"`, "mcp:odd").Quarantine)
	require.Equal(t, []string{"prüfe", "say"}, s.Names())
}

func TestAQuarantinedToolLeavesItsNameToOthers(t *testing.T) {
	t.Parallel()
	s := surface.Build(nil, []surface.Server{
		{Name: "a", State: surface.Ready, Tools: read(`{"name":"get"}`)},
		{Name: "b", State: surface.Ready, Tools: read(listed("get"))},
	})
	tool, _ := s.Lookup("get")
	require.Equal(t, "mcp:b", tool.Source)
}

func TestHintsStayThreeValuedAndTheOperatorHasTheLastWord(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	s := surface.Build(nil, []surface.Server{{
		Name: "gh", Prefix: "gh_", State: surface.Ready, Surfaces: []string{"github"},
		Tools: read(
			`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
			`{"name":"silent","inputSchema":{"type":"object"}}`,
			`{"name":"liar","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":true}}`,
		),
		Overrides: map[string]surface.Hints{"silent": {ReadOnly: &yes}, "gh_silent": {Idempotent: &yes}, "gh_liar": {ReadOnly: &no}},
	}})
	read, _ := s.Lookup("gh_read")
	require.True(t, *read.Hints.ReadOnly)
	require.Nil(t, read.Hints.Destructive, "what is not said is not no")
	require.Empty(t, read.Delivers, "a proven read delivers nowhere")
	silent, _ := s.Lookup("gh_silent")
	require.True(t, *silent.Hints.ReadOnly, "by raw name")
	require.True(t, *silent.Hints.Idempotent, "by prefixed name")
	liar, _ := s.Lookup("gh_liar")
	require.False(t, *liar.Hints.ReadOnly)
	require.True(t, *liar.Hints.OpenWorld)
	require.Equal(t, "gh", liar.Delivers)
	require.Equal(t, "liar", liar.Raw)
}

func TestTheDigestChangesWithWhatIsSeen(t *testing.T) {
	t.Parallel()
	build := func(servers ...surface.Server) string { return surface.Build(nil, servers).Digest() }
	a := surface.Server{Name: "a", State: surface.Ready, Tools: read(listed("get"))}
	require.Equal(t, build(a), build(a))
	changed := a
	changed.Tools = read(`{"name":"get","description":"now otherwise","inputSchema":{"type":"object"}}`)
	require.NotEqual(t, build(a), build(changed))
	failed := surface.Server{Name: "a", State: "failed", Reason: "no such program"}
	require.NotEqual(t, build(a), build(failed))
	require.Equal(t, []surface.Missing{{"a", "failed", "no such program"}}, surface.Build(nil, []surface.Server{failed}).Missing())
}

func TestSchemasKeepTheirBytes(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"id":{"type":"integer","maximum":9007199254740993, "x-icon":"é"}}}`
	s := surface.Build(nil, []surface.Server{{Name: "a", State: surface.Ready, Tools: read(`{"name":"get","inputSchema":` + schema + `,"_meta":{"n":1}}`)}})
	tool, _ := s.Lookup("get")
	require.Equal(t, schema, tool.Schema)
	require.Equal(t, 1, tool.Arguments)
}
