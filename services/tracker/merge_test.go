package tracker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

func TestADuplicateThatIsTakenUpAgainMayBeMergedOnceMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	duplicate, survivor, other := add(t, b, "duplicate", ""), add(t, b, "survivor", ""), add(t, b, "other", "")
	merge := func(item, into string) *trackerv1.MergeWorkItemResponse {
		res, err := b.client.MergeWorkItem(operator(t.Context()), &trackerv1.MergeWorkItemRequest{Item: item, Into: into})
		require.NoError(t, err)
		return res
	}
	merge(duplicate, survivor)
	require.Equal(t, "unchanged", merge(duplicate, survivor).GetOutcome())
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: duplicate, Status: proto.String("todo")})
	require.Equal(t, "applied", merge(other, duplicate).GetOutcome(), "what is open again takes duplicates of its own")
	again := merge(duplicate, survivor)
	require.Equal(t, "applied", again.GetOutcome())
	require.Equal(t, "cancelled", again.GetStatus())
	require.Equal(t, "cancelled", got(t, b, duplicate).GetStatus())
	require.Equal(t, survivor, got(t, b, duplicate).GetDuplicateOf())
	sound(t, b)
}
