package toolregistry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// asking is the company where everything that writes waits for a person.
func asking() *companyv1.Company {
	return ruled("allow", &companyv1.ToolRule{
		Name: "writes", Effect: "ask", When: "tool.read_only != true", Reason: "Writes need a person.", ExpireSeconds: 3600,
	})
}

// landing keeps what reached the owners of tools.
type landing struct {
	mu    sync.Mutex
	items []string // operation and caller of each item
	calls []string
}

func (l *landing) made() (items, calls []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.items...), append([]string(nil), l.calls...)
}

func (w *world) landing() *landing {
	w.obliging()
	l := &landing{}
	w.neighbours.create = func(ctx context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		from, _ := rpc.PrincipalFrom(ctx)
		l.items = append(l.items, fmt.Sprintf("%s %s %s %s", rpc.OperationID(ctx), from.GetSeat(), from.GetTurn().GetConversationKey(), req.GetTitle()))
		if req.GetTitle() == "refused" {
			return nil, fault.New(fault.Invalid, "No such project.")
		}
		return &trackerv1.CreateWorkItemResponse{Outcome: "applied", Position: "tracker@1:1", Key: "OPS-1"}, nil
	}
	w.neighbours.call = func(_ context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls = append(l.calls, req.GetTool()+" "+req.GetSeat()+" "+req.GetArgumentsJson())
		return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[{"type":"text","text":"done"}]}`}, nil
	}
	return l
}

// park makes a call that waits, and answers its approval.
func (w *world) park(t *testing.T, tool, arguments, operation string) string {
	t.Helper()
	answer, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{
		Tool: tool, ArgumentsJson: arguments, OperationId: operation, CallId: "call-" + operation,
	})
	require.NoError(t, err)
	require.NotEmpty(t, answer.GetApprovalId())
	require.False(t, answer.GetFailed())
	require.Empty(t, answer.GetDelivered())
	return answer.GetApprovalId()
}

func (w *world) decide(t *testing.T, id, decision string) (*toolregistryv1.Approval, error) {
	t.Helper()
	answer, err := w.console.DecideApproval(asOperator(t.Context()), &toolregistryv1.DecideApprovalRequest{
		ApprovalId: id, Decision: decision, Note: "because",
	})
	return answer.GetApproval(), err
}

func (w *world) approval(t *testing.T, id string) *toolregistryv1.Approval {
	t.Helper()
	answer, err := w.console.ListApprovals(asOperator(t.Context()), &toolregistryv1.ListApprovalsRequest{})
	require.NoError(t, err)
	for _, a := range answer.GetApprovals() {
		if a.GetApprovalId() == id {
			return a
		}
	}
	require.Fail(t, "no such approval", id)
	return nil
}

// told answers the facts about an approval that leave the service.
func (w *world) told(t *testing.T, id string) (facts []string) {
	t.Helper()
	rows, err := w.pool.Query(t.Context(), `select payload from outbox where topic = 'bullpen.toolregistry.approval.v1' order by id`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var payload []byte
		require.NoError(t, rows.Scan(&payload))
		var event toolregistryv1.ApprovalEvent
		require.NoError(t, proto.Unmarshal(payload, &event))
		if event.GetApprovalRequested().GetApproval().GetApprovalId() == id {
			facts = append(facts, "requested")
		}
		if a := event.GetApprovalSettled().GetApproval(); a.GetApprovalId() == id {
			facts = append(facts, strings.TrimSpace(a.GetState()+" "+a.GetCallStatus()))
		}
	}
	return facts
}

func TestACallThatWaitsIsMadeOnceItIsApproved(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true, company: asking()}, func(t *testing.T, w *world) {
		l := w.landing()
		arguments := `{"title":"Renew", "body":"` + fakeToken + `"}`
		request := &toolregistryv1.CallToolRequest{Tool: "create_work_item", ArgumentsJson: arguments, OperationId: "op-1", CallId: "c1"}
		answer, err := w.turn.CallTool(asSeat(t.Context()), request)
		require.NoError(t, err)
		id := answer.GetApprovalId()
		require.Contains(t, answer.GetText(), "was not made: it waits for a person, as approval "+id)
		require.Contains(t, answer.GetText(), "Writes need a person.")
		again, err := w.turn.CallTool(asSeat(t.Context()), request)
		require.NoError(t, err)
		require.Equal(t, id, again.GetApprovalId(), "the same call never asks twice")
		items, _ := l.made()
		require.Empty(t, items)

		waiting := w.approval(t, id)
		require.Equal(t, "waiting", waiting.GetState())
		require.JSONEq(t, `{"title":"Renew","body":"[REDACTED:github_token]"}`, waiting.GetArgumentsJson())
		require.Equal(t, []string{"ada", "t1", "c1", "writes", "Writes need a person."},
			[]string{waiting.GetSeat(), waiting.GetTurnId(), waiting.GetConversationKey(), waiting.GetRule(), waiting.GetReason()})
		require.Equal(t, time.Hour, waiting.GetExpireTime().AsTime().Sub(waiting.GetCreateTime().AsTime()))

		approved, err := w.decide(t, id, "approve")
		require.NoError(t, err)
		require.Equal(t, []string{"approved", "operator:token-1", "because", "ok"},
			[]string{approved.GetState(), approved.GetDecidedBy(), approved.GetNote(), approved.GetCallStatus()})
		require.Contains(t, approved.GetResult(), `"key":"OPS-1"`)
		require.Equal(t, []string{"work"}, approved.GetReached())
		items, _ = l.made()
		require.Equal(t, []string{"op-1 ada c1 Renew"}, items, "once, as the seat, in its conversation, under its operation")
		require.Equal(t, []string{"requested", "approved ok"}, w.told(t, id))

		_, err = w.decide(t, id, "deny")
		f := refusal(t, err)
		require.Equal(t, fault.AlreadyAnswered, f.Class)
		require.Contains(t, f.Message, "approved already, by operator:token-1 at ")
		again, err = w.turn.CallTool(asSeat(t.Context()), request)
		require.NoError(t, err)
		require.Empty(t, again.GetApprovalId())
		require.Equal(t, approved.GetResult(), again.GetText(), "the same call again answers what became of it")
		items, _ = l.made()
		require.Len(t, items, 1)

		kept := calls(t, w, &toolregistryv1.ListCallsRequest{TurnId: "t1"}).GetCalls()
		require.Len(t, kept, 1, "an approved call is in no journal: it is audited at once")
		require.Equal(t, []string{approved.GetAuditId(), id, "ask", "writes", "ok", "op-1"}, []string{
			kept[0].GetAuditId(), kept[0].GetApprovalId(), kept[0].GetDecision(), kept[0].GetRule(), kept[0].GetStatus(), kept[0].GetOperationId(),
		})
	})
}

func TestASecretInAnApprovedCallGoesOnAsItIs(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: asking()})
	w.landing()
	var sent string
	w.neighbours.call = func(_ context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		sent = req.GetArgumentsJson()
		return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[],"isError":true}`, Failed: true}, nil
	}
	exact := `{ "id": 9007199254740993 }`
	a, err := w.decide(t, w.park(t, "gh_comment", exact, "op-1"), "approve")
	require.NoError(t, err)
	require.Equal(t, exact, sent, "to the letter")
	require.Equal(t, "failed", a.GetCallStatus())
	require.Empty(t, a.GetReached())
}

