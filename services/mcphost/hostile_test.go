package mcphost_test

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestServersThatMisbehaveAtTheStartBecomeReadyAllTheSame(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	modes := []string{"", "modern", "exit_on_discover", "silent_on_discover", "banner", "stderr_flood", "pages", "duplicates", "null_schema", "repeated_cursor"}
	var servers []*companyv1.McpServer
	for _, mode := range modes {
		s, _ := hostile(t, "s-"+mode, mode)
		servers = append(servers, s)
	}
	w.apply(t, n, servers)
	for _, mode := range modes {
		s := n.tools(t, "", "s-"+mode)
		require.Equal(t, "ready", s.GetState(), "%s: %s", mode, s.GetReason())
		names := 16
		if mode == "null_schema" {
			names++ // what has a name is shown; whether its schema can be used is the registry's to say
		}
		require.Len(t, s.GetToolsJson(), names, mode)
		answer, err := n.call(t.Context(), "", "s-"+mode, "echo", `{"n": 9007199254740993}`)
		require.NoError(t, err, mode)
		require.Contains(t, answer.GetResultJson(), `{"n": 9007199254740993}`, mode)
	}
	// Reports follow within moments.
	require.Eventually(t, func() bool {
		answer, err := n.ListServers(t.Context(), &mcphostv1.ListServersRequest{})
		require.NoError(t, err)
		for _, s := range answer.GetServers()[:len(modes)] {
			want := "2025-06-18"
			if s.GetServer() == "s-modern" {
				want = "2026-07-28"
			}
			if len(s.GetInstances()) != 1 || s.GetInstances()[0].GetProtocolVersion() != want || s.GetInstances()[0].GetState() != "ready" {
				return false
			}
		}
		return true
	}, 10*time.Second, 20*time.Millisecond)
}

func TestAServerThatTheProbeWedgesIsStartedAnewAndRemembered(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "wedge_on_discover")
	w.apply(t, n, []*companyv1.McpServer{s})
	require.Equal(t, "ready", n.tools(t, "", "s").GetState())
	require.Equal(t, 2, count(t, effects, "start"), "one with the probe, one without")
	_, err := n.call(t.Context(), "", "s", "crash", "{}")
	refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
	_, err = n.call(t.Context(), "", "s", "echo", "{}")
	require.NoError(t, err)
	require.Equal(t, 3, count(t, effects, "start"), "it is not probed again")
}

func TestWhatAServerWroteArrivesAsItWroteIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	old, _ := hostile(t, "old", "")
	newest, _ := hostile(t, "newest", "modern")
	w.apply(t, n, []*companyv1.McpServer{old, newest})
	for _, name := range []string{"old", "newest"} {
		tools := n.tools(t, "", name).GetToolsJson()
		require.Contains(t, tools, `{"name":"rich","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"annotations":{"readOnlyHint":true},"icons":[{"src":"x"}],"_meta":{"k":9007199254740993},"unknown":1.50}`)
		answer, err := n.call(t.Context(), "", name, "rich", "")
		require.NoError(t, err)
		require.Equal(t, `{"content":[{"type":"text","text":"x","annotations":{"priority":0.10}}],"structuredContent":{"n":9007199254740993,"f":1.50},"_meta":{"k":12345678901234567890},"unknown":[1e400]}`, answer.GetResultJson())
		big, err := n.call(t.Context(), "", name, "big", "{}")
		if name == "old" {
			require.NoError(t, err)
			require.True(t, big.GetFailed())
			require.Contains(t, big.GetResultJson(), "33554")
		}
	}
}

