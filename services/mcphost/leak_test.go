package mcphost_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

// Not parallel: whatever runs when it begins is not its own.
func TestStartsAndStopsLeaveNothingBehind(t *testing.T) {
	w := setup(t)
	before := goleak.IgnoreCurrent()
	n := w.node(t, "n1")
	good, effects := hostile(t, "good", "")
	bad, badEffects := hostile(t, "bad", "fail")
	template, ownEffects := hostile(t, "own", "modern")
	template.Shared = false
	seats := []*companyv1.Seat{seatWith("ada", "own"), seatWith("bo", "own"), seatWith("cy", "own")}
	for range 5 {
		w.apply(t, n, []*companyv1.McpServer{good, bad, template}, seats...)
		require.Equal(t, "ready", n.tools(t, "", "good").GetState())
		n.tools(t, "", "bad")
		for _, seat := range seats {
			_, err := n.call(t.Context(), seat.GetHandle(), "own", "echo", "{}")
			require.NoError(t, err)
		}
		_, err := n.call(t.Context(), "ada", "own", "crash", "{}")
		require.Error(t, err)
		w.apply(t, n, nil)
	}
	n.stop()
	for _, file := range []string{effects, badEffects, ownEffects} {
		require.Empty(t, childrenOf(t, file))
	}
	require.GreaterOrEqual(t, count(t, effects, "start"), 5, "once a round, and again where a busy machine made it seem silent")
	// Connections to the broker and to Postgres are the process's.
	require.NoError(t, goleak.Find(before,
		goleak.IgnoreTopFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
		goleak.IgnoreAnyFunction("github.com/segmentio/kafka-go.(*conn).run"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"),
	))
}
