package mcphost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost"
)

// soon is how long a test waits for what happens within a second on a quiet machine.
const soon = time.Minute

// instances answers the rows of a server, as a node shows them.
func (n *node) instances(t testing.TB, server string) []*mcphostv1.Instance {
	t.Helper()
	answer, err := n.ListServers(t.Context(), &mcphostv1.ListServersRequest{})
	require.NoError(t, err)
	for _, s := range answer.GetServers() {
		if s.GetServer() == server {
			return s.GetInstances()
		}
	}
	return nil
}

func (w *world) leases(t testing.TB) (n int) {
	t.Helper()
	require.NoError(t, w.pool.QueryRow(t.Context(), `select count(*) from seat_leases`).Scan(&n))
	return n
}

func TestARotatedSecretReachesEveryNodesChildrenWithARestart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.company.secrets["KEY"] = "old-secret-1"
	first, second := w.node(t, "n1"), w.node(t, "n2")
	shared, sharedEffects := hostile(t, "wiki", "")
	own, ownEffects := hostile(t, "gh", "")
	own.Shared = false
	shared.Env["KEY"], own.Env["KEY"] = "${KEY}", "${KEY}"
	w.apply(t, first, []*companyv1.McpServer{shared, own}, seatWith("ada", "gh"))
	for _, n := range []*node{first, second} {
		require.Eventually(t, func() bool { return n.tools(t, "", "wiki").GetState() == "ready" }, soon, 10*time.Millisecond)
	}
	_, err := second.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)

	w.company.mu.Lock()
	w.company.secrets["KEY"] = "new-secret-2"
	w.company.mu.Unlock()
	restarted, err := first.RestartServer(t.Context(), &mcphostv1.RestartServerRequest{Server: "wiki"})
	require.NoError(t, err)
	require.EqualValues(t, 2, restarted.GetRestarted())
	restarted, err = first.RestartServer(t.Context(), &mcphostv1.RestartServerRequest{Server: "gh", Seat: "ada"})
	require.NoError(t, err)
	require.EqualValues(t, 1, restarted.GetRestarted(), "the other node's")
	_, err = first.RestartServer(t.Context(), &mcphostv1.RestartServerRequest{Server: "nonesuch"})
	refusal(t, err, fault.NotFound, "")
	_, err = first.RestartServer(asOperator(t.Context()), &mcphostv1.RestartServerRequest{Server: "gh"})
	refusal(t, err, fault.Forbidden, "")

	_, err = first.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	require.Equal(t, 2, count(t, ownEffects, "start"))
	require.Eventually(t, func() bool { return count(t, sharedEffects, "start") == 4 }, soon, 10*time.Millisecond)
	for _, effects := range []string{sharedEffects, ownEffects} {
		require.Eventually(t, func() bool {
			pids := childrenOf(t, effects)
			for _, pid := range pids {
				if !strings.Contains(environmentOf(pid), "KEY=new-secret-2") {
					return false
				}
			}
			return len(pids) > 0
		}, soon, 10*time.Millisecond)
	}
}

func TestAnExchangeFindsTheNodeOfTheSeat(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first, second := w.node(t, "n1"), w.node(t, "n2")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, first, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	_, err := first.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	stream, err := second.Exchange(t.Context(), &mcphostv1.ExchangeRequest{
		Server: "gh", Seat: "ada", Method: "tools/call", ParamsJson: `{"name":"echo","arguments":{"n":9007199254740993}}`, Timeout: durationpb.New(soon),
	})
	require.NoError(t, err)
	require.Contains(t, resultOf(t, stream), "9007199254740993")
	require.Equal(t, 1, count(t, effects, "start"))

	released, err := second.ReleaseSeat(t.Context(), &mcphostv1.ReleaseSeatRequest{Seat: "ada"})
	require.NoError(t, err)
	require.EqualValues(t, 1, released.GetEnded(), "at the other node")
	require.Empty(t, childrenOf(t, effects))
	require.Eventually(t, func() bool { return w.leases(t) == 0 }, soon, 10*time.Millisecond)
	released, err = second.ReleaseSeat(t.Context(), &mcphostv1.ReleaseSeatRequest{Seat: "ada"})
	require.NoError(t, err)
	require.Zero(t, released.GetEnded())
}

// handedTo makes the calls of a context look as if another node had handed them on.
func handedTo(ctx context.Context, node string) context.Context {
	ctx, info := connect.NewClientContext(ctx)
	info.RequestHeader().Set("Bullpen-Mcphost-Node", node)
	return ctx
}

// resultOf reads an exchange to its end.
func resultOf(t *testing.T, stream mcphostv1connect.McpHostServiceExchangeClientStream) string {
	t.Helper()
	defer stream.Close()
	var result string
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return result
		}
		require.NoError(t, err)
		require.Empty(t, m.GetErrorJson())
		result += m.GetResultJson()
	}
}

