package mcphost_test

import (
	"context"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost"
)

func TestAServerThatEndsNowAndThenIsThereForTheNextCall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "crash_after_three")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	for called := range 6 {
		// A call that meets the end is refused or lost; the one after it finds a server.
		require.Eventually(t, func() bool {
			_, err := n.call(t.Context(), "", "s", "effect", "{}")
			return err == nil
		}, 60*time.Second, 5*time.Millisecond, called)
	}
	require.GreaterOrEqual(t, count(t, effects, "start"), 2)
}

func TestALauncherThatDiesTakesTheRealServerWithIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "wrapper,ignore_eof")
	w.apply(t, n, []*companyv1.McpServer{s})
	tools := n.tools(t, "", "s")
	require.Equal(t, "ready", tools.GetState(), tools.GetReason())
	real := grandchildOf(t, effects)
	launchers := childrenOf(t, effects)
	require.Len(t, launchers, 1)
	require.NoError(t, syscall.Kill(launchers[0], syscall.SIGKILL))
	require.Eventually(t, func() bool { return !alive(real) }, 30*time.Second, 10*time.Millisecond, "its group goes with it")
	require.Eventually(t, func() bool {
		_, err := n.call(t.Context(), "", "s", "echo", "{}")
		return err == nil
	}, 60*time.Second, 10*time.Millisecond)
}

func TestAnAnswerDoesNotWaitForAChildThatWillNotEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "ignore_eof,ignore_term")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	stubborn := childrenOf(t, effects)
	require.Len(t, stubborn, 1)
	answered := make(chan bool, 1)
	go func() {
		_, err := n.call(t.Context(), "", "s", "partial", "{}")
		answered <- err == nil && alive(stubborn[0])
	}()
	require.Eventually(t, func() bool { return count(t, effects, "half") == 1 }, 30*time.Second, 5*time.Millisecond)
	_, err := n.call(t.Context(), "", "s", "release", "{}")
	require.NoError(t, err)
	require.True(t, <-answered)
	w.apply(t, n, nil)
	_, err = n.call(t.Context(), "", "s", "echo", "{}")
	require.Equal(t, fault.NotFound, refusal(t, err, fault.NotFound, "").Class, "the revision holds at once")
	require.Eventually(t, func() bool { return !alive(stubborn[0]) }, 60*time.Second, 10*time.Millisecond)
}

func TestCallsOfASeatMeetOneChildWithItsState(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"), seatWith("bo", "gh"))
	pid := func(seat string) string {
		answer, err := n.call(t.Context(), seat, "gh", "pid", "{}")
		require.NoError(t, err)
		return text(t, answer.GetResultJson())
	}
	ada := pid("ada")
	for range 10 {
		require.Equal(t, ada, pid("ada"))
	}
	require.NotEqual(t, ada, pid("bo"))
	require.Equal(t, 2, count(t, effects, "start"))
}

func TestAChildOutlivesTheCallThatStartedIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := n.call(ctx, "ada", "gh", "pid", "{}")
	require.NoError(t, err)
	cancel()
	_, err = n.call(t.Context(), "ada", "gh", "pid", "{}")
	require.NoError(t, err)
	require.Equal(t, 1, count(t, effects, "start"))
}

func TestWhatIsReadyIsServedWhileOthersStart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	slow, _ := hostile(t, "slow", "mute_list")
	good, _ := hostile(t, "good", "")
	w.apply(t, n, []*companyv1.McpServer{slow, good})
	require.Equal(t, "ready", n.tools(t, "", "good").GetState())
	answer, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{})
	require.NoError(t, err)
	require.NotEqual(t, "ready", answer.GetServers()[0].GetState(), "who does not wait is answered with what there is")
	require.Equal(t, "ready", answer.GetServers()[1].GetState())
	_, err = n.call(t.Context(), "", "good", "echo", "{}")
	require.NoError(t, err)
}

func TestAToolIsCalledOnTheServerThatWasNamed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	one, first := hostile(t, "one", "")
	two, second := hostile(t, "two", "")
	w.apply(t, n, []*companyv1.McpServer{one, two})
	n.tools(t, "", "one")
	n.tools(t, "", "two")
	for range 3 {
		_, err := n.call(t.Context(), "", "two", "effect", "{}")
		require.NoError(t, err)
	}
	require.Equal(t, []int{0, 3}, []int{count(t, first, "effect"), count(t, second, "effect")})
}

func TestTheCompanysWordOnTimeIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	impatient, _ := hostile(t, "impatient", "mute_list")
	impatient.StartupTimeoutSeconds = 1
	patient, _ := hostile(t, "patient", "slow_start")
	patient.StartupTimeoutSeconds = 60
	w.apply(t, n, []*companyv1.McpServer{impatient, patient})
	require.Eventually(t, func() bool { return n.tools(t, "", "impatient").GetState() == "failed" }, 60*time.Second, 10*time.Millisecond)
	require.Equal(t, "ready", n.tools(t, "", "patient").GetState())
	_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "patient", Tool: "hang", Timeout: durationpb.New(700 * time.Millisecond)})
	require.Contains(t, refusal(t, err, fault.Unavailable, fault.OutcomeUnknown).Message, "700ms")
}

func TestAServerThatFailsAtOnceIsNotStartedForEverySeatForEver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1", func(c *mcphost.Config) { c.MaxChildren = 50 })
	s, effects := hostile(t, "bad", "fail")
	s.Shared = false
	var seats []*companyv1.Seat
	for i := range 9 {
		seats = append(seats, seatWith("seat-"+strconv.Itoa(i), "bad"))
	}
	w.apply(t, n, []*companyv1.McpServer{s}, seats...)
	for _, seat := range seats {
		require.Eventually(t, func() bool { return n.tools(t, seat.GetHandle(), "bad").GetState() == "failed" }, 60*time.Second, 5*time.Millisecond)
	}
	for range 20 {
		for _, seat := range seats {
			_, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{Seat: seat.GetHandle()})
			require.NoError(t, err)
		}
	}
	// A look starts nothing: only the wait after each failure does, and it grows.
	require.LessOrEqual(t, count(t, effects, "start"), 9*7)
}