func TestACallThatIsNotApprovedIsNeverMade(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: asking()})
	l := w.landing()
	repeat := func(operation string) *fault.Error {
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{
			Tool: "create_work_item", ArgumentsJson: `{"title":"x"}`, OperationId: operation, CallId: "call-" + operation,
		})
		return refusal(t, err)
	}

	denied := w.park(t, "create_work_item", `{"title":"x"}`, "denied")
	a, err := w.decide(t, denied, "deny")
	require.NoError(t, err)
	require.Equal(t, "denied", a.GetState())
	require.Equal(t, fault.Forbidden, repeat("denied").Class)
	require.Contains(t, repeat("denied").Message, "was denied by operator:token-1")

	cancelled := w.park(t, "create_work_item", `{"title":"x"}`, "cancelled")
	other := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindSeat, Id: "bo", Seat: "bo", Turn: turnClaims()})
	_, err = w.turn.CancelApproval(other, &toolregistryv1.CancelApprovalRequest{ApprovalId: cancelled})
	require.Equal(t, fault.Forbidden, refusal(t, err).Class)
	own, err := w.turn.CancelApproval(asSeat(t.Context()), &toolregistryv1.CancelApprovalRequest{ApprovalId: cancelled})
	require.NoError(t, err)
	require.Equal(t, []string{"cancelled", "seat:ada"}, []string{own.GetApproval().GetState(), own.GetApproval().GetDecidedBy()})
	_, err = w.decide(t, cancelled, "approve")
	require.Equal(t, []string{"conflict", "CANCELLED"}, []string{string(refusal(t, err).Class), refusal(t, err).Reason})
	require.Equal(t, fault.Conflict, repeat("cancelled").Class)

	expired := w.park(t, "create_work_item", `{"title":"x"}`, "expired")
	w.forward(time.Hour)
	_, err = w.decide(t, expired, "approve")
	require.Equal(t, []string{"conflict", "EXPIRED"}, []string{string(refusal(t, err).Class), refusal(t, err).Reason})
	require.Equal(t, []string{"requested", "expired"}, w.told(t, expired), "who looks ends it")
	require.Equal(t, fault.Conflict, repeat("expired").Class)

	items, _ := l.made()
	require.Empty(t, items)
	_, err = w.decide(t, uuid.NewString(), "approve")
	require.Equal(t, fault.NotFound, refusal(t, err).Class)
	for _, ctx := range []context.Context{asSeat(t.Context()), t.Context()} {
		_, err = w.turn.DecideApproval(ctx, &toolregistryv1.DecideApprovalRequest{ApprovalId: denied, Decision: "approve"})
		require.Equal(t, fault.Forbidden, refusal(t, err).Class, "a person decides")
	}
}