func TestAnAnswerReachesTheNodeThatAsked(t *testing.T) {
	t.Parallel()
	w, program := setup(t), tiny(t)
	first, second := w.node(t, "n1"), w.node(t, "n2")
	s := templates(program, 1)[0]
	s.Shared = true
	w.apply(t, first, []*companyv1.McpServer{s})
	for _, n := range []*node{first, second} {
		require.Eventually(t, func() bool { return n.tools(t, "", "s0").GetState() == "ready" }, soon, 10*time.Millisecond)
	}
	exchange := func(n *node, params string) string {
		stream, err := n.Exchange(t.Context(), &mcphostv1.ExchangeRequest{
			Server: "s0", Method: "tools/call", ParamsJson: params, ClientCapabilitiesJson: `{"elicitation":{"form":{}}}`, Timeout: durationpb.New(soon),
		})
		require.NoError(t, err)
		return resultOf(t, stream)
	}
	var asked struct {
		ResultType    string
		InputRequests map[string]any
		RequestState  string
	}
	require.NoError(t, json.Unmarshal([]byte(exchange(first, `{"name":"ask"}`)), &asked))
	require.Equal(t, "input_required", asked.ResultType)
	require.Len(t, asked.InputRequests, 1)
	for question := range asked.InputRequests {
		answered := exchange(second, fmt.Sprintf(`{"name":"ask","inputResponses":{%q:{"action":"accept","content":{"name":"Ada"}}},"requestState":%q}`, question, asked.RequestState))
		require.Contains(t, answered, `"content"`)
	}
}

func TestToolsAreNotSentAgainToWhoeverHasThem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, _ := hostile(t, "s", "crowd")
	w.apply(t, n, []*companyv1.McpServer{s})
	require.Len(t, n.tools(t, "", "s").GetToolsJson(), 5000)
	whole, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{})
	require.NoError(t, err)
	require.False(t, whole.GetUnchanged())
	again, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{KnownDigest: whole.GetDigest()})
	require.NoError(t, err)
	require.True(t, again.GetUnchanged())
	require.Empty(t, again.GetServers())
	require.Equal(t, whole.GetDigest(), again.GetDigest())
	other, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{KnownDigest: "of before"})
	require.NoError(t, err)
	require.False(t, other.GetUnchanged())
	require.Len(t, other.GetServers(), len(whole.GetServers()))
}

func TestASeatThatNothingRunsForIsGivenBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1", func(c *mcphost.Config) { c.SeatIdle = time.Second })
	s, _ := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"), seatWith("bo", "gh"))
	for _, seat := range []string{"ada", "bo"} {
		_, err := n.call(t.Context(), seat, "gh", "echo", "{}")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return w.leases(t) == 0 }, soon, 20*time.Millisecond)
}

func TestChildrenEndWhenTheLeaseCannotBeRenewed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	_, err := n.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
	_, err = w.pool.Exec(t.Context(), `alter table seat_leases rename to away`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(childrenOf(t, effects)) == 0 }, soon, 20*time.Millisecond)
	patient := make(chan error, 1)
	go func() {
		_, err := n.call(t.Context(), "ada", "gh", "echo", "{}")
		patient <- err
	}()
	_, err = n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "gh", Tool: "echo", Seat: "ada", Timeout: durationpb.New(time.Second)})
	refusal(t, err, fault.Unavailable, "")
	_, err = w.pool.Exec(t.Context(), `alter table away rename to seat_leases`)
	require.NoError(t, err)
	require.NoError(t, <-patient, "who has the time waits for the database")
}

func TestANodeThatWasTakenForDeadSaysAgainWhatItRuns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	require.Equal(t, "ready", n.tools(t, "", "s").GetState())
	shown := func() bool {
		rows := n.instances(t, "s")
		return len(rows) == 1 && rows[0].GetState() == "ready"
	}
	require.Eventually(t, shown, soon, 10*time.Millisecond)
	_, err := w.pool.Exec(t.Context(), `delete from nodes`)
	require.NoError(t, err)
	require.Eventually(t, shown, soon, 10*time.Millisecond)
	require.Equal(t, 1, count(t, effects, "start"))
}

func TestAnAddressThatNobodyServesIsShownAsFailed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	closed := serveWeb(t)
	closed.Close()
	w.apply(t, n, []*companyv1.McpServer{{Name: "away", Transport: "http", Url: closed.URL, Shared: true, StartupTimeoutSeconds: 20}})
	require.Eventually(t, func() bool {
		rows := n.instances(t, "away")
		return len(rows) == 1 && rows[0].GetState() == "failed" && strings.Contains(rows[0].GetReason(), "refused") && rows[0].GetStarts() > 1
	}, soon, 10*time.Millisecond)
}

