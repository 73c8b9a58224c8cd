package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

// That instances do start anew is tested where they live: others here work with them.
func TestAServerIsStartedAnewOnDemand(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	require.Equal(t, "status: instances that start anew: 0.\n", fine(t, i.Run("servers", "restart", "status", "--seat", "ops-lead")),
		"it is shared, so no seat has one of its own")
	require.Contains(t, failed(t, i.Run("servers", "restart", "nobody")), "nobody")
}