func TestWhatChangedSinceACallWasAskedForStopsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		company func(*companyv1.Company)
		servers func(*world)
		want    string
	}{
		"the seat is gone":  {func(c *companyv1.Company) { c.Seats = c.GetSeats()[1:] }, nil, "The company has no seat `ada` now."},
		"the policy denies": {func(c *companyv1.Company) { c.ToolPolicy.Rules[0].Effect = "deny" }, nil, "policy does not let you"},
		"the tool is gone":  {nil, func(w *world) { w.neighbours.bring("ada", &mcphostv1.ListServerToolsResponse{Digest: "d2"}) }, "There is no tool `gh_comment`"},
		"the tool is another": {nil, func(w *world) {
			b := brought()
			b.Digest = "d2"
			b.Servers[1].ToolsJson[1] = `{"name":"comment","description":"Posts anywhere.",` + object + `}`
			w.neighbours.bring("ada", b)
		}, "is not defined any more as it was"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := build(t, options{still: true, company: asking()})
			l := w.landing()
			id := w.park(t, "gh_comment", `{"id":1}`, "op-1")
			next := asking()
			next.RevisionId = "r2"
			if c.company != nil {
				c.company(next)
			}
			w.neighbours.put(next)
			if c.servers != nil {
				c.servers(w)
			}
			w.forward(time.Minute) // what is known of servers is looked at again; a decision asks for the company itself
			_, err := w.decide(t, id, "approve")
			f := refusal(t, err)
			require.Equal(t, fault.Conflict, f.Class)
			require.Contains(t, f.Message, c.want)
			require.Equal(t, "waiting", w.approval(t, id).GetState())
			_, made := l.made()
			require.Empty(t, made)
			_, err = w.decide(t, id, "deny")
			require.NoError(t, err)
		})
	}
}

func TestNothingIsApprovedUnderAPolicyThatCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: asking()})
	l := w.landing()
	id := w.park(t, "create_work_item", `{"title":"x"}`, "op-1")
	w.neighbours.silence(true)
	_, err := w.decide(t, id, "approve")
	require.Equal(t, fault.Unavailable, refusal(t, err).Class)
	require.Equal(t, "waiting", w.approval(t, id).GetState())
	w.neighbours.silence(false)
	_, err = w.decide(t, id, "approve")
	require.NoError(t, err)
	items, _ := l.made()
	require.Len(t, items, 1)
}

func TestOfManyAnswersAtOnceOneCounts(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: asking(), http: true})
	l := w.landing()
	id := w.park(t, "create_work_item", `{"title":"x"}`, "op-1")
	var answers sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		answers.Go(func() {
			_, errs[i] = w.console.DecideApproval(asOperator(t.Context()), &toolregistryv1.DecideApprovalRequest{ApprovalId: id, Decision: "approve"})
		})
	}
	answers.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.Equal(t, fault.AlreadyAnswered, rpc.FromError(err).Class)
	}
	require.Equal(t, 1, won)
	items, _ := l.made()
	require.Len(t, items, 1)
	require.Equal(t, []string{"requested", "approved ok"}, w.told(t, id))
}

