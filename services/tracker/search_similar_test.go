package tracker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

func TestWhoFilesIsToldOfOpenItemsThatMayBeTheSame(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	ctx := seat(t.Context(), "ops-lead")
	for _, title := range []string{"Renew the TLS certificate of the shop", "Clean the kitchen", "Order the new chairs", "Write the report of May"} {
		n.file(t, title, "")
	}
	n.titles(t, "kitchen") // everything is in the index now
	similar := func(req *trackerv1.CreateWorkItemRequest) []string {
		res, err := n.CreateWorkItem(ctx, req)
		require.NoError(t, err)
		n.titles(t, "kitchen")
		keys := []string{}
		for _, s := range res.GetSimilar() {
			keys = append(keys, s.GetKey())
		}
		return keys
	}
	require.Equal(t, []string{"OPS-1"}, similar(&trackerv1.CreateWorkItemRequest{Title: "Renew TLS certificate for shop"}))
	require.Empty(t, similar(&trackerv1.CreateWorkItemRequest{Title: "Paint the fence of the garden"}))
	require.Empty(t, similar(&trackerv1.CreateWorkItemRequest{Title: "Clean kitchen", Project: "SHOP"}), "another project's items are not the same")
	_, err := n.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: "OPS-2", Status: new("done")})
	require.NoError(t, err)
	n.titles(t, "kitchen")
	require.Empty(t, similar(&trackerv1.CreateWorkItemRequest{Title: "Clean the kitchen floor"}), "nor is what is finished")
}
