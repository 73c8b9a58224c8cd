package tracker_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Whatever is done to trees in whatever order, they stand as the reference says, and what it refuses is refused.
func TestTreesStandAsTheReferenceSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := operator(t.Context())
	titles := 0
	rapid.Check(t, func(r *rapid.T) {
		f := forest{}
		keys := map[string]string{}
		some := func(label string) string {
			return rapid.SampledFrom(slices.Sorted(maps.Keys(f))).Draw(r, label)
		}
		agreed := func(what string, allowed bool, err error) bool {
			if !allowed {
				require.Error(r, err, what)
				require.Contains(r, []fault.Class{fault.Invalid, fault.Conflict}, rpc.FromError(err).Class, what)
				return false
			}
			require.NoError(r, err, what)
			return true
		}
		create := func(project, parent string) {
			titles++
			res, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("tree ", titles), Project: project, Parent: parent})
			if agreed("create", f.create(res.GetId(), project, parent), err) {
				keys[res.GetId()] = res.GetKey()
			} else {
				delete(f, res.GetId())
			}
		}
		create("OPS", "")
		for range rapid.IntRange(1, 14).Draw(r, "gestures") {
			if len(f) == 0 {
				create("OPS", "")
			}
			x := some("item")
			switch rapid.IntRange(0, 9).Draw(r, "gesture") {
			case 0, 1, 2:
				create(rapid.SampledFrom([]string{"OPS", f[x].project}).Draw(r, "project"), x)
			case 3, 4:
				parent := rapid.SampledFrom([]string{"", some("parent")}).Draw(r, "parent?")
				_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: x, Parent: &parent})
				agreed("hang", f.hang(x, parent), err)
			case 5:
				subtree := rapid.Bool().Draw(r, "subtree")
				_, err := b.client.RemoveWorkItem(ctx, &trackerv1.RemoveWorkItemRequest{Item: x, Subtree: subtree})
				agreed("remove", f.remove(x, subtree), err)
			case 6:
				_, err := b.client.RestoreWorkItem(ctx, &trackerv1.RestoreWorkItemRequest{Item: x})
				agreed("restore", f.restore(x), err)
			case 7:
				to := rapid.SampledFrom([]string{"OPS", "SHOP"}).Draw(r, "to")
				res, err := b.client.MoveWorkItem(ctx, &trackerv1.MoveWorkItemRequest{Item: x, Project: to})
				if agreed("move", f.move(x, to), err) {
					keys[x] = res.GetKey()
				}
			case 8:
				into := some("into")
				_, err := b.client.MergeWorkItem(ctx, &trackerv1.MergeWorkItemRequest{Item: x, Into: into})
				agreed("merge", f.merge(x, into), err)
			case 9:
				key := got(t, b, x).GetKey()
				_, err := b.client.PurgeWorkItem(ctx, &trackerv1.PurgeWorkItemRequest{Item: x, ConfirmKey: key, Reason: "x"})
				agreed("purge", f.purge(x), err)
			}
		}
		for id, p := range f {
			i := got(t, b, id)
			require.Equal(r, p.project, i.GetProject())
			require.Equal(r, p.parent, i.GetParent())
			require.Equal(r, int32(f.depth(id)), i.GetDepth())
			require.Equal(r, p.with != "", i.GetRemoval() != nil)
			require.Equal(r, p.open, i.GetStatusGroup() == "not_started")
		}
	})
	sound(t, b)
}