func TestAServerThatFailsCostsOnlyItsTools(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.company.secrets["TOKEN"] = "hunter2-hunter2"
	n := w.node(t, "n1")
	good, _ := hostile(t, "good", "")
	bad, effects := hostile(t, "bad", "fail")
	bad.Env["TOKEN"] = "${TOKEN}"
	unresolved, untouched := hostile(t, "unresolved", "")
	unresolved.Env["TOKEN"] = "Bearer ${NOBODY_HAS_THIS}"
	noise, _ := hostile(t, "noise", "noise")
	crowd, _ := hostile(t, "crowd", "multitude")
	missing := &companyv1.McpServer{Name: "missing", Transport: "stdio", Command: "no-such-program", Shared: true}
	w.apply(t, n, []*companyv1.McpServer{bad, unresolved, noise, crowd, missing, good})

	require.Equal(t, "ready", n.tools(t, "", "good").GetState())
	for name, reason := range map[string]string{
		"bad": "Error: the token [REDACTED:secret] is not valid", "unresolved": "NOBODY_HAS_THIS", "noise": "no protocol messages",
		"crowd": "it lists more than", "missing": `"no-such-program" is not in PATH`,
	} {
		require.Eventually(t, func() bool {
			s := n.tools(t, "", name)
			return s.GetState() == "failed" && strings.Contains(s.GetReason(), reason) && len(s.GetReason()) <= 500
		}, 20*time.Second, 20*time.Millisecond, "%s: %s", name, n.tools(t, "", name).GetReason())
		require.Empty(t, n.tools(t, "", name).GetToolsJson())
	}
	require.Zero(t, count(t, untouched, "start"), "nothing is started without its credentials")
	require.Greater(t, count(t, effects, "start"), 1, "it is tried again")
	require.Contains(t, w.logs.String(), "mcp_server_failed")
	require.Contains(t, w.logs.String(), "server_stderr")
	require.NotContains(t, w.logs.String(), "hunter2-hunter2")
	for _, c := range n.service.Ready(t.Context()) {
		require.False(t, c.Blocking && !c.OK, c.Name)
	}
	_, err := n.call(t.Context(), "", "good", "echo", "{}")
	require.NoError(t, err)
}

func TestAChildSeesOnlyWhatIsDeclaredForIt(t *testing.T) {
	t.Setenv("BULLPEN_SECRET", "the service's own")
	w := setup(t)
	n := w.node(t, "n1")
	s, _ := hostile(t, "s", "")
	s.Env["MINE"] = "declared"
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	answer, err := n.call(t.Context(), "", "s", "env", "")
	require.NoError(t, err)
	require.Contains(t, answer.GetResultJson(), "MINE=declared")
	require.NotContains(t, answer.GetResultJson(), "BULLPEN")
	for line := range strings.SplitSeq(answer.GetResultJson(), `\n`) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, `{"content":[{"type":"text","text":"`), "=")
		require.Contains(t, []string{"PATH", "HOME", "MINE", "HOSTILE", "HOSTILE_EFFECTS"}, name)
	}
}

