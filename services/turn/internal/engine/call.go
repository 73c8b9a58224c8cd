package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/turn/internal/delivery"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// dispatch deals with the current call, which is planned: it is refused here, it ends the turn, or it is committed as
// dispatched, to be made next.
func (t *turn) dispatch(ctx context.Context, step journal.Step) (ended bool, err error) {
	call, ordinal, _ := t.journal.Current()
	if step.Looped > 0 {
		t.engine.metrics.loops.Inc()
		return false, t.settle(ctx, journal.Failed, refused(fault.New(fault.LoopDetected, "`%s` was called %d times in a row with "+
			"the same arguments, so this call was not made. Do something else, or submit what you have; the same call again ends "+
			"the turn.", call.Tool, step.Looped)))
	}
	tool, err := t.check(call)
	switch f, _ := fault.As(err); {
	case f != nil && f.Reason == reasonSkill:
		t.engine.metrics.guards.Inc()
	case f != nil && f.Reason == reasonUnoffered:
		err = t.unoffered(ctx, call, err)
	}
	if err != nil {
		return false, t.settle(ctx, journal.Failed, refused(err))
	}
	if tool.EngineLocal {
		return t.local(ctx, call)
	}
	now := t.engine.Now()
	if err := t.engine.Store.Sent(ctx, t.fence, t.info.ID, len(t.journal.Rounds), ordinal, now); err != nil {
		return false, err
	}
	return false, t.sent(true, now)
}

// sent notes that the current call has been committed as dispatched.
func (t *turn) sent(send bool, at time.Time) error {
	if !send {
		return nil
	}
	t.fresh = true
	return t.journal.Apply(journal.Sent{At: at})
}

// check refuses a call that no tool of the turn can take.
func (t *turn) check(call journal.Call) (frozenTool, error) {
	tool, offered := t.frozen.tool(call.Tool)
	if !offered {
		return tool, fault.New(fault.NotFound, "There is no tool `%s`. Use the tools you were given, by their names.", call.Tool).
			WithReason(reasonUnoffered)
	}
	if err := t.guard(tool); err != nil {
		return tool, err
	}
	var fields map[string]json.RawMessage
	if call.Args != "" {
		if err := json.Unmarshal([]byte(call.Args), &fields); err != nil || fields == nil {
			why := "they must be one JSON object"
			if err != nil {
				why = err.Error()
			}
			return tool, fault.New(fault.Invalid, "The arguments of `%s` cannot be read: %s. Write them anew, whole.", call.Tool, why)
		}
	}
	return tool, nil
}

// reasonUnoffered marks the refusal of a name that the turn was not given.
const reasonUnoffered = "NOT_OFFERED"

// unoffered has the registry say why the turn was not given a tool, and keep that it was asked for: a rule may deny it. Nothing is run
// by that, so a registry that does not answer costs only the reason.
func (t *turn) unoffered(ctx context.Context, call journal.Call, otherwise error) error {
	ctx, cancel := context.WithTimeout(t.as(ctx), patience)
	defer cancel()
	_, err := t.engine.Tools.CallTool(ctx, &toolregistryv1.CallToolRequest{
		Tool: call.Tool, ArgumentsJson: call.Args, CallId: call.ID, NotOffered: true,
	})
	switch f := rpc.FromError(err); {
	case err == nil, f.Class != fault.NotFound && f.Class != fault.Forbidden:
		return otherwise
	default:
		return f
	}
}

// sendable reports whether the journal's next step is to dispatch a call that nothing here refuses, so that its dispatch can
// share a commit with what comes before.
func (t *turn) sendable(j *journal.Journal) bool {
	step := j.Next(t.frozen.limits())
	if step.Act != journal.Dispatch || step.Looped > 0 {
		return false
	}
	call, _, _ := j.Current()
	tool, err := t.check(call)
	return err == nil && !tool.EngineLocal
}

// settle keeps how the current call ended, and dispatches the next one in the same commit where it can.
func (t *turn) settle(ctx context.Context, state journal.State, result journal.Result) error {
	_, ordinal, _ := t.journal.Current()
	now := t.engine.Now()
	result.Text = clean(t.redact.Replace(result.Text))
	if err := t.journal.Apply(journal.Settled{State: state, Result: result, At: now}); err != nil {
		return err
	}
	t.fresh = false
	t.engine.metrics.calls.WithLabelValues(string(state), string(result.Class)).Inc()
	send := t.sendable(&t.journal)
	err := t.engine.Store.Settled(ctx, t.fence, t.info.ID, store.Settle{
		Round: len(t.journal.Rounds), Ordinal: ordinal, State: state, Result: result, At: now,
	}, send)
	if err != nil {
		return err
	}
	return t.sent(send, now)
}

