package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

func TestAModelSeesWireNamesAndTheRegistryCanonicalOnes(t *testing.T) {
	t.Parallel()
	for vendor := range providers("") {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			offered := make(chan modeldouble.Request, 16)
			vendorDouble, err := modeldouble.Start(modeldouble.Options{Answer: func(r modeldouble.Request) (modeldouble.Answer, error) {
				offered <- r
				called := slices.ContainsFunc(r.Messages, func(m modeldouble.Message) bool { return m.Role == "tool" && strings.Contains(m.Text, "OPS-") })
				if called {
					return modeldouble.Answer{Calls: []modeldouble.Call{{Tool: "submit_work", Args: `{"summary":"done","outcome":"no_action"}`}}}, nil
				}
				return modeldouble.Answer{Calls: []modeldouble.Call{{Tool: "issues_get_1a2b3c4d5e", Args: `{}`}}}, nil
			}})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, vendorDouble.Close()) })
			b := setup(t, newCompany(providers(vendorDouble.URL())[vendor]))
			b.registry.tools = append(b.registry.tools,
				&toolregistryv1.Tool{Name: "issues.get", WireName: "issues_get_1a2b3c4d5e", Source: "mcp:gh", InputSchemaJson: `{"type":"object"}`},
				&toolregistryv1.Tool{
					Name: "too_odd", WireName: "too_odd", Source: "mcp:gh", InputSchemaJson: `{"type":"object"}`,
					ProviderQuarantine: map[string]string{"anthropic": "its schema is odd", "openai": "its schema is odd"},
				},
			)
			mail := letter("ada", "slack:1", "hello")
			mail.Obligation = "none"
			b.post(t, mail)
			b.start(t, "n1", nil)
			turn := b.ended(t, 1)[0]
			calls := b.journal(t, turn.ID).Calls()
			require.Equal(t, "issues.get", calls[0].Tool, "the journal has the name that does not change")
			require.Equal(t, []string{"issues.get {}"}, b.registry.did())
			asked := <-offered
			names := asked.Tools
			require.Contains(t, names, "issues_get_1a2b3c4d5e")
			require.NotContains(t, names, "issues.get")
			require.NotContains(t, names, "too_odd", "what a vendor refuses would cost the whole turn")
			require.Contains(t, asked.System, "the tool `too_odd`: its schema is odd", "the seat is told")
		})
	}
}

func TestASeatsToolsAreSentAgainOnlyWhenTheyChanged(t *testing.T) {
	t.Parallel()
	b := setup(t, newCompany(scripted("rules:\n  - rounds:\n      - submit: {summary: done}\n")))
	b.start(t, "n1", nil)
	for i := range 3 {
		mail := letter("ada", "slack:1", "hello")
		mail.Obligation = "none"
		b.post(t, mail)
		b.ended(t, i+1)
	}
	listed := func() int {
		b.registry.mu.Lock()
		defer b.registry.mu.Unlock()
		return b.registry.listed
	}
	require.Equal(t, 1, listed())
	b.registry.mu.Lock()
	b.registry.tools = append(b.registry.tools, &toolregistryv1.Tool{Name: "new", Source: "mcp:gh", InputSchemaJson: `{"type":"object"}`})
	b.registry.mu.Unlock()
	mail := letter("ada", "slack:1", "hello")
	mail.Obligation = "none"
	b.post(t, mail)
	b.ended(t, 4)
	require.Equal(t, 2, listed())
}
