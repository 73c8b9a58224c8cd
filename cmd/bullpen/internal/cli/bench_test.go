package cli_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

// The figures of a quick run say nothing; that there are figures says that every way to a tool works.
func TestACallIsMeasuredOnEveryWayToIt(t *testing.T) {
	t.Parallel()
	report := decode(t, fine(t, clitest.Run(clitest.Without, "bench", "call", "--quick", "--json")))
	arms := map[string]int{}
	for _, c := range report["calls"].([]any) {
		cell := c.(map[string]any)
		require.Positive(t, cell["calls"])
		require.Positive(t, cell["p50_ms"])
		arms[cell["transport"].(string)+" "+cell["arm"].(string)]++
	}
	require.Equal(t, map[string]int{
		"stdio direct": 4, "stdio host": 4, "stdio host + registry": 4, "stdio /operator/mcp": 4,
		"http direct": 4, "http host": 4, "http host + registry": 4, "http /operator/mcp": 4,
	}, arms, "one worker and eight, small results and larger ones")
	var names []string
	for _, f := range report["figures"].([]any) {
		names = append(names, f.(map[string]any)["name"].(string))
	}
	require.True(t, slices.Contains(names, "memory after 200 calls"), names)
	require.True(t, slices.Contains(names, "list 100 tools of servers, from cache, p50"), names)
}
