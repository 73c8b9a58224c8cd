package document_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/company/internal/document"
)

// One file makes every kind of mistake there is but a broken syntax, which would hide the others.
func TestAFileWithEveryKindOfMistakeIsRefusedForAllOfThemAtOnce(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/every_mistake.yaml")
	require.NoError(t, err)
	got := problemsOf(string(text))
	golden := "testdata/every_mistake.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)

	_, problems := document.Parse(string(text))
	kinds := map[string]bool{}
	for i, p := range problems {
		kinds[p.Kind] = true
		if i > 0 {
			before := problems[i-1]
			require.True(t, before.Line < p.Line || before.Line == p.Line && before.Column <= p.Column, "document order")
		}
	}
	for _, kind := range []string{
		document.KindUnknownKey, document.KindType, document.KindRequired, document.KindValue, document.KindReference,
		document.KindDuplicate, document.KindCycle, document.KindUnsupported, document.KindSecret,
	} {
		require.True(t, kinds[kind], kind)
	}
	require.NotContains(t, got, "hunter2", "no sentence repeats a credential")
}

// The document of the specification asks for more than this build does: it is refused, and for nothing but that.
func TestTheWholeDocumentIsReadAndOnlyWhatThisBuildLacksIsRefused(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/whole.yaml")
	require.NoError(t, err)
	_, problems := document.Parse(string(text))
	require.NotEmpty(t, problems)
	for _, p := range problems {
		require.Equal(t, document.KindUnsupported, p.Kind, p.String())
	}
}

func TestTheExampleCompanyIsAccepted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.FromSlash("../../../../deploy/company.example.yaml"))
	require.NoError(t, err)
	company, problems := document.Parse(string(text))
	require.Empty(t, problems)
	require.NotEmpty(t, company.Seats)
	require.NotEmpty(t, company.Servers)
}

func TestProblemsAreBoundedAndCounted(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: Co\nroles:\n")
	for range 1500 {
		b.WriteString("  - {nam: Ada}\n")
	}
	_, problems := document.Parse(b.String())
	require.Len(t, problems, 501)
	require.Equal(t, "2500 more problems are not listed", problems[500].Message)
}

// Shapes in which a careless reader's time grows with the square of the file.
func TestHostileFilesAreAnsweredSoon(t *testing.T) {
	t.Parallel()
	repeat := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"unknown keys, each compared with all others": "name: Co\n" + repeat(1990, "key%d: v\n"),
		"seats that all manage their own unit":        "name: Co\nunits:\n  - name: U\n    roles:\n" + repeat(600, "      - {name: s%d, manages: [U]}\n"),
		"references to nobody":                        "name: Co\nroles:\n" + repeat(2000, "  - {name: s%d, manages: [nobdy, noone, none]}\n"),
		"more seats than a company may have":          "name: Co\nroles:\n" + repeat(9000, "  - {name: s%d, manages: [nobody]}\n"),
		"a flow mapping of a megabyte":                "{" + repeat(90_000, "k%d: v, ") + "}",
		"names as long as the file":                   "name: Co\nroles: [{name: '" + strings.Repeat("${A}", 1<<19) + "'}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := document.Parse(text)
			require.NotEmpty(t, problems)
		})
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	company, problems := document.Parse("name: Co\nroles: [{name: Ada}]\nproviders: {llm: {a: {type: openai, model: m, api_keys: ['${K}']}}}\nmcp_servers: [{name: s, command: c}]\n")
	require.Empty(t, problems)
	require.Equal(t, "UTC", company.Timezone)
	require.Equal(t, document.Mail{MaxBatch: 20}, company.Mail)
	require.Equal(t, document.TurnEngine{MaxToolRounds: 24, DelegationDepthLimit: 3, ToolTimeoutSeconds: 60}, company.TurnEngine)
	require.Equal(t, document.ToolResults{Mode: "full", AuditDays: 30, OverBytes: 16384, TopItems: 5}, company.ToolResults)
	require.Equal(t, 3, company.IdenticalCalls)
	require.Equal(t, []string{"native", "native", "always"}, []string{company.Tracker, company.Knowledge, company.Integrations.SlackTypingStatus})
	p := company.Providers[0]
	require.Equal(t, []int{120, 3600, 300, 0}, []int{p.TimeoutSeconds, p.RateLimitSeconds, p.AuthSeconds, p.MaxOutputTokens})
	s := company.Servers[0]
	require.True(t, s.Shared)
	require.Equal(t, []int{600, 120, 300}, []int{s.InstallSeconds, s.StartSeconds, s.CallSeconds})
	require.Equal(t, "ada", company.Seats[0].Handle)
	require.Equal(t, "agent", company.Seats[0].Kind)
}

func TestAScenarioTravelsAsYAMLOfItsOwn(t *testing.T) {
	t.Parallel()
	company, problems := document.Parse(`
name: Co
roles: [{name: Ada, llm: a}]
providers:
  llm:
    a:
      type: scripted
      scenario:
        zeta: first
        turns:
          - when: "yes"
            say: |
              two
              lines
            count: 3
            done: true
            rest: null
`)
	require.Empty(t, problems)
	require.Equal(t, "zeta: first\nturns:\n- when: \"yes\"\n  say: |\n    two\n    lines\n  count: 3\n  done: true\n  rest: null\n", company.Providers[0].Scenario)
	require.Equal(t, map[string][]string{"default": {"a"}}, company.Seats[0].LLM)
}

func FuzzDocument(f *testing.F) {
	for _, name := range []string{"testdata/every_mistake.yaml", "testdata/whole.yaml"} {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text))
	}
	for _, text := range []string{
		"", "name: Co\nroles: [{name: A}]\n", "a: &a [*a]", "? [a]\n: b", "<<: {a: b}", "- - - -", "{{{[[[", "a:\n\tb", "\ufeffa: b",
		"units: [{name: U, lead: A, roles: [{name: A, manages: [U]}], children: [{name: V}]}]", "a: |\n\n\n  b", "mission: ${A", "--- a\n...\n--- b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		company, problems := document.Parse(text)
		if (company == nil) == (len(problems) == 0) {
			t.Fatal("a company and problems, or neither")
		}
		sorted := slices.IsSortedFunc(problems, func(a, b document.Problem) int { return a.Line - b.Line })
		if !sorted && len(problems) <= 500 {
			t.Fatal("problems are out of order")
		}
		for _, p := range problems {
			if p.Message == "" || p.Kind == "" {
				t.Fatalf("a problem without words: %+v", p)
			}
		}
	})
}
