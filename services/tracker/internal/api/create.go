package api

import (
	"context"

	"github.com/google/uuid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// CreateWorkItem implements the contract. Everything is checked before anything is declared or filed.
func (h *Handler) CreateWorkItem(ctx context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	a := h.act(o, by)
	filing, warnings, err := h.filing(ctx, a, req)
	if err != nil {
		return nil, err
	}
	similar := h.similar(ctx, filing.Item.Project, filing.Item.Title)
	res := &trackerv1.CreateWorkItemResponse{}
	err = h.named(ctx, o, func(colleague naming) error {
		filing.Wishes.Colleague = colleague
		return h.Store.InsertItem(ctx, operation(ctx, "create_work_item", req), res, filing, func(filed store.Filed) {
			i := filed.Item
			res.Outcome, res.Position, res.Version = h.landed(filed.At), filed.At.String(), i.Version
			res.Key, res.Id, res.Status, res.Assignee, res.LabelsCreated = i.Key(), i.ID.String(), i.Status, i.Assignee, filed.Labels
			res.Warnings, res.Similar = append(warnings, filed.Warnings...), similar
			if i.Assignee == "" {
				res.Warnings = append(res.Warnings, "nobody has it yet: it waits for triage in "+i.Project)
			}
			if q := filing.Question; q != nil {
				res.Asked, res.CommentId, res.Decision = q.Ask.Asked, q.ID.String(), convert.Decision(q.Ask.Decision)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// filing reads what is to be filed, and what is to be known about it.
func (h *Handler) filing(ctx context.Context, a store.Act, req *trackerv1.CreateWorkItemRequest) (store.Filing, []string, error) {
	f := store.Filing{Parent: req.GetParent(), EvenIfExists: req.GetEvenIfExists(), Act: a}
	var err error
	if f.Item, err = h.newItem(ctx, a, req); err != nil {
		return f, nil, err
	}
	f.Wishes = store.Wishes{Type: &req.Type, CreateLabels: req.GetLabelsCreateMissing(), Fields: req.GetFields().AsMap()}
	if len(req.GetLabels()) > 0 {
		f.Wishes.Labels = &req.Labels
	}
	if req.GetAsk() != "" {
		if f.Question, err = h.question(ctx, a, req); err != nil {
			return f, nil, err
		}
	}
	if len(req.GetWaitingOn()) > 0 {
		f.Relations.WaitingOn = &item.SetChange{Add: req.GetWaitingOn()}
	}
	var warnings []string
	f.Mentions, warnings = mentioned(a.Org, item.Mentions(f.Item.Body))
	return f, warnings, nil
}

// newItem reads the item itself; what its project decides is filled in when it is filed.
func (h *Handler) newItem(ctx context.Context, a store.Act, req *trackerv1.CreateWorkItemRequest) (*item.Item, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	i := &item.Item{
		ID: id, Title: req.GetTitle(), Body: req.GetBody(), Status: orDefault(req.GetStatus(), "todo"), Priority: orDefault(req.GetPriority(), "none"),
		EstimateMinutes: req.EstimateMinutes, Points: req.Points,
	}
	if err := item.Line("title", i.Title); err != nil {
		return nil, err
	}
	if i.Project, err = projectOf(a.Org, a.By, req.GetProject()); err != nil {
		return nil, err
	}
	if i.Due, err = item.ParseMoment("due", req.GetDue()); err != nil {
		return nil, err
	}
	if i.Start, err = item.ParseMoment("start", req.GetStart()); err != nil {
		return nil, err
	}
	if req.GetUnit() != "" {
		unit, ok := a.Org.Unit(req.GetUnit())
		if !ok {
			return nil, a.Org.NoUnit("unit", req.GetUnit())
		}
		i.FiledUnit = unit.ID
	}
	if req.GetAssignee() != "" {
		i.Assignee, err = h.colleague(ctx, a.Org, "assignee", req.GetAssignee())
	}
	return i, err
}

// question is the comment that files an item as one: its text is the title.
func (h *Handler) question(ctx context.Context, a store.Act, req *trackerv1.CreateWorkItemRequest) (*store.Comment, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c := &store.Comment{ID: id, Author: a.By, Body: req.GetTitle(), CreatedAt: a.At}
	c.Ask, err = h.ask(ctx, a.Org, a.By, req.GetAsk(), req.GetDecision())
	return c, err
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