// A process that is killed in each state leaves what the next one finishes.
func TestAKilledRegistryLeavesNoQuestionBehind(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: asking(), bus: true})
	l := w.landing()
	w.neighbours.bring("ada", &mcphostv1.ListServerToolsResponse{Digest: "d1", Servers: []*mcphostv1.ServerTools{
		{Server: "gh", Own: true, State: "ready", ToolPrefix: "gh_", ToolsJson: []string{
			`{"name":"comment",` + object + `}`, `{"name":"label",` + object + `,"annotations":{"idempotentHint":true}}`,
		}},
	}})
	waiting := w.park(t, "create_work_item", `{"title":"waiting"}`, "waiting")
	own := w.park(t, "create_work_item", `{"title":"own"}`, "own")
	refused := w.park(t, "create_work_item", `{"title":"refused"}`, "refused")
	doubtful := w.park(t, "gh_comment", `{"id":1}`, "doubtful")
	safe := w.park(t, "gh_label", `{"id":2}`, "safe")
	lost := []string{own, refused, doubtful, safe}
	_, err := w.pool.Exec(t.Context(), `
update approvals set state = 'approved', call_status = 'running', decided_by = 'operator:token-1', decided_at = now(),
    audit_id = gen_random_uuid()::text, runner = 'killed', run_until = now() where approval_id = any($1)`, lost)
	require.NoError(t, err)

	w.run(t)
	require.Eventually(t, func() bool {
		for _, id := range lost {
			if w.approval(t, id).GetCallStatus() == "running" {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, "ok", w.approval(t, own).GetCallStatus())
	require.Equal(t, "refused", w.approval(t, refused).GetCallStatus())
	require.Equal(t, "No such project.", w.approval(t, refused).GetResult())
	require.Equal(t, "unknown", w.approval(t, doubtful).GetCallStatus())
	require.Equal(t, "ok", w.approval(t, safe).GetCallStatus())
	items, made := l.made()
	require.ElementsMatch(t, []string{"own ada c1 own", "refused ada c1 refused"}, items, "under the operation that lands once")
	require.Equal(t, []string{`label ada {"id":2}`}, made, "what may have happened is not repeated unless its tool says that it may be")
	require.Equal(t, []string{"requested", "approved unknown"}, w.told(t, doubtful))
	require.Equal(t, []string{"requested"}, w.told(t, waiting))
	for _, id := range lost {
		kept := calls(t, w, &toolregistryv1.ListCallsRequest{}).GetCalls()
		n := 0
		for _, c := range kept {
			if c.GetAuditId() == w.approval(t, id).GetAuditId() {
				n++
			}
		}
		require.Equal(t, 1, n, "audited once")
	}

	require.Eventually(t, func() bool {
		return len(calls(t, w, &toolregistryv1.ListCallsRequest{Status: "parked"}).GetCalls()) == 5
	}, time.Minute, 20*time.Millisecond, "the calls that waited are in the audit, too")

	w.forward(time.Hour)
	require.Eventually(t, func() bool { return w.approval(t, waiting).GetState() == "expired" }, time.Minute, 20*time.Millisecond)
	require.Equal(t, []string{"requested", "expired"}, w.told(t, waiting))
}

func TestARunnerThatLivesKeepsItsCall(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: asking()})
	l := w.landing()
	reached, released := make(chan struct{}), make(chan struct{})
	landed := w.neighbours.create
	w.neighbours.create = func(ctx context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		close(reached)
		<-released
		return landed(ctx, req)
	}
	id := w.park(t, "create_work_item", `{"title":"slow"}`, "op-1")
	impatient, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := w.console.DecideApproval(asOperator(impatient), &toolregistryv1.DecideApprovalRequest{ApprovalId: id, Decision: "approve"})
		gone <- err
	}()
	<-reached
	leave()
	require.Error(t, <-gone)
	until := func() (at time.Time) {
		require.NoError(t, w.pool.QueryRow(t.Context(), `select run_until from approvals where approval_id = $1`, id).Scan(&at))
		return at
	}
	first := until()
	require.Equal(t, "running", w.approval(t, id).GetCallStatus())
	require.Eventually(t, func() bool { return until().After(first) }, time.Minute, 50*time.Millisecond, "it says that it is alive")
	again, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{
		Tool: "create_work_item", ArgumentsJson: `{"title":"slow"}`, OperationId: "op-1", CallId: "again",
	})
	require.NoError(t, err)
	require.Equal(t, id, again.GetApprovalId())
	require.Contains(t, again.GetText(), "is being made")
	close(released)
	require.Eventually(t, func() bool { return w.approval(t, id).GetCallStatus() == "ok" }, time.Minute, 20*time.Millisecond, "whoever asked for it has left")
	items, _ := l.made()
	require.Len(t, items, 1)
}

