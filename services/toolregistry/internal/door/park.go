package door

import (
	"context"

	"github.com/google/uuid"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// Approvals keeps questions to people.
type Approvals interface {
	// Ask keeps a question; the same call again answers the question that there is, as it stands, and asked is false.
	Ask(ctx context.Context, a *approval.Approval) (kept *approval.Approval, asked bool, err error)
}

// park puts a call before a person and answers at once. The same call again answers how its question stands; it never asks twice.
func (d *Door) park(ctx context.Context, p *passage) (*Answer, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, d.refuse(ctx, p, err)
	}
	now, turn := d.Now(), p.caller.principal.GetTurn()
	kept, _, err := d.Approvals.Ask(ctx, &approval.Approval{
		ID: id, State: approval.Waiting,
		Asker: approval.Asker{
			Seat: p.caller.seat, DisplayName: p.caller.principal.GetDisplayName(), TurnID: turn.GetTurnId(), WorkKey: turn.GetWorkKey(),
			ConversationKey: turn.GetConversationKey(), RevisionID: turn.GetRevisionId(),
		},
		Tool: p.tool.Name, Source: p.tool.Source, Digest: p.tool.Digest, Arguments: p.request.Arguments, Shown: p.record.Arguments,
		CallID: p.request.CallID, OperationID: p.request.OperationID, Repeatable: p.repeatable(),
		Rule: p.decision.Rule, Reason: p.decision.Reason, CreatedAt: now, ExpiresAt: now.Add(p.decision.Expire),
	})
	if err != nil {
		return nil, d.refuse(ctx, p, err)
	}
	p.record.ApprovalID = kept.ID.String()
	return d.standing(ctx, p, kept)
}

// repeatable reports whether making the call twice does no more than making it once: a write of ours has its operation, a
// server's tool must have said so.
func (p *passage) repeatable() bool {
	return p.builtin != nil || p.tool.Hints.Reads() || p.tool.Hints.Idempotent != nil && *p.tool.Hints.Idempotent
}

// standing answers a call with what became of its question so far.
func (d *Door) standing(ctx context.Context, p *passage, a *approval.Approval) (*Answer, error) {
	switch {
	case a.State == approval.Waiting, a.Call.Status == approval.Running:
		text := a.Decision()
		if a.State == approval.Waiting {
			text = a.Parked()
		}
		p.record.Status, p.record.Result = call.Parked, text
		d.keep(ctx, p)
		return &Answer{Text: text, Source: p.tool.Source, AuditID: p.record.ID, ApprovalID: a.ID.String()}, nil
	case a.Call.Status == approval.OK || a.Call.Status == approval.Failed && a.Call.RefusalClass == "":
		p.record.Status, p.record.Result, p.record.Outcome = call.OK, a.Call.Result, a.Call.Outcome
		if a.Call.Status == approval.Failed {
			p.record.Status = call.Failed
		}
		d.keep(ctx, p)
		answer := &Answer{
			Text: a.Call.Result, Failed: a.Call.Status == approval.Failed, Source: p.tool.Source, AuditID: p.record.ID,
		}
		if len(a.Call.Reached) > 0 {
			answer.Delivered = p.tool.Delivers
		}
		if a.Call.Outcome != "" {
			answer.Receipt = &toolv1.Receipt{Outcome: a.Call.Outcome}
		}
		return answer, nil
	case a.Call.Status == approval.Unknown:
		return nil, d.refuse(ctx, p, fault.New(fault.Unavailable, "%s", a.Decision()).WithOutcome(fault.OutcomeUnknown).WithOperation(a.OperationID))
	case a.State == approval.Approved:
		return nil, d.refuse(ctx, p, fault.New(fault.Class(a.Call.RefusalClass), "%s", a.Call.Result))
	case a.State == approval.Denied:
		return nil, d.refuse(ctx, p, fault.New(fault.Forbidden, "%s Do something else; the same call stays denied.", a.Decision()).WithReason(ReasonDenied))
	default:
		return nil, d.refuse(ctx, p, fault.New(fault.Conflict, "%s", a.Decision()))
	}
}
