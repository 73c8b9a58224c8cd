package door

import (
	"context"
	"time"

	"github.com/google/uuid"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/toolrule"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
)

// patience is how long the owner of a tool of ours, which says that it did nothing, is asked again.
const patience = 10 * time.Second

// Approved is a call that a person is about to let through, or has: everything before dispatch has been passed.
type Approved struct {
	door    *Door
	passage *passage
}

// Prepare passes a call that was put before a person through the stages once more, as company, tool and policy are now. It does
// nothing yet. The company is asked for, as a policy that was put a moment ago holds for who approves now. Faults: forbidden, when
// the seat is gone or the policy denies by now; not_found and unavailable, when the tool is gone or the company cannot be asked;
// conflict, when the tool is not the one that was asked about.
func (d *Door) Prepare(ctx context.Context, a *approval.Approval) (*Approved, error) {
	p := d.again(a)
	var err error
	if p.company, err = d.Asked(ctx); err != nil {
		return nil, err
	}
	if p.company == nil {
		return nil, noCompany()
	}
	if err := isAgent(p.company, a.Asker.Seat); err != nil {
		return nil, err
	}
	for _, stage := range []func(context.Context, *passage) error{d.resolve, d.permit, d.judge, d.unchanged(a), d.read, d.weigh} {
		if err := stage(ctx, p); err != nil {
			return nil, err
		}
	}
	p.record.Decision, p.record.Rule = toolrule.Ask, a.Rule
	return &Approved{door: d, passage: p}, nil
}

// Resume passes an approved call, whose runner died, to where it can be made again. Nothing that was decided is decided anew.
func (d *Door) Resume(ctx context.Context, a *approval.Approval) (*Approved, error) {
	p := d.again(a)
	if p.company = d.Company(ctx, ""); p.company == nil {
		return nil, noCompany()
	}
	for _, stage := range []func(context.Context, *passage) error{d.resolve, d.unchanged(a), d.read} {
		if err := stage(ctx, p); err != nil {
			return nil, err
		}
	}
	return &Approved{door: d, passage: p}, nil
}

// again begins a passage of a call that was made before.
func (d *Door) again(a *approval.Approval) *passage {
	seat := &rpc.Principal{
		Kind: rpc.KindSeat, Id: a.Asker.Seat, Seat: a.Asker.Seat, DisplayName: a.Asker.DisplayName,
		Turn: &toolv1.TurnClaims{
			TurnId: a.Asker.TurnID, WorkKey: a.Asker.WorkKey, ConversationKey: a.Asker.ConversationKey, RevisionId: a.Asker.RevisionID,
		},
	}
	request := Request{Tool: a.Tool, Arguments: a.Arguments, OperationID: a.OperationID, CallID: "approval:" + a.ID.String()}
	if request.OperationID == "" {
		// A write that nobody meant to repeat must land once all the same, should its runner die.
		request.OperationID = "approval-" + a.ID.String()
	}
	p := &passage{request: request, from: seat, record: d.open(seat, request), synchronous: true}
	p.caller = caller{principal: seat, audience: catalogue.Seat, seat: a.Asker.Seat, turn: a.Asker.TurnID}
	p.record.Seat, p.record.TurnID, p.record.ApprovalID = a.Asker.Seat, a.Asker.TurnID, a.ID.String()
	p.record.Decision, p.record.Rule = toolrule.Ask, a.Rule
	return p
}

// unchanged refuses a tool that is not the one that was asked about.
func (d *Door) unchanged(a *approval.Approval) func(context.Context, *passage) error {
	return func(_ context.Context, p *passage) error {
		if p.tool.Source == a.Source && p.tool.Digest == a.Digest {
			return nil
		}
		return fault.New(fault.Conflict, "`%s` is not defined any more as it was when the call was made.", a.Tool).WithReason("TOOL_CHANGED")
	}
}

// Call makes the call, records it under an id that is the same however often it is made, and answers how it ended.
func (c *Approved) Call(ctx context.Context, auditID string) approval.Call {
	d, p := c.door, c.passage
	if id, err := uuid.Parse(auditID); err == nil {
		p.record.ID = id
	}
	raw, err := d.dispatch(ctx, p)
	for begun, wait := d.Now(), 50*time.Millisecond; err != nil && p.mayTryAgain(err) && d.Now().Sub(begun) < patience; wait = min(2*wait, time.Second) {
		select {
		case <-ctx.Done():
			return ended(d.refuse(ctx, p, err))
		case <-time.After(wait):
			raw, err = d.dispatch(ctx, p)
		}
	}
	if err != nil {
		return ended(d.refuse(ctx, p, err))
	}
	a := d.answer(ctx, p, raw)
	made := approval.Call{Status: approval.OK, Result: a.Text, Outcome: a.Receipt.GetOutcome()}
	if a.Delivered != "" {
		made.Reached = p.reached()
	}
	switch {
	case a.Failed:
		made.Status = approval.Failed
	case made.Outcome == fault.OutcomeUnknown:
		made.Status = approval.Unknown
	}
	return made
}

// reached answers the surfaces that a successful call of the tool reaches.
func (p *passage) reached() []string {
	if len(p.tool.Surfaces) > 0 {
		return p.tool.Surfaces
	}
	return []string{p.tool.Delivers}
}

// mayTryAgain reports a failure of the owner of a tool of ours after which the call can be made again, as its operation lands once.
func (p *passage) mayTryAgain(err error) bool {
	return p.builtin != nil && fault.ClassOf(err) == fault.Unavailable
}

// ended reads how a call that has no answer ended.
func ended(err error) approval.Call {
	f, _ := fault.As(err)
	c := approval.Call{Status: approval.Refused, Result: f.Message, RefusalClass: string(f.Class), Outcome: f.Outcome}
	switch {
	case f.Outcome == fault.OutcomeUnknown:
		c.Status = approval.Unknown
	case f.Class == fault.Unavailable:
		c.Status = approval.Failed
	}
	return c
}

// Doubt records an approved call of which nobody knows whether it was made, and answers it so.
func (d *Door) Doubt(ctx context.Context, a *approval.Approval) approval.Call {
	p := d.again(a)
	if id, err := uuid.Parse(a.Call.AuditID); err == nil {
		p.record.ID = id
	}
	p.record.Source, p.record.Status, p.record.Outcome = a.Source, call.Failed, fault.OutcomeUnknown
	p.record.RefusalClass = string(fault.Unavailable)
	p.record.Result = "The process that made this call died while it ran: it may or may not have happened. Look before you make it again."
	d.keep(ctx, p)
	return approval.Call{
		Status: approval.Unknown, Result: p.record.Result, RefusalClass: p.record.RefusalClass, Outcome: fault.OutcomeUnknown,
	}
}
