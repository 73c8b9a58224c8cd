package api

import (
	"context"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

// reasonStream marks a position that is not the tracker's.
const reasonStream = "WRONG_STREAM"

// ExplainChange says what became of a change of a work item.
func (h *Handler) ExplainChange(ctx context.Context, req *notificationv1.ExplainChangeRequest) (*notificationv1.ExplainChangeResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	at, err := ops.ParsePosition(req.GetPosition())
	if err != nil {
		return nil, fault.New(fault.Invalid, "`position` must be a place in the tracker's order, such as %s, not %.64q.", example(), req.GetPosition()).
			WithField("position")
	}
	if at.Service != work.Source {
		return nil, fault.New(fault.Invalid, "`position` is in the order of %s; changes of work items are in the tracker's, such as %s.", at.Service, example()).
			WithField("position").WithReason(reasonStream)
	}
	state, decisions, err := h.o.Store.ChangeState(ctx, at.Epoch, at.Sequence)
	if err != nil {
		return nil, err
	}
	res := &notificationv1.ExplainChangeResponse{State: state}
	for _, d := range decisions {
		res.Decisions = append(res.Decisions, &notificationv1.ChangeDecision{Handle: d.Handle, Reason: d.Reason, Outcome: d.Outcome, Detail: d.Detail})
	}
	return res, nil
}

func example() ops.Position { return ops.Position{Service: work.Source, Epoch: 1, Sequence: 42} }
