package api

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/events"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

// defaultApprovals is how many approvals a page has when nobody says.
const defaultApprovals = 50

// ListApprovals implements the RPC of that name.
func (h *Handler) ListApprovals(ctx context.Context, req *toolregistryv1.ListApprovalsRequest) (*toolregistryv1.ListApprovalsResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService); err != nil {
		return nil, err
	}
	bind := fmt.Sprintf("ListApprovals %q %q", req.GetState(), req.GetSeat())
	var after store.After
	if err := page.Decode(req.GetCursor(), bind, &after); err != nil {
		return nil, err
	}
	limit := int(req.GetLimit())
	if limit == 0 {
		limit = defaultApprovals
	}
	found, more, err := h.Approvals.List(ctx, req.GetState(), req.GetSeat(), after, limit)
	if err != nil {
		return nil, err
	}
	response := &toolregistryv1.ListApprovalsResponse{}
	if more {
		last := found[len(found)-1]
		if response.NextCursor, err = page.Encode(bind, store.After{StartedAt: last.CreatedAt, ID: last.ID}); err != nil {
			return nil, err
		}
	}
	for _, a := range found {
		response.Approvals = append(response.Approvals, events.ApprovalToProto(a))
	}
	return response, nil
}

// DecideApproval implements the RPC of that name.
func (h *Handler) DecideApproval(ctx context.Context, req *toolregistryv1.DecideApprovalRequest) (*toolregistryv1.DecideApprovalResponse, error) {
	from, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson)
	if err != nil {
		return nil, err
	}
	id, err := approvalID(req.GetApprovalId())
	if err != nil {
		return nil, err
	}
	decide := h.Desk.Deny
	switch req.GetDecision() {
	case "approve":
		decide = h.Desk.Approve
	case "deny":
	default:
		return nil, fault.New(fault.Invalid, "`decision` must be `approve` or `deny`, not %q.", req.GetDecision()).WithField("decision")
	}
	a, err := decide(ctx, nameOf(from), h.cleaned(req.GetNote()), id)
	if err != nil {
		return nil, err
	}
	return &toolregistryv1.DecideApprovalResponse{Approval: events.ApprovalToProto(a)}, nil
}

// CancelApproval implements the RPC of that name.
func (h *Handler) CancelApproval(ctx context.Context, req *toolregistryv1.CancelApprovalRequest) (*toolregistryv1.CancelApprovalResponse, error) {
	from, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindSeat)
	if err != nil {
		return nil, err
	}
	id, err := approvalID(req.GetApprovalId())
	if err != nil {
		return nil, err
	}
	seat := ""
	if from.GetKind() == rpc.KindSeat {
		if seat, err = seatOf(from, ""); err != nil {
			return nil, err
		}
	}
	var a *approval.Approval
	if a, err = h.Desk.Cancel(ctx, nameOf(from), seat, id); err != nil {
		return nil, err
	}
	return &toolregistryv1.CancelApprovalResponse{Approval: events.ApprovalToProto(a)}, nil
}

func approvalID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return id, fault.New(fault.Invalid, "`approval_id` must be a UUID, not %q.", text).WithField("approval_id")
	}
	return id, nil
}

// nameOf answers who decided, as it is kept.
func nameOf(from *rpc.Principal) string { return from.GetKind() + ":" + from.GetId() }
