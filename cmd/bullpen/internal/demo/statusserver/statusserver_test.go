package statusserver_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo/statusserver"
)

func connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	session, err := statusserver.New("test").Connect(t.Context(), far, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Wait()) })
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestAKnownServiceIsReported(t *testing.T) {
	t.Parallel()
	result, err := connect(t).CallTool(t.Context(), &mcp.CallToolParams{
		Name: "service_status", Arguments: map[string]any{"service": "checkout"},
	})
	require.NoError(t, err)
	require.False(t, result.IsError)
	require.Equal(t, "degraded", result.StructuredContent.(map[string]any)["state"])
}

func TestAnUnknownServiceIsRefusedWithTheNamesThereAre(t *testing.T) {
	t.Parallel()
	result, err := connect(t).CallTool(t.Context(), &mcp.CallToolParams{
		Name: "service_status", Arguments: map[string]any{"service": "billing"},
	})
	require.NoError(t, err)
	require.True(t, result.IsError)
	require.Contains(t, result.Content[0].(*mcp.TextContent).Text, "catalogue, checkout, search")
}