func TestACallThatOnlyReadsIsMadeAgainAfterACrash(t *testing.T) {
	t.Parallel()
	w, program := setup(t), tiny(t)
	n := w.node(t, "n1")
	effects := filepath.Join(filepath.Dir(program), "effects")
	s := templates(program, 1)[0]
	s.Shared, s.Env = true, map[string]string{"TINY_EFFECTS": effects}
	w.apply(t, n, []*companyv1.McpServer{s})
	for tool, again := range map[string]bool{"read": true, "write": false} {
		require.Eventually(t, func() bool { return n.tools(t, "", "s0").GetState() == "ready" }, soon, 10*time.Millisecond)
		answer := make(chan error, 1)
		go func() {
			_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "s0", Tool: tool, Timeout: durationpb.New(soon)})
			answer <- err
		}()
		require.Eventually(t, func() bool { return effectsOf(t, effects, tool) == 1 }, soon, 10*time.Millisecond)
		for _, pid := range processesOf(t, program) {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		if again {
			require.NoError(t, <-answer)
			require.Equal(t, 2, effectsOf(t, effects, tool))
			continue
		}
		refusal(t, <-answer, fault.Unavailable, fault.OutcomeUnknown)
		require.Equal(t, 1, effectsOf(t, effects, tool))
	}
}

func TestAToolsOwnLimitEndsItsCalls(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	s.ToolPrefix, s.RequestTimeoutSeconds, s.ToolTimeoutSeconds = "x_", 600, map[string]int32{"hang": 1, "x_progress": 1}
	w.apply(t, n, []*companyv1.McpServer{s})
	for _, tool := range []string{"hang", "progress"} {
		_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "s", Tool: tool})
		f := refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
		require.Contains(t, f.Message, "1s", tool)
	}
	require.Eventually(t, func() bool { return count(t, effects, "cancelled") >= 2 }, soon, 10*time.Millisecond)
	require.Equal(t, 1, count(t, effects, "start"))
}

func TestARequestThatWasHandedOnIsNotHandedOnAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, _ := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	w.present(t, "n2")
	// n2 looks alive, but another process has its address: this one's.
	_, err := w.pool.Exec(t.Context(), `insert into nodes (node, url, reported_at) select 'n2', url, now() + interval '1 hour' from nodes where node = 'n1'`)
	require.NoError(t, err)
	_, err = w.pool.Exec(t.Context(), `insert into seat_leases (seat, node, expires_at) values ('ada', 'n2', now() + interval '1 hour')`)
	require.NoError(t, err)
	for to, reason := range map[string]string{"n2": "NODE_CHANGED", "n1": "SEAT_HELD"} {
		_, err = n.call(handedTo(t.Context(), to), "ada", "gh", "echo", "{}")
		require.Equal(t, reason, refusal(t, err, fault.Unavailable, "").Reason)
	}
	answer, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{Seat: "ada"})
	require.NoError(t, err, "the other servers can be used all the same")
	require.Equal(t, "failed", answer.GetServers()[0].GetState())
	require.NotEmpty(t, answer.GetServers()[0].GetReason())
}

func TestAProgramThatNeverWakesIsGivenUpAfterItsInstallTime(t *testing.T) {
	t.Parallel()
	w, program := setup(t), tiny(t)
	n := w.node(t, "n1")
	never := &companyv1.McpServer{Name: "never", Transport: "stdio", Command: "sh", Args: []string{"-c", "sleep 600"}, Shared: true, InstallTimeoutSeconds: 1, StartupTimeoutSeconds: 600}
	slow := &companyv1.McpServer{Name: "slow", Transport: "stdio", Command: "sh", Args: []string{"-c", "sleep 2; exec " + program}, Shared: true, StartupTimeoutSeconds: 600}
	w.apply(t, n, []*companyv1.McpServer{never, slow})
	require.Eventually(t, func() bool {
		rows := n.instances(t, "never")
		return len(rows) == 1 && rows[0].GetState() == "failed" && strings.Contains(rows[0].GetReason(), "first word")
	}, soon, 10*time.Millisecond)
	require.Eventually(t, func() bool { return n.tools(t, "", "slow").GetState() == "ready" }, soon, 10*time.Millisecond)
	require.EqualValues(t, 1, n.instances(t, "slow")[0].GetStarts(), "nobody lost patience with it")
}

func TestANodeThatIsCutOffFromTheDatabaseKeepsItsSeatsUntilTheirLeasesEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, _ := hostile(t, "gh", "")
	s.Shared = false
	w.apply(t, n, []*companyv1.McpServer{s}, seatWith("ada", "gh"))
	// n2 shows nothing of itself in the database, and yet it lives: its children may act for its seats.
	asked := make(chan struct{}, 100)
	lives := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		rw.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer lives.Close()
	_, err := w.pool.Exec(t.Context(), `insert into nodes (node, url, reported_at) values ('n2', $1, now() + interval '1 hour')`, lives.URL)
	require.NoError(t, err)
	_, err = w.pool.Exec(t.Context(), `insert into seat_leases (seat, node, expires_at) values ('ada', 'n2', now() + interval '1 hour')`)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(asked) >= 3 }, soon, 10*time.Millisecond)
	require.Equal(t, 1, w.leases(t), "it was asked, and is not buried")

	lives.Close()
	require.Eventually(t, func() bool { return w.leases(t) == 0 }, soon, 10*time.Millisecond)
	_, err = n.call(t.Context(), "ada", "gh", "echo", "{}")
	require.NoError(t, err)
}
