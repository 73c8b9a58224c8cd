package api

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// CreateWorkItem implements the contract.
func (h *Handler) CreateWorkItem(ctx context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	i, err := h.newItem(ctx, o, by, req)
	if err != nil {
		return nil, err
	}
	mentions, warnings := mentioned(o, item.Mentions(i.Body))
	res := &trackerv1.CreateWorkItemResponse{}
	filing := store.Filing{Item: i, Parent: req.GetParent(), Mentions: mentions, Act: h.act(o, by)}
	err = h.Store.InsertItem(ctx, operation(ctx, "create_work_item", req), res, filing, func(at ops.Position) {
		res.Outcome, res.Position, res.Version = h.landed(at), at.String(), i.Version
		res.Key, res.Id, res.Status, res.Assignee, res.Warnings = i.Key(), i.ID.String(), i.Status, i.Assignee, warnings
		if i.Assignee == "" {
			res.Warnings = append(res.Warnings, "nobody has it yet: it waits for triage in "+i.Project)
		}
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (h *Handler) newItem(ctx context.Context, o *org.Org, by item.Actor, req *trackerv1.CreateWorkItemRequest) (*item.Item, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	i := &item.Item{
		ID:              id,
		Type:            orDefault(req.GetType(), "task"),
		Title:           req.GetTitle(),
		Body:            req.GetBody(),
		Status:          orDefault(req.GetStatus(), "todo"),
		Priority:        orDefault(req.GetPriority(), "none"),
		EstimateMinutes: req.EstimateMinutes,
	}
	if strings.TrimSpace(i.Title) == "" {
		return nil, fault.New(fault.Invalid, "title must say something").WithField("title")
	}
	if i.Project, err = projectOf(o, by, req.GetProject()); err != nil {
		return nil, err
	}
	if i.Due, err = item.ParseMoment("due", req.GetDue()); err != nil {
		return nil, err
	}
	if req.GetAssignee() != "" {
		if i.Assignee, err = h.colleague(ctx, o, "assignee", req.GetAssignee()); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// UpdateWorkItem implements the contract.
func (h *Handler) UpdateWorkItem(ctx context.Context, req *trackerv1.UpdateWorkItemRequest) (*trackerv1.UpdateWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	u := item.Update{
		Status: req.Status, Priority: req.Priority, Title: req.Title, Body: req.Body, Watch: req.Watch, Reason: req.GetReason(), IfMatch: req.IfMatch,
	}
	if err := schedule(req, &u); err != nil {
		return nil, err
	}
	if req.Assignee != nil {
		assignee := req.GetAssignee()
		if assignee != "" {
			if assignee, err = h.colleague(ctx, o, "assignee", assignee); err != nil {
				return nil, err
			}
		}
		u.Assignee = &assignee
	}
	var mentions, warnings []string
	if req.Body != nil {
		mentions, warnings = mentioned(o, item.Mentions(req.GetBody()))
	}
	res := &trackerv1.UpdateWorkItemResponse{}
	edit := store.Edit{Name: req.GetItem(), Update: u, Mentions: mentions, Act: h.act(o, by)}
	err = h.Store.UpdateItem(ctx, operation(ctx, "update_work_item", req), res, edit, func(i *item.Item, at ops.Position) {
		res.Outcome, res.Version, res.Key, res.Warnings = h.landed(at), i.Version, i.Key(), warnings
		if at != (ops.Position{}) {
			res.Position = at.String()
		}
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// now is in the precision that Postgres keeps, so that what is answered equals what is read back.
func (h *Handler) now() time.Time { return h.Now().Truncate(time.Microsecond) }

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
