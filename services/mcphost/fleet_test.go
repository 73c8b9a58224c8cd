package mcphost_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost"
)

func seatWith(handle string, servers ...string) *companyv1.Seat {
	s := &companyv1.Seat{Handle: handle, McpEnv: map[string]*companyv1.Environment{}}
	for _, name := range servers {
		s.McpEnv[name] = &companyv1.Environment{Variables: map[string]string{"WHO": handle}}
	}
	return s
}

func TestASeatsChildrenRunOnOneNodeAndMoveWhenItGoes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first, second := w.node(t, "n1"), w.node(t, "n2")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	shared, sharedEffects := hostile(t, "wiki", "")
	w.apply(t, first, []*companyv1.McpServer{s, shared}, seatWith("ada", "gh"))
	_, err := first.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)

	require.Eventually(t, func() bool { return second.tools(t, "", "wiki").GetState() == "ready" }, 10*time.Second, 10*time.Millisecond)
	// Whoever is asked finds the node that holds the seat.
	require.Equal(t, "ready", second.tools(t, "ada", "gh").GetState())
	_, err = second.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	require.Equal(t, 1, count(t, effects, "start"))
	require.Equal(t, 2, count(t, sharedEffects, "start"), "a shared server runs on every node")

	// Either node shows what both run.
	require.Eventually(t, func() bool {
		answer, err := second.ListServers(t.Context(), &mcphostv1.ListServersRequest{})
		require.NoError(t, err)
		gh, wiki := answer.GetServers()[0].GetInstances(), answer.GetServers()[1].GetInstances()
		nodes := answer.GetNodes()
		require.Len(t, nodes, 2)
		require.Equal(t, "n1", nodes[0].GetNode())
		require.NotNil(t, nodes[1].GetReportTime())
		return len(gh) == 1 && gh[0].GetNode() == "n1" && gh[0].GetSeat() == "ada" && gh[0].GetState() == "ready" && len(wiki) == 2
	}, 10*time.Second, 10*time.Millisecond)

	first.stop()
	_, err = second.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	require.Equal(t, 2, count(t, effects, "start"))
}

func TestASeatWhoseLeaseIsLostLosesItsChildrenAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	_, err := n.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	require.Len(t, childrenOf(t, effects), 1)
	w.present(t, "n2")
	_, err = w.pool.Exec(t.Context(), `update seat_leases set node = 'n2', expires_at = now() + interval '1 minute'`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(childrenOf(t, effects)) == 0 }, 30*time.Second, 20*time.Millisecond)
	_, err = n.call(handedTo(t.Context(), "n1"), "ada", "gh", "echo", "{}")
	require.Equal(t, "SEAT_HELD", refusal(t, err, fault.Unavailable, "").Reason)
}

func TestASeatsIdleChildrenEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1", func(c *mcphost.Config) { c.SeatIdle = time.Second })
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	_, err := n.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(childrenOf(t, effects)) == 0 }, 10*time.Second, 20*time.Millisecond)
	_, err = n.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
}

func TestIdleChildrenMakeRoomAtTheCeilingAndBusyOnesDoNot(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1", func(c *mcphost.Config) { c.MaxChildren = 1 })
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"), seatWith("bo", "gh"), seatWith("cy", "gh"))
	_, err := n.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	ctx, giveUp := context.WithCancel(t.Context())
	hung := make(chan error, 1)
	go func() {
		_, err := n.call(ctx, "bo", "gh", "hang", "{}")
		hung <- err
	}()
	require.Eventually(t, func() bool { return count(t, effects, "hang") == 1 }, 30*time.Second, 10*time.Millisecond)
	require.Len(t, childrenOf(t, effects), 1)
	_, err = n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "gh", Tool: "echo", Seat: "cy", Timeout: durationpb.New(5 * time.Second)})
	require.Equal(t, "TOO_MANY_SERVERS", refusal(t, err, fault.Unavailable, "").Reason)
	waiting := make(chan error, 1)
	go func() {
		_, err := n.call(t.Context(), "cy", "gh", "echo", "{}")
		waiting <- err
	}()
	giveUp()
	refusal(t, <-hung, fault.Unavailable, fault.OutcomeUnknown)
	require.NoError(t, <-waiting, "whoever waits gets the room that becomes free")
}

func TestManyCallersOfASeatStartOneChild(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	done := make(chan error, 16)
	for range cap(done) {
		go func() {
			_, err := n.call(t.Context(), "ada", "gh", "echo", "{}")
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	require.Equal(t, 1, count(t, effects, "start"))
}