func TestEachSeatHasAChildWithItsOwnCredentials(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.company.secrets["ADA"], w.company.secrets["BO"] = "ada-secret-1", "bo-secret-22"
	n := w.node(t, "n1")
	s, effects := hostile(t, "gh", "")
	s.Shared = false
	s.Env["WHO"], s.Env["BASE"] = "nobody", "base"
	seats := []*companyv1.Seat{
		{Handle: "ada", McpEnv: map[string]*companyv1.Environment{"gh": {Variables: map[string]string{"WHO": "ada", "TOKEN": "${ADA}"}}}},
		{Handle: "bo", McpEnv: map[string]*companyv1.Environment{"gh": {Variables: map[string]string{"WHO": "bo", "TOKEN": "${BO}"}}}},
		{Handle: "cy"},
	}
	w.apply(t, n, []*companyv1.McpServer{s}, seats...)
	require.Zero(t, count(t, effects, "start"), "a template runs for nobody")
	none, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{Seat: "cy", Wait: durationpb.New(time.Second)})
	require.NoError(t, err)
	require.Empty(t, none.GetServers())
	_, err = n.call(t.Context(), "cy", "gh", "echo", "{}")
	refusal(t, err, fault.NotFound, "")
	_, err = n.call(t.Context(), "", "gh", "echo", "{}")
	refusal(t, err, fault.NotFound, "")

	for _, seat := range []string{"ada", "bo"} {
		tools := n.tools(t, seat, "gh")
		require.True(t, tools.GetOwn())
		require.Equal(t, "ready", tools.GetState(), tools.GetReason())
		answer, err := n.call(t.Context(), seat, "gh", "env", "{}")
		require.NoError(t, err)
		require.Contains(t, answer.GetResultJson(), `WHO=`+seat)
		require.Contains(t, answer.GetResultJson(), "BASE=base")
		require.Contains(t, answer.GetResultJson(), "TOKEN=[REDACTED:secret]")
		require.NotContains(t, answer.GetResultJson(), "-secret")
	}
	require.Equal(t, 2, count(t, effects, "start"))

	// A revision that changes one seat's credentials ends that seat's child only.
	seats[0] = &companyv1.Seat{Handle: "ada", McpEnv: map[string]*companyv1.Environment{"gh": {Variables: map[string]string{"WHO": "ada2"}}}}
	w.apply(t, n, []*companyv1.McpServer{s}, seats...)
	answer, err := n.call(t.Context(), "ada", "gh", "env", "{}")
	require.NoError(t, err)
	require.Contains(t, answer.GetResultJson(), "WHO=ada2")
	_, err = n.call(t.Context(), "bo", "gh", "env", "{}")
	require.NoError(t, err)
	require.Equal(t, 3, count(t, effects, "start"))

	released, err := n.ReleaseSeat(t.Context(), &mcphostv1.ReleaseSeatRequest{Seat: "bo"})
	require.NoError(t, err)
	require.EqualValues(t, 1, released.GetEnded())
}

func TestANewRevisionRestartsOnlyWhatItChanges(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	one, effects1 := hostile(t, "one", "")
	two, effects2 := hostile(t, "two", "")
	w.apply(t, n, []*companyv1.McpServer{one, two})
	n.tools(t, "", "one")
	n.tools(t, "", "two")
	changed := &companyv1.McpServer{
		Name: "two", Transport: two.GetTransport(), Command: two.GetCommand(), Shared: true,
		Env: map[string]string{"HOSTILE": "", "HOSTILE_EFFECTS": two.GetEnv()["HOSTILE_EFFECTS"], "NEW": "value"},
	}
	one.ToolPrefix = "one_" // is the registry's business, and no reason for a restart
	w.apply(t, n, []*companyv1.McpServer{one, changed})
	answer, err := n.call(t.Context(), "", "two", "env", "")
	require.NoError(t, err)
	require.Contains(t, answer.GetResultJson(), "NEW=value")
	require.Equal(t, "one_", n.tools(t, "", "one").GetToolPrefix())
	require.Equal(t, 1, count(t, effects1, "start"))
	require.Equal(t, 2, count(t, effects2, "start"))
	w.apply(t, n, []*companyv1.McpServer{changed})
	_, err = n.call(t.Context(), "", "one", "echo", "")
	refusal(t, err, fault.NotFound, "")
}

func TestAChildThatIsKilledIsStartedAgainForTheNextCall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	for _, pid := range childrenOf(t, effects) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	require.Eventually(t, func() bool {
		_, err := n.call(t.Context(), "", "s", "echo", "{}")
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, 2, count(t, effects, "start"))
}

func TestACrashInACallIsUnknownAndHappensOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	_, err := n.call(t.Context(), "", "s", "crash_after_effect", "{}")
	refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
	_, err = n.call(t.Context(), "", "s", "effect", "{}")
	require.NoError(t, err)
	require.Equal(t, 2, count(t, effects, "effect"), "nothing is called twice")
	_, err = n.call(t.Context(), "", "s", "nonesuch", "{}")
	refusal(t, err, fault.NotFound, "")
	_, err = n.call(t.Context(), "", "s", "echo", "[1]")
	refusal(t, err, fault.Invalid, "")
}

