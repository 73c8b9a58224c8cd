package tracker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func TestAPurgeDestroysAnItemForEver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "purges")
	require.NoError(t, err)
	top := add(t, b, "top", "")
	secret := add(t, b, "Secret", top)
	id := got(t, b, secret).GetId()
	child := add(t, b, "child", secret)
	grandchild := add(t, b, "grandchild", child)
	_, err = b.client.CommentOnWorkItem(operator(t.Context()), &trackerv1.CommentOnWorkItemRequest{Item: secret, Body: "words"})
	require.NoError(t, err)
	purge := func(ctx context.Context, key, confirm string) (*trackerv1.PurgeWorkItemResponse, error) {
		return b.client.PurgeWorkItem(ctx, &trackerv1.PurgeWorkItemRequest{Item: key, ConfirmKey: confirm, Reason: "asked for by law"})
	}
	_, err = purge(seat(t.Context(), "ops-lead"), secret, secret)
	refusal(t, err, fault.Forbidden, "")
	_, err = purge(operator(t.Context()), secret, top)
	refusal(t, err, fault.Invalid, "confirm_key")
	res, err := purge(rpc.WithOperation(person(t.Context(), "ines"), "purge-1"), secret, secret)
	require.NoError(t, err)
	require.Equal(t, secret, res.GetKey())
	require.Equal(t, int32(1), res.GetMovedUp())
	again, err := purge(rpc.WithOperation(person(t.Context(), "ines"), "purge-1"), secret, secret)
	require.NoError(t, err)
	require.Equal(t, res.GetPosition(), again.GetPosition(), "the same operation is answered the same")
	_, err = b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: secret})
	refusal(t, err, fault.NotFound, "item")
	require.Equal(t, top, parentKey(t, b, child))
	require.Equal(t, int32(3), got(t, b, grandchild).GetDepth())
	var kinds []string
	var fields, excerpt string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select array_agg(kind), min(fields::text), min(excerpt) from history where item_id = $1`, id).Scan(&kinds, &fields, &excerpt))
	require.Equal(t, []string{"purged"}, kinds)
	require.Equal(t, "{}", fields)
	require.Equal(t, "asked for by law", excerpt)
	var comments int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select (select count(*) from comments) + (select count(*) from item_bodies)`).Scan(&comments))
	require.Zero(t, comments)
	require.Equal(t, "OPS-5", add(t, b, "next", ""), "the key is never given again")
	for {
		messages, err := subscription.Fetch(t.Context(), 10)
		require.NoError(t, err)
		for _, m := range messages {
			e := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, e))
			if purged := e.GetItemPurged(); purged != nil {
				require.Equal(t, id, purged.GetItemId())
				require.Len(t, purged.GetRouting().GetConcerns(), 1)
				require.Equal(t, "ops-lead", purged.GetRouting().GetConcerns()[0].GetHandle())
				require.NotContains(t, string(m.Value), "Secret")
				sound(t, b)
				return
			}
		}
	}
}

func TestWhatWentIntoTheTrashWithAPurgedItemIsRestoredByItsOwnBranches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	left, right := add(t, b, "left", top), add(t, b, "right", top)
	leaf := add(t, b, "leaf", left)
	trash(t, b, top, true)
	_, err := b.client.PurgeWorkItem(operator(t.Context()), &trackerv1.PurgeWorkItemRequest{Item: top, ConfirmKey: top, Reason: "x"})
	require.NoError(t, err)
	require.Equal(t, int32(2), restore(t, b, left).GetRestored())
	require.Equal(t, int32(1), restore(t, b, right).GetRestored())
	require.Equal(t, left, parentKey(t, b, leaf))
	require.Empty(t, parentKey(t, b, left))
	sound(t, b)
}
