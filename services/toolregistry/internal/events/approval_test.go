package events_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/events"
)

func settled(t *testing.T, shown, result int) *toolregistryv1.Approval {
	t.Helper()
	a := &approval.Approval{
		ID: uuid.New(), State: approval.Approved, Asker: approval.Asker{Seat: "ada"}, Arguments: "secret", Shown: strings.Repeat("a", shown),
		Call: approval.Call{Status: approval.OK, Result: strings.Repeat("r", result)},
	}
	message, err := events.EncodeApproval(a, 7, time.Unix(1, 0))
	require.NoError(t, err)
	require.LessOrEqual(t, len(message.Payload), bus.MaxValueBytes)
	require.NotContains(t, string(message.Payload), "secret", "arguments leave as people may see them")
	require.Equal(t, "ada", message.Key)
	again, err := events.EncodeApproval(a, 8, time.Unix(2, 0))
	require.NoError(t, err)
	require.Equal(t, message.EventID, again.EventID, "a fact is told once")
	var event toolregistryv1.ApprovalEvent
	require.NoError(t, proto.Unmarshal(message.Payload, &event))
	return event.GetApprovalSettled().GetApproval()
}

func TestAnApprovalsEventFitsAMessage(t *testing.T) {
	t.Parallel()
	small := settled(t, 1000, 900_000)
	require.Len(t, small.GetArgumentsJson(), 1000)
	require.Len(t, small.GetResult(), 900_000, "what fits goes whole")
	for _, sizes := range [][2]int{{4 << 20, 10}, {10, 8 << 20}, {4 << 20, 8 << 20}, {600_000, 600_000}} {
		big := settled(t, sizes[0], sizes[1])
		require.Contains(t, big.GetArgumentsJson()+big.GetResult(), "bytes, SHA-256")
	}
}