func TestACallThatIsNotAnsweredIsCancelledAndTheServerStays(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	for _, tool := range []string{"hang", "progress"} {
		_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "s", Tool: tool, Timeout: durationpb.New(300 * time.Millisecond)})
		f := refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
		require.Contains(t, f.Message, "300ms")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := n.call(ctx, "", "s", "hang", "{}")
	refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
	require.Eventually(t, func() bool { return count(t, effects, "cancelled") == 3 }, 5*time.Second, 10*time.Millisecond)
	_, err = n.call(t.Context(), "", "s", "echo", "{}")
	require.NoError(t, err)
	require.Equal(t, 1, count(t, effects, "start"))
}

func TestProgressKeepsACallAliveAndSilenceEndsIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, _ := hostile(t, "s", "")
	s.RequestTimeoutSeconds = 1
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	began := time.Now()
	_, err := n.call(t.Context(), "", "s", "hang", "{}")
	require.Contains(t, refusal(t, err, fault.Unavailable, fault.OutcomeUnknown).Message, "said nothing")
	require.Less(t, time.Since(began), 10*time.Second)
	_, err = n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "s", Tool: "progress", Timeout: durationpb.New(2 * time.Second)})
	require.Contains(t, refusal(t, err, fault.Unavailable, fault.OutcomeUnknown).Message, "did not finish")
}

func TestAStormOfWordsAboutChangesIsOneLookAndNoNews(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	require.Len(t, n.tools(t, "", "s").GetToolsJson(), 16)
	for looks, tool := range []string{"change", "storm"} {
		_, err := n.call(t.Context(), "", "s", tool, "{}")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return count(t, effects, "list") == looks+2 }, 10*time.Second, 10*time.Millisecond)
	}
	require.Len(t, n.tools(t, "", "s").GetToolsJson(), 17)
	n.stop() // everything is reported then
	var states []string
	catalogues := 0
	for _, e := range w.events(t) {
		if c := e.GetInstanceChanged(); c != nil {
			states = append(states, c.GetState())
		} else {
			catalogues++
		}
	}
	require.Equal(t, 2, catalogues, "the first list, and the one that differs")
	require.Equal(t, "shutdown", states[len(states)-1])
	require.Equal(t, 2, count(t, effects, "list")-1)
}

func TestStubbornChildrenEndWithTheNode(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	var servers []*companyv1.McpServer
	var files []string
	for _, mode := range []string{"ignore_eof", "ignore_eof,ignore_term", "grandchild"} {
		s, effects := hostile(t, "s"+strconv.Itoa(len(servers)), mode)
		servers, files = append(servers, s), append(files, effects)
	}
	w.apply(t, n, servers)
	var pids []int
	for i, s := range servers {
		require.Equal(t, "ready", n.tools(t, "", s.GetName()).GetState())
		pids = append(pids, childrenOf(t, files[i])...)
	}
	pids = append(pids, grandchildOf(t, files[2]))
	require.Len(t, pids, 4)
	began := time.Now()
	n.stop()
	require.Less(t, time.Since(began), 15*time.Second)
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, 5*time.Second, 10*time.Millisecond, pid)
	}
}

func TestOnlyServicesMayAsk(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, nil)
	for _, ctx := range []context.Context{asSeat(t.Context()), asOperator(t.Context())} {
		_, err := n.ListServers(ctx, &mcphostv1.ListServersRequest{})
		refusal(t, err, fault.Forbidden, "")
		_, err = n.ListServerTools(ctx, &mcphostv1.ListServerToolsRequest{})
		refusal(t, err, fault.Forbidden, "")
		_, err = n.call(ctx, "", "s", "echo", "{}")
		refusal(t, err, fault.Forbidden, "")
		_, err = n.ReleaseSeat(ctx, &mcphostv1.ReleaseSeatRequest{Seat: "ada"})
		refusal(t, err, fault.Forbidden, "")
	}
}
