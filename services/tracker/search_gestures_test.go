package tracker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

func TestAFormerKeyFindsItsItem(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	n.file(t, "Moves on", "")
	moved, err := n.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: "OPS-1", Project: "SHOP"})
	require.NoError(t, err)
	for _, text := range []string{"OPS-1", moved.GetKey()} {
		res := n.search(t, &trackerv1.SearchWorkItemsRequest{Text: text})
		require.Equal(t, moved.GetKey(), res.GetMatches()[0].GetKey())
		require.Equal(t, "key", res.GetMatches()[0].GetFoundIn())
	}
	require.EqualValues(t, 1, n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "moves", Project: "SHOP"}).GetTotal())
	require.Zero(t, n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "moves", Project: "OPS"}).GetTotal())
}

func TestARemovedItemIsNotFoundUntilItIsRestored(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	n.file(t, "Water the plants", "")
	_, err := n.RemoveWorkItem(operator(t.Context()), &trackerv1.RemoveWorkItemRequest{Item: "OPS-1"})
	require.NoError(t, err)
	require.Empty(t, n.titles(t, "plants"))
	require.Empty(t, n.titles(t, "OPS-1"))
	_, err = n.RestoreWorkItem(operator(t.Context()), &trackerv1.RestoreWorkItemRequest{Item: "OPS-1"})
	require.NoError(t, err)
	require.Equal(t, []string{"Water the plants"}, n.titles(t, "plants"))
}
