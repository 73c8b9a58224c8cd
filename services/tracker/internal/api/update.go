package api

import (
	"context"
	"slices"
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// UpdateWorkItem implements the contract. One call is one change: all of it stands, in one row of history, or nothing does.
func (h *Handler) UpdateWorkItem(ctx context.Context, req *trackerv1.UpdateWorkItemRequest) (*trackerv1.UpdateWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	edit := store.Edit{Name: req.GetItem(), Act: h.act(o, by)}
	if edit.Update, err = h.update(ctx, edit.Act, req); err != nil {
		return nil, err
	}
	if edit.Wishes, err = wishes(req); err != nil {
		return nil, err
	}
	if edit.Relations, err = relationsOf(req); err != nil {
		return nil, err
	}
	var warnings []string
	if req.Body != nil {
		edit.Mentions, warnings = mentioned(o, item.Mentions(req.GetBody()))
	}
	res := &trackerv1.UpdateWorkItemResponse{}
	err = h.named(ctx, o, func(colleague naming) error {
		edit.Wishes.Colleague = colleague
		return h.Store.UpdateItem(ctx, operation(ctx, "update_work_item", req), res, edit, func(done store.Edited) {
			res.Outcome, res.Position, res.Version = h.landed(done.At), place(done.At), done.Item.Version
			res.Key, res.LabelsCreated, res.Warnings = done.Item.Key(), done.Labels, append(warnings, done.Warnings...)
		})
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// update reads what the item itself decides about.
func (h *Handler) update(ctx context.Context, a store.Act, req *trackerv1.UpdateWorkItemRequest) (item.Update, error) {
	u := item.Update{
		Status: req.Status, Priority: req.Priority, Title: req.Title, Body: req.Body, Watch: req.Watch, Reason: req.GetReason(), IfMatch: req.IfMatch,
	}
	if req.Title != nil {
		if err := item.Line("title", req.GetTitle()); err != nil {
			return u, err
		}
	}
	if err := schedule(req, &u); err != nil {
		return u, err
	}
	if req.RoutingUnit != nil {
		unit, ok := a.Org.Unit(req.GetRoutingUnit())
		if !ok {
			return u, a.Org.NoUnit("routing_unit", req.GetRoutingUnit())
		}
		u.RoutingUnit = &unit.ID
	}
	return u, h.people(ctx, a, req, &u)
}

// people reads who gets the item, helps with it, and does a step of it.
func (h *Handler) people(ctx context.Context, a store.Act, req *trackerv1.UpdateWorkItemRequest, u *item.Update) (err error) {
	if u.Assignee, err = h.somebody(ctx, a, "assignee", req.Assignee); err != nil {
		return err
	}
	if change := req.GetCollaborators(); change != nil {
		c := item.SetChange{Add: change.GetAdd(), Remove: change.GetRemove(), Set: change.GetSet(), Clear: change.GetClear()}
		if err := c.Check("collaborators"); err != nil {
			return err
		}
		if c, err = c.Resolve(func(text string) (string, error) { return h.colleague(ctx, a.Org, "collaborators", text) }); err != nil {
			return err
		}
		u.Collaborators = &c
	}
	if req.GetChecklist() != nil {
		u.Checklist, err = h.gesture(ctx, a, req.GetChecklist())
	}
	return err
}

// somebody answers the handle that an argument names; empty stays empty, for nobody.
func (h *Handler) somebody(ctx context.Context, a store.Act, argument string, text *string) (*string, error) {
	if text == nil || *text == "" {
		return text, nil
	}
	handle, err := h.colleague(ctx, a.Org, argument, *text)
	return &handle, err
}

// gesture reads a change of checklists.
func (h *Handler) gesture(ctx context.Context, a store.Act, g *trackerv1.ChecklistGesture) (item.Gesture, error) {
	switch g := g.GetGesture().(type) {
	case *trackerv1.ChecklistGesture_AddList:
		return item.AddList(g.AddList.GetName(), g.AddList.GetItems()), nil
	case *trackerv1.ChecklistGesture_RemoveList:
		return item.RemoveList(g.RemoveList.GetList()), nil
	case *trackerv1.ChecklistGesture_RenameList:
		return item.RenameList(g.RenameList.GetList(), g.RenameList.GetName()), nil
	case *trackerv1.ChecklistGesture_AddItem:
		assignee, err := h.somebody(ctx, a, "checklist.add_item.assignee", &g.AddItem.Assignee)
		if err != nil {
			return nil, err
		}
		return item.AddStep(g.AddItem.GetList(), g.AddItem.GetName(), *assignee), nil
	case *trackerv1.ChecklistGesture_RemoveItem:
		return item.RemoveStep(g.RemoveItem.GetItem()), nil
	case *trackerv1.ChecklistGesture_RenameItem:
		return item.RenameStep(g.RenameItem.GetItem(), g.RenameItem.GetName()), nil
	case *trackerv1.ChecklistGesture_SetDone:
		return item.SetStepDone(g.SetDone.GetItem(), g.SetDone.GetDone()), nil
	case *trackerv1.ChecklistGesture_AssignItem:
		assignee, err := h.somebody(ctx, a, "checklist.assign_item.assignee", &g.AssignItem.Assignee)
		if err != nil {
			return nil, err
		}
		return item.AssignStep(g.AssignItem.GetItem(), *assignee), nil
	default:
		return nil, fault.New(fault.Invalid, "checklist must hold one gesture").WithField("checklist")
	}
}

// wishes reads what the project's declarations decide about.
func wishes(req *trackerv1.UpdateWorkItemRequest) (store.Wishes, error) {
	w := store.Wishes{Type: req.Type, CreateLabels: req.GetLabelsCreateMissing(), Fields: req.GetFields().AsMap()}
	cleared := slices.Contains(req.GetClear(), "labels")
	switch {
	case cleared && len(req.GetLabels()) > 0:
		return w, fault.New(fault.Invalid, "give labels or name it in clear, not both").WithField("clear")
	case cleared:
		w.Labels = &[]string{}
	case len(req.GetLabels()) > 0:
		w.Labels = &req.Labels
	}
	return w, nil
}

// now is in the precision that Postgres keeps, so that what is answered equals what is read back.
func (h *Handler) now() time.Time { return h.Now().Truncate(time.Microsecond) }
