package item_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

func invalid(t *testing.T, err error, field string) {
	t.Helper()
	f, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, field, f.Field)
}

func TestAt64WatchersWatchingIsSkippedWhenNobodyAskedAndRefusedWhenSomebodyDid(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	for n := range item.MaxWatchers {
		i.Watch(fmt.Sprint("seat-", n))
	}
	require.Len(t, i.Watchers, item.MaxWatchers)
	i.Remark(agent, start)
	require.NotContains(t, i.Watchers, "ops")
	_, _, err := i.Apply(item.Update{Watch: ptr(true)}, agent, start)
	invalid(t, err, "watch")
	_, _, err = i.Apply(item.Update{Watch: ptr(false)}, agent, start)
	require.NoError(t, err, "leaving is never refused")
	_, changed, err := i.Apply(item.Update{Watch: ptr(true)}, human, start)
	require.NoError(t, err, "who watches already may say so")
	require.False(t, changed)
}

func TestALeaverStaysAwayUntilTheyWatchAgain(t *testing.T) {
	t.Parallel()
	i := filed(t, agent)
	_, _, err := i.Apply(item.Update{Watch: ptr(false)}, agent, start)
	require.NoError(t, err)
	i.Remark(agent, start)
	_, _, err = i.Apply(item.Update{Assignee: ptr("ops")}, human, start)
	require.NoError(t, err)
	require.NotContains(t, i.Watchers, "ops")
	c, _, err := i.Apply(item.Update{Watch: ptr(true)}, agent, start)
	require.NoError(t, err)
	require.Contains(t, i.Watchers, "ops")
	require.Empty(t, i.Muted)
	require.Equal(t, item.Field{From: "ops", To: ""}, c.Fields["muted"])
}

func TestWhoActsForNoSeatWatchesNothing(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	_, _, err := i.Apply(item.Update{Watch: ptr(true)}, item.Actor{Name: "ci", Kind: "operator"}, start)
	invalid(t, err, "watch")
}

func TestAnItemHasAtMostEightCollaborators(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	var eight []string
	for n := range item.MaxCollaborators {
		eight = append(eight, fmt.Sprint("seat-", n))
	}
	_, _, err := i.Apply(item.Update{Collaborators: &item.SetChange{Set: eight}}, human, start)
	require.NoError(t, err)
	_, _, err = i.Apply(item.Update{Collaborators: &item.SetChange{Add: []string{"one-more"}}}, human, start)
	invalid(t, err, "collaborators")
	require.Equal(t, eight, i.Collaborators)
	_, _, err = i.Apply(item.Update{Collaborators: &item.SetChange{Add: []string{"one-more"}, Remove: eight[:1]}}, human, start)
	require.NoError(t, err)
}
