package tracker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func TestARepeatedCommentOrOrderOfWorkIsAnsweredAsTheFirstTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Once").GetKey()
	asking := rpc.WithOperation(seat(t.Context(), "ops-lead"), "op-ask")
	ask := &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "May I?", Ask: "ines", Decision: choice()}
	first, again := say(asking, t, b, ask), say(asking, t, b, ask)
	require.Empty(t, cmp.Diff(first, again, protocmp.Transform()))
	answering := rpc.WithOperation(member(t.Context(), "ines"), "op-answer")
	answer := &trackerv1.CommentOnWorkItemRequest{Item: key, Choice: "b"}
	first, again = say(answering, t, b, answer), say(answering, t, b, answer)
	require.Empty(t, cmp.Diff(first, again, protocmp.Transform()), "not told that it is answered already")
	require.Len(t, whole(t, b, key).GetComments(), 2)
	ordering := rpc.WithOperation(member(t.Context(), "ines"), "op-order")
	order := &trackerv1.SetPrioritiesRequest{Items: []string{key}, IfMatch: proto.Int32(0)}
	one, err := b.client.SetPriorities(ordering, order)
	require.NoError(t, err)
	two, err := b.client.SetPriorities(ordering, order)
	require.NoError(t, err, "though the version has moved")
	require.Empty(t, cmp.Diff(one, two, protocmp.Transform()))
}

func TestWhoseOrderOfWorkSomebodyElseSetHearsOfEachNewItem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := file(t, b, "One"), file(t, b, "Two")
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "orders")
	require.NoError(t, err)
	defer subscription.Close()
	_, err = prioritise(member(t.Context(), "ines"), b, "designer", one.GetKey())
	require.NoError(t, err)
	_, err = prioritise(operator(t.Context()), b, "designer", two.GetKey(), one.GetKey())
	require.NoError(t, err)
	_, err = prioritise(seat(t.Context(), "designer"), b, "", one.GetKey(), two.GetKey())
	require.NoError(t, err)
	var about [][]string
	for len(about) < 3 {
		messages, err := subscription.Fetch(t.Context(), 10)
		require.NoError(t, err)
		for _, m := range messages {
			event := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, event))
			if event.GetProjectChanged() == nil {
				continue
			}
			require.Equal(t, "prioritised", event.GetProjectChanged().GetChange().GetKind())
			heard := []string{}
			for _, c := range event.GetProjectChanged().GetRouting().GetConcerns() {
				require.Equal(t, "designer", c.GetHandle())
				require.Equal(t, "prioritised", c.GetReason())
				heard = append(heard, c.GetAboutKey())
			}
			about = append(about, heard)
		}
	}
	require.Equal(t, [][]string{{"OPS-1"}, {"OPS-2"}, {}}, about, "what is new, and nothing of one's own order")
}
