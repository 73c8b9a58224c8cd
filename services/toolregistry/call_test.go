package toolregistry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// fakeToken has the shape of a secret; it is put together so that no scanner takes this file for a leak.
var fakeToken = "ghp_" + strings.Repeat("a1B2c3D4", 5)

func TestASeatsWriteReachesTheOwnerAsThatSeatUnderItsOperation(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true}, func(t *testing.T, w *world) {
		var principal *rpc.Principal
		var operation string
		w.neighbours.create = func(ctx context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
			principal, _ = rpc.PrincipalFrom(ctx)
			operation = rpc.OperationID(ctx)
			return &trackerv1.CreateWorkItemResponse{
				Outcome: "applied", Position: "tracker@1:7", Version: 1, Key: "OPS-1", Warnings: []string{req.GetTitle() + " " + fakeToken + "\x1b[0m"},
			}, nil
		}
		answer, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{
			Tool: "create_work_item", ArgumentsJson: `{"title":"Renew <it>"}`, OperationId: "op-1", CallId: "call-1",
		})
		require.NoError(t, err)
		require.Equal(t, "ada", principal.GetSeat())
		require.Equal(t, "toolregistry", principal.GetIssuer())
		require.Equal(t, "w1", principal.GetTurn().GetWorkKey())
		require.Equal(t, "op-1", operation)
		require.Equal(t, "applied", answer.GetReceipt().GetOutcome())
		require.Equal(t, "tracker@1:7", answer.GetReceipt().GetPosition())
		require.Equal(t, int32(1), answer.GetReceipt().GetVersion())
		require.Equal(t, "work", answer.GetDelivered())
		require.Equal(t, "builtin", answer.GetSource())
		require.Contains(t, answer.GetResultJson(), `"key":"OPS-1"`)
		require.Contains(t, answer.GetResultJson(), `Renew <it> [REDACTED:github_token][0m`)
		require.Equal(t, answer.GetResultJson(), answer.GetText())
		require.NotEmpty(t, answer.GetAuditId())
	})
}

func TestAWriteWithoutAnOperationGetsOne(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	var operation string
	w.neighbours.create = func(ctx context.Context, _ *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		operation = rpc.OperationID(ctx)
		return &trackerv1.CreateWorkItemResponse{Outcome: "applied"}, nil
	}
	_, err := w.console.CallTool(asOperator(t.Context()), &toolregistryv1.CallToolRequest{Tool: "create_work_item", ArgumentsJson: `{"title":"x"}`})
	require.NoError(t, err)
	require.NotEmpty(t, operation)
}

func TestWhoMayCallWhat(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.read = func(context.Context) error { return nil }
	claims := func(change func(*rpc.Principal)) func(context.Context) context.Context {
		p := &rpc.Principal{Kind: rpc.KindSeat, Id: "ada", Seat: "ada", Turn: &toolv1.TurnClaims{TurnId: "t1", RevisionId: "r1"}}
		change(p)
		return func(ctx context.Context) context.Context { return rpc.As(ctx, p) }
	}
	service := func(id string) func(context.Context) context.Context {
		return claims(func(p *rpc.Principal) { p.Kind, p.Id, p.Seat = rpc.KindService, id, "" })
	}
	for name, c := range map[string]struct {
		as         func(context.Context) context.Context
		by         string
		seat, tool string
		class      fault.Class
		says       string
	}{
		"a seat in a turn may":                            {claims(func(*rpc.Principal) {}), "turn", "", "list_projects", "", ""},
		"the turn service may, for a seat":                {service("turn"), "turn", "ada", "list_projects", "", ""},
		"an operator may":                                 {asOperator, "console", "", "list_projects", "", ""},
		"a seat that another service signs may not":       {claims(func(*rpc.Principal) {}), "console", "", "list_projects", fault.Forbidden, "signed by the turn service"},
		"a seat outside a turn may not":                   {claims(func(p *rpc.Principal) { p.Turn = nil }), "turn", "", "list_projects", fault.Forbidden, "inside a turn only"},
		"a seat may not call as another":                  {claims(func(*rpc.Principal) {}), "turn", "bo", "list_projects", fault.Forbidden, "as itself"},
		"a seat that the company lost may not":            {claims(func(p *rpc.Principal) { p.Seat = "gone" }), "turn", "", "list_projects", fault.Forbidden, "no seat `gone`"},
		"a person's seat has no turns":                    {claims(func(p *rpc.Principal) { p.Seat = "ines" }), "turn", "", "list_projects", fault.Forbidden, "held by a person"},
		"another service may not call for a seat":         {service("console"), "console", "ada", "list_projects", fault.Forbidden, "not as itself"},
		"the turn service names the seat":                 {service("turn"), "turn", "", "list_projects", fault.Forbidden, "name it in `seat`"},
		"an operator names no seat":                       {asOperator, "console", "ada", "list_projects", fault.Forbidden, "leave `seat` out"},
		"an operator has no seat's tools":                 {asOperator, "console", "", "reply", fault.Forbidden, "a seat's tool"},
		"the engine's own tools do not pass":              {claims(func(*rpc.Principal) {}), "turn", "", "submit_work", fault.Forbidden, "run by the turn engine itself"},
		"a backend that the company lacks is unavailable": {claims(func(*rpc.Principal) {}), "turn", "", "get_page", fault.Unavailable, "needs `knowledge:native`"},
		"a name that nothing has is not found":            {claims(func(*rpc.Principal) {}), "turn", "", "list_project", fault.NotFound, "Did you mean `list_projects`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := w.turn
			if c.by == "console" {
				client = w.console
			}
			_, err := client.CallTool(c.as(t.Context()), &toolregistryv1.CallToolRequest{Tool: c.tool, Seat: c.seat, CallId: "c"})
			if c.class == "" {
				require.NoError(t, err)
				return
			}
			f := refusal(t, err)
			require.Equal(t, c.class, f.Class)
			require.Contains(t, f.Message, c.says)
			require.NotEmpty(t, f.Facts["audit_id"])
			require.Empty(t, f.Outcome, "nothing was done")
		})
	}
}

