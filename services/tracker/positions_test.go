package tracker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestAReadIsServedFromNoEarlierThanItsMinPosition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := file(t, b, "Placed")
	read := func(position string) error {
		_, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: res.GetKey(), MinPosition: position})
		return err
	}
	require.NoError(t, read(res.GetPosition()))
	require.NoError(t, read("tracker@1:0"))
	require.Equal(t, "WRONG_STREAM", refusal(t, read("knowledge@1:1"), fault.Invalid, "min_position").Reason)
	require.Equal(t, "WRONG_STREAM", refusal(t, read("tracker@2:1"), fault.Invalid, "min_position").Reason)
	require.Equal(t, "BEHIND", refusal(t, read("tracker@1:999999"), fault.Unavailable, "min_position").Reason)
	refusal(t, read("yesterday"), fault.Invalid, "min_position")
}
