package toolregistry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func calls(t *testing.T, w *world, req *toolregistryv1.ListCallsRequest) *toolregistryv1.ListCallsResponse {
	t.Helper()
	answer, err := w.console.ListCalls(asOperator(t.Context()), req)
	require.NoError(t, err)
	return answer
}

func TestEveryCallIsAuditedWholeAndTold(t *testing.T) {
	t.Parallel()
	w := build(t, options{bus: true})
	w.neighbours.create = func(context.Context, *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		return &trackerv1.CreateWorkItemResponse{Outcome: "applied", Position: "tracker@1:1", Key: "OPS-1"}, nil
	}
	answer, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{
		Tool: "create_work_item", ArgumentsJson: `{"title":"x","body":"` + fakeToken + `"}`, OperationId: "op-1", CallId: "call-1",
	})
	require.NoError(t, err)
	_, err = w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "create_work_item", ArgumentsJson: `not JSON`, CallId: "call-2"})
	require.Error(t, err)
	_, err = w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "no_such_thing", CallId: "call-3"})
	require.Error(t, err)
	require.Eventually(t, func() bool { return len(calls(t, w, &toolregistryv1.ListCallsRequest{TurnId: "t1"}).GetCalls()) == 3 }, 20*time.Second, 10*time.Millisecond)
	all := calls(t, w, &toolregistryv1.ListCallsRequest{Seat: "ada"}).GetCalls()
	unknown, malformed, created := all[0], all[1], all[2]
	require.Equal(t, answer.GetAuditId(), created.GetAuditId())
	require.Equal(t, "call-1", created.GetCallId())
	require.Equal(t, "seat:ada", created.GetPrincipal())
	require.Equal(t, "ok", created.GetStatus())
	require.Equal(t, "applied", created.GetOutcome())
	require.Equal(t, "op-1", created.GetOperationId())
	require.JSONEq(t, `{"title":"x","body":"[REDACTED:github_token]"}`, created.GetArgumentsJson())
	require.Equal(t, answer.GetResultJson(), created.GetResult())
	require.Equal(t, []string{"refused", "invalid", "not JSON"}, []string{malformed.GetStatus(), malformed.GetRefusalClass(), malformed.GetArgumentsJson()})
	require.Equal(t, []string{"refused", "not_found", ""}, []string{unknown.GetStatus(), unknown.GetRefusalClass(), unknown.GetSource()})

	subscription, err := w.bus.Subscribe("bullpen.toolregistry.call.v1", "test")
	require.NoError(t, err)
	defer subscription.Close()
	told := map[string]*toolregistryv1.CallRecord{}
	var last int64
	for len(told) < 3 {
		messages, err := subscription.Fetch(t.Context(), 10)
		require.NoError(t, err)
		for _, m := range messages {
			var event toolregistryv1.CallEvent
			require.NoError(t, proto.Unmarshal(m.Value, &event))
			require.Equal(t, "ada", m.Key)
			require.Greater(t, event.GetSequence(), last, "order is kept")
			last = event.GetSequence()
			told[event.GetCallCompleted().GetCall().GetCallId()] = event.GetCallCompleted().GetCall()
		}
	}
	require.Empty(t, told["call-1"].GetArgumentsJson(), "texts stay in the audit")
	require.Empty(t, told["call-1"].GetResult())
	require.Equal(t, "invalid", told["call-2"].GetRefusalClass())
}

func TestACallWithoutATurnIsAuditedBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.read = func(context.Context) error { return nil }
	_, err := w.console.CallTool(asOperator(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects"})
	require.NoError(t, err)
	all := calls(t, w, &toolregistryv1.ListCallsRequest{}).GetCalls()
	require.Len(t, all, 1)
	require.Equal(t, "operator:token-1", all[0].GetPrincipal())
}

func TestPagesOfTheAuditAreBoundToTheirFilter(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.read = func(context.Context) error { return nil }
	for range 5 {
		_, err := w.console.CallTool(asOperator(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects"})
		require.NoError(t, err)
	}
	seen := map[string]bool{}
	req := &toolregistryv1.ListCallsRequest{Tool: "list_projects", Limit: 2}
	for {
		page := calls(t, w, req)
		for _, c := range page.GetCalls() {
			require.False(t, seen[c.GetAuditId()])
			seen[c.GetAuditId()] = true
		}
		if req.Cursor = page.GetNextCursor(); req.GetCursor() == "" {
			break
		}
		_, err := w.console.ListCalls(asOperator(t.Context()), &toolregistryv1.ListCallsRequest{Cursor: req.GetCursor()})
		require.Equal(t, "cursor", refusal(t, err).Field, "another filter")
	}
	require.Len(t, seen, 5)
	_, err := w.turn.ListCalls(asSeat(t.Context()), &toolregistryv1.ListCallsRequest{})
	require.Equal(t, fault.Forbidden, refusal(t, err).Class, "a seat reads no audit")
}

func TestTheAuditIsSearchedAndOneCallIsShownWhole(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.create = func(context.Context, *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		return &trackerv1.CreateWorkItemResponse{Outcome: "applied", Position: "tracker@1:1", Key: "OPS-1"}, nil
	}
	for _, title := range []string{"Renew the certificate", "Feed the cat", "renew the lease"} {
		_, err := w.console.CallTool(asOperator(t.Context()), &toolregistryv1.CallToolRequest{Tool: "create_work_item", ArgumentsJson: `{"title":"` + title + `"}`})
		require.NoError(t, err)
	}
	found := calls(t, w, &toolregistryv1.ListCallsRequest{Text: "RENEW", Source: "builtin", Status: "ok", Limit: 1})
	require.Contains(t, found.GetCalls()[0].GetArgumentsJson(), "lease")
	older := calls(t, w, &toolregistryv1.ListCallsRequest{Text: "RENEW", Source: "builtin", Status: "ok", Limit: 1, Cursor: found.GetNextCursor()})
	require.Contains(t, older.GetCalls()[0].GetArgumentsJson(), "certificate")
	_, err := w.console.ListCalls(asOperator(t.Context()), &toolregistryv1.ListCallsRequest{Text: "other", Cursor: found.GetNextCursor()})
	require.Equal(t, "CURSOR_MISMATCH", refusal(t, err).Reason)
	require.Empty(t, calls(t, w, &toolregistryv1.ListCallsRequest{Since: timestamppb.New(time.Now().Add(time.Hour))}).GetCalls())
	require.Len(t, calls(t, w, &toolregistryv1.ListCallsRequest{Until: timestamppb.New(time.Now().Add(time.Hour))}).GetCalls(), 3)

	one, err := w.console.GetCall(asOperator(t.Context()), &toolregistryv1.GetCallRequest{AuditId: found.GetCalls()[0].GetAuditId()})
	require.NoError(t, err)
	require.True(t, proto.Equal(found.GetCalls()[0], one.GetCall()))
	_, err = w.turn.GetCall(asSeat(t.Context()), &toolregistryv1.GetCallRequest{AuditId: one.GetCall().GetAuditId()})
	require.Equal(t, fault.Forbidden, refusal(t, err).Class)
}

func TestRowsThatAKillLostAreRestoredFromTheJournal(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.read = func(context.Context) error { return nil }
	var journal []*toolregistryv1.CallRecord
	for i := range 3 {
		id := fmt.Sprintf("call-%d", i)
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects", CallId: id})
		require.NoError(t, err)
		journal = append(journal, &toolregistryv1.CallRecord{
			CallId: id, Principal: "seat:ada", Seat: "ada", TurnId: "t1", Tool: "list_projects", Source: "builtin",
			ArgumentsJson: "{}", Result: `{"a":"` + fakeToken + `"}`, Status: "ok", StartTime: timestamppb.Now(), DurationMicros: 12,
		})
	}
	require.Empty(t, calls(t, w, &toolregistryv1.ListCallsRequest{}).GetCalls(), "nobody wrote them: the process was killed")
	restored, err := w.turn.RestoreCalls(t.Context(), &toolregistryv1.RestoreCallsRequest{Calls: journal})
	require.NoError(t, err)
	require.Equal(t, int32(3), restored.GetRestored())
	restored, err = w.turn.RestoreCalls(t.Context(), &toolregistryv1.RestoreCallsRequest{Calls: journal})
	require.NoError(t, err)
	require.Zero(t, restored.GetRestored())
	all := calls(t, w, &toolregistryv1.ListCallsRequest{TurnId: "t1"}).GetCalls()
	require.Len(t, all, 3)
	require.JSONEq(t, `{"a":"[REDACTED:github_token]"}`, all[0].GetResult(), "a journal is not clean")

	for name, ctx := range map[string]context.Context{"an operator": asOperator(t.Context()), "a seat": asSeat(t.Context())} {
		_, err = w.turn.RestoreCalls(ctx, &toolregistryv1.RestoreCallsRequest{Calls: journal})
		require.Equal(t, fault.Forbidden, refusal(t, err).Class, name)
	}
	_, err = w.console.RestoreCalls(rpc.As(t.Context(), nil), &toolregistryv1.RestoreCallsRequest{Calls: journal})
	require.Equal(t, fault.Forbidden, refusal(t, err).Class, "another service")
	journal[1].TurnId = ""
	_, err = w.turn.RestoreCalls(t.Context(), &toolregistryv1.RestoreCallsRequest{Calls: journal})
	require.Equal(t, "calls[1].turn_id", refusal(t, err).Field)
}

func TestCallsAreKeptAsLongAsTheCompanySays(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, bus: true})
	w.neighbours.company.ToolResults = &companyv1.ToolResults{AuditDays: 40}
	var journal []*toolregistryv1.CallRecord
	for _, days := range []int{50, 35, 1} {
		journal = append(journal, &toolregistryv1.CallRecord{
			CallId: fmt.Sprint(days), TurnId: "t1", Tool: "reply", Status: "ok", StartTime: timestamppb.New(time.Now().AddDate(0, 0, -days)),
		})
	}
	_, err := w.turn.RestoreCalls(t.Context(), &toolregistryv1.RestoreCallsRequest{Calls: journal})
	require.NoError(t, err)
	w.run(t)
	require.Eventually(t, func() bool { return len(calls(t, w, &toolregistryv1.ListCallsRequest{}).GetCalls()) == 2 }, 20*time.Second, 10*time.Millisecond)
}

func TestTheEndWritesTheCallsThatWereMade(t *testing.T) {
	t.Parallel()
	w := build(t, options{bus: true})
	w.neighbours.read = func(context.Context) error { return nil }
	for range 50 {
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects", CallId: "c"})
		require.NoError(t, err)
	}
	w.stop()
	_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects", CallId: "last"})
	require.NoError(t, err, "requests are served until all have ended")
	require.Len(t, calls(t, w, &toolregistryv1.ListCallsRequest{Limit: 200}).GetCalls(), 51)
}
