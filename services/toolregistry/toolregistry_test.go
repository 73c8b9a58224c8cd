package toolregistry_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
)

func TestEveryOwnerOfAToolIsAPeer(t *testing.T) {
	t.Parallel()
	declared, err := toolregistry.Declared()
	require.NoError(t, err)
	for _, tool := range declared {
		require.Equal(t, "builtin", tool.GetSource())
		require.True(t, strings.HasPrefix(tool.GetInputSchemaJson(), `{"type":"object"`))
	}
	// New asks for a client of each owner, which the host refuses for a service that is no peer.
	require.Subset(t, toolregistry.Module.Peers, []string{"company", "mcphost", "notification", "tracker", "knowledge", "toolregistry"})
}

func TestOurOwnToolsAreTakenByEveryProviderAsTheyAre(t *testing.T) {
	t.Parallel()
	declared, err := toolregistry.Declared()
	require.NoError(t, err)
	for _, tool := range declared {
		require.Equal(t, tool.GetName(), tool.GetWireName())
		require.Empty(t, tool.GetProviderQuarantine(), tool.GetName())
		for _, provider := range dialect.Providers() {
			shown, other := tool.GetProviderSchemas()[provider]
			if !other {
				shown = tool.GetInputSchemaJson()
			}
			require.NoError(t, dialect.Check(provider, []byte(shown)), tool.GetName())
		}
	}
}

func TestTheServiceSaysWhetherItKnowsTheCompany(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	require.False(t, w.service.Ready(t.Context())[0].OK)
	require.True(t, w.service.Ready(t.Context())[0].Blocking, "nothing can be called yet")
	_, err := w.console.ListTools(asOperator(t.Context()), &toolregistryv1.ListToolsRequest{})
	require.NoError(t, err)
	require.True(t, w.service.Ready(t.Context())[0].OK)
}