// call makes the current call, which is committed as dispatched. One that another worker dispatched is in doubt: it is made
// again only where that cannot do anything twice.
func (t *turn) call(ctx context.Context) error {
	call, _, _ := t.journal.Current()
	tool, offered := t.frozen.tool(call.Tool)
	if !offered || !t.fresh && !tool.repeatable() {
		return t.settle(ctx, journal.Unknown, journal.Result{
			Outcome: fault.OutcomeUnknown,
			Text: fmt.Sprintf("The outcome of this call of `%s` is unknown: its worker died while it ran, so it may or may not have "+
				"happened. Look before you make it again.", call.Tool),
		})
	}
	state, result, err := t.invoke(ctx, tool, call)
	if err != nil {
		return err
	}
	return t.settle(ctx, state, result)
}

// invoke calls the registry within the tool's time. A failure after which nothing can happen twice is tried again: a worker
// of the far end may just be coming back.
func (t *turn) invoke(ctx context.Context, tool frozenTool, call journal.Call) (journal.State, journal.Result, error) {
	callCtx, cancel := context.WithTimeout(t.as(ctx), tool.Timeout)
	defer cancel()
	request := &toolregistryv1.CallToolRequest{
		Tool: call.Tool, ArgumentsJson: call.Args, CallId: call.ID, Timeout: durationpb.New(tool.Timeout),
	}
	if !tool.readOnly() {
		request.OperationId = call.OperationID
	}
	begun := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		response, err := t.engine.Tools.CallTool(callCtx, request)
		if ctx.Err() != nil {
			// Not our time that ran out: the seat is lost or the process ends. Whoever takes the turn up settles it.
			return "", journal.Result{}, ctx.Err()
		}
		if err == nil {
			state, result := t.answered(tool, response)
			return state, result, nil
		}
		f := rpc.FromError(err)
		if f.Class == fault.Unavailable {
			t.engine.lostRegistry()
		}
		if !again(tool, f, time.Since(begun)) || pause(callCtx, wait) != nil {
			state, result := broken(tool, f)
			return state, result, nil
		}
	}
}

// patience is how long a far end that says it is unavailable, and has done nothing, is asked again.
const patience = 10 * time.Second

func again(tool frozenTool, f *fault.Error, spent time.Duration) bool {
	if f.Class != fault.Unavailable || errors.Is(f, context.DeadlineExceeded) {
		return false
	}
	if f.Outcome == fault.OutcomeUnknown {
		return tool.repeatable()
	}
	return spent < patience && !tool.external()
}

// as makes the calls of ctx in the seat's name.
func (t *turn) as(ctx context.Context) context.Context {
	return rpc.As(ctx, &toolv1.PrincipalClaims{
		Kind: rpc.KindSeat, Id: t.info.Seat, Seat: t.info.Seat, DisplayName: t.frozen.DisplayName,
		Turn: &toolv1.TurnClaims{
			TurnId: t.info.ID, WorkKey: t.info.WorkKey, ConversationKey: t.info.ConversationKey, RevisionId: t.info.RevisionID,
		},
	})
}

// answered reads a response.
func (t *turn) answered(tool frozenTool, r *toolregistryv1.CallToolResponse) (journal.State, journal.Result) {
	result := journal.Result{Text: r.GetText(), Outcome: r.GetReceipt().GetOutcome(), AuditID: r.GetAuditId()}
	switch {
	case r.GetApprovalId() != "":
		return journal.Parked, result
	case r.GetFailed():
		return journal.Failed, result
	case result.Outcome == fault.OutcomeUnknown:
		return journal.Unknown, result
	}
	result.Delivered = r.GetDelivered()
	if reached := tool.reach().Reaches(t.obligation()); result.Delivered == "" && len(reached) > 0 {
		result.Delivered = reached[0]
	}
	if result.Delivered == delivery.Asked && t.info.Surface != "" {
		result.Delivered = t.info.Surface
	}
	return journal.Done, result
}

// broken reads a failure. A read has no outcome to be in doubt about.
func broken(tool frozenTool, f *fault.Error) (journal.State, journal.Result) {
	if f.Outcome != fault.OutcomeUnknown || tool.readOnly() {
		return journal.Failed, refused(f)
	}
	advice := "Repeat exactly the same call, before any different call of this tool: it is done once."
	if !tool.repeatable() {
		advice = "It may have happened. Look before you make it again."
	}
	return journal.Unknown, journal.Result{
		Class: f.Class, Outcome: fault.OutcomeUnknown, Text: fmt.Sprintf("The outcome is unknown. %s %s", f.Message, advice),
	}
}

// refused answers the result that a refusal is.
func refused(err error) journal.Result {
	class := fault.ClassOf(err)
	text := fmt.Sprintf("Refused (%s): %s", class, sentence(err))
	if f, ok := fault.As(err); ok && f.Field != "" {
		text += fmt.Sprintf(" [argument `%s`]", f.Field)
	}
	return journal.Result{Class: class, Text: text}
}

// clean makes a text that Postgres and JSON can hold.
func clean(text string) string {
	if utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}