func TestArgumentsAreRefusedByName(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true}, func(t *testing.T, w *world) {
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "create_work_item", ArgumentsJson: `{"title":"x","asignee":"bo"}`})
		f := refusal(t, err)
		require.Equal(t, fault.Invalid, f.Class)
		require.Equal(t, "asignee", f.Field)
		require.Equal(t, "unknown argument `asignee`; did you mean `assignee`?", f.Message)
		_, err = w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects", OperationId: "two words"})
		require.Equal(t, "operation_id", refusal(t, err).Field)
	})
}

func TestAnOwnersRefusalKeepsItsClass(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true}, func(t *testing.T, w *world) {
		w.neighbours.create = func(context.Context, *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
			return nil, fault.New(fault.Exists, "There is OPS-1 already, token %s.", fakeToken).WithField("title").WithReason("TWIN").WithFact("key", "OPS-1")
		}
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "create_work_item", ArgumentsJson: `{"title":"x"}`})
		f := refusal(t, err)
		require.Equal(t, fault.Exists, f.Class)
		require.Equal(t, "There is OPS-1 already, token [REDACTED:github_token].", f.Message)
		require.Equal(t, "title", f.Field)
		require.Equal(t, "TWIN", f.Reason)
		require.Equal(t, "OPS-1", f.Facts["key"])
		require.Empty(t, f.Outcome)
	})
}

func TestAFailureThatNobodyClaimedIsUnavailable(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true}, func(t *testing.T, w *world) {
		w.neighbours.read = func(context.Context) error { return errors.New("disk on fire") }
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects"})
		f := refusal(t, err)
		require.Equal(t, fault.Unavailable, f.Class)
		require.NotContains(t, f.Message, "fire")
		require.Empty(t, f.Outcome, "a read has changed nothing")
	})
}

func TestAWriteThatNobodyAnsweredIsUnknownAndItsCancelArrives(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true}, func(t *testing.T, w *world) {
		cancelled := make(chan struct{})
		w.neighbours.create = func(ctx context.Context, _ *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
			<-ctx.Done()
			close(cancelled)
			return nil, ctx.Err()
		}
		w.neighbours.read = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{
			Tool: "create_work_item", ArgumentsJson: `{"title":"x"}`, OperationId: "op-9", Timeout: durationpb.New(50 * time.Millisecond),
		})
		<-cancelled
		f := refusal(t, err)
		require.Equal(t, fault.Unavailable, f.Class)
		require.Equal(t, fault.OutcomeUnknown, f.Outcome)
		require.Equal(t, "op-9", f.Operation)
		_, err = w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects", Timeout: durationpb.New(50 * time.Millisecond)})
		require.Empty(t, refusal(t, err).Outcome, "a read cannot have landed")
	})
}

func TestWithoutACompanyThereAreNoTools(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.put(nil)
	_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "list_projects"})
	require.Equal(t, "NO_ACTIVE_REVISION", refusal(t, err).Reason)
}
