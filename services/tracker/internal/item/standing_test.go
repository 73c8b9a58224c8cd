package item_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// A node is cyclic exactly when it can be reached from itself.
func TestCyclicNodesAreThoseThatReachThemselves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]uuid.UUID, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for n := range nodes {
			nodes[n] = uuid.UUID{15: byte(n)}
		}
		edges := map[uuid.UUID][]uuid.UUID{}
		for range rapid.IntRange(0, 20).Draw(t, "edges") {
			from, to := rapid.SampledFrom(nodes).Draw(t, "from"), rapid.SampledFrom(nodes).Draw(t, "to")
			edges[from] = append(edges[from], to)
		}
		cyclic := item.Cyclic(edges)
		for _, node := range nodes {
			require.Equal(t, reaches(edges, node, node), cyclic[node])
		}
	})
}

func reaches(edges map[uuid.UUID][]uuid.UUID, from, to uuid.UUID) bool {
	seen := map[uuid.UUID]bool{}
	todo := []uuid.UUID{from}
	for len(todo) > 0 {
		node := todo[0]
		todo = todo[1:]
		for _, next := range edges[node] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return false
}

func TestAnItemIsBlockedWhileSomethingItWaitsForIsOpen(t *testing.T) {
	t.Parallel()
	require.False(t, item.Standing{}.Blocked())
	require.False(t, item.Standing{Waiting: []item.Waiting{{OneSidedFinal: true}}}.Blocked())
	require.True(t, item.Standing{Waiting: []item.Waiting{{}, {Open: true}}}.Blocked())
}