func TestApprovalsOverPlainHTTP(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: asking(), http: true})
	w.landing()
	id := w.park(t, "create_work_item", `{"title":"x"}`, "op-1")
	do := func(method, path, token, kind, body string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if kind != "" {
			req.Header.Set("Content-Type", kind)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(text, &answer), string(text))
		return res.StatusCode, answer
	}
	const asJSON = "application/json; charset=utf-8"
	path := "/approvals/" + id
	for _, c := range []struct {
		method, path, token, kind, body string
		status                          int
	}{
		{"GET", "/approvals", "", "", "", http.StatusUnauthorized},
		{"GET", "/approvals?state=odd", "good", "", "", http.StatusBadRequest},
		{"GET", "/approvals?limit=x", "good", "", "", http.StatusBadRequest},
		{"POST", path + "/approve", "", asJSON, `{}`, http.StatusUnauthorized},
		{"POST", path + "/approve", "good", "", `{}`, http.StatusUnsupportedMediaType},
		{"POST", path + "/approve", "good", "text/plain", `{}`, http.StatusUnsupportedMediaType},
		{"POST", path + "/approve", "good", asJSON, `{"nope":1}`, http.StatusBadRequest},
		{"POST", path + "/approve", "good", asJSON, `{"note":1}`, http.StatusBadRequest},
		{"POST", path + "/approve", "good", asJSON, `null`, http.StatusBadRequest},
		{"POST", path + "/approve", "good", asJSON, `{"note":"a"} {"note":"b"}`, http.StatusBadRequest},
		{"POST", path + "/approve", "good", asJSON, `{"note":"a","note":"b"}`, http.StatusBadRequest},
		{"POST", path + "/approve", "good", asJSON, `{"Note":"a"}`, http.StatusBadRequest},
		{"POST", path + "/approve", "good", asJSON, `{"note":"` + strings.Repeat("a", 70_000) + `"}`, http.StatusRequestEntityTooLarge},
		{"POST", path + "/approve", "good", asJSON, `{"note":"` + strings.Repeat("a", 3_000) + `"}`, http.StatusBadRequest},
		{"POST", "/approvals/nothing/deny", "good", asJSON, `{}`, http.StatusBadRequest},
		{"POST", "/approvals/" + uuid.NewString() + "/deny", "good", asJSON, ``, http.StatusNotFound},
	} {
		status, answer := do(c.method, c.path, c.token, c.kind, c.body)
		require.Equal(t, c.status, status, "%s %s %v", c.method, c.path, answer)
	}
	status, answer := do("GET", "/approvals?state=waiting&seat=ada", "good", "", "")
	require.Equal(t, http.StatusOK, status)
	first := answer["approvals"].([]any)[0].(map[string]any)
	require.Equal(t, []any{id, "waiting", `{"title":"x"}`}, []any{first["approval_id"], first["state"], first["arguments_json"]})
	status, answer = do("POST", path+"/approve", "good", asJSON, `{"note":"fine"}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []any{"approved", "fine", "ok", "operator:token-1"}, []any{answer["state"], answer["note"], answer["call_status"], answer["decided_by"]})
	status, answer = do("POST", path+"/deny", "good", asJSON, `{}`)
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "already_answered", answer["class"])
	taken := w.park(t, "create_work_item", `{"title":"y"}`, "op-2")
	status, answer = do("POST", "/approvals/"+taken+"/cancel", "good", asJSON, ``)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "cancelled", answer["state"])
}
