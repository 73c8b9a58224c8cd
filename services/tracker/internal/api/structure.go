package api

import (
	"context"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// MergeWorkItem implements the contract.
func (h *Handler) MergeWorkItem(ctx context.Context, req *trackerv1.MergeWorkItemRequest) (*trackerv1.MergeWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.MergeWorkItemResponse{}
	merge := store.Merge{
		Name: req.GetItem(), Into: req.GetInto(), Subtasks: req.MoveSubtasks == nil || req.GetMoveSubtasks(), Act: h.act(o, by),
	}
	err = h.Store.MergeItem(ctx, operation(ctx, "merge_work_item", req), res, merge, func(m store.Merged) {
		res.Outcome, res.Position, res.Version = h.landed(m.Position), place(m.Position), m.Item.Version
		res.Key, res.MergedInto, res.SubtasksMoved, res.Status = m.Item.Key(), m.Into, int32(m.Subtasks), m.Item.Status
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// MoveWorkItem implements the contract.
func (h *Handler) MoveWorkItem(ctx context.Context, req *trackerv1.MoveWorkItemRequest) (*trackerv1.MoveWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.MoveWorkItemResponse{}
	move := store.Move{Name: req.GetItem(), Project: req.GetProject(), Act: h.act(o, by)}
	err = h.Store.MoveItem(ctx, operation(ctx, "move_work_item", req), res, move, func(m store.Moved) {
		res.Outcome, res.Position, res.Version = h.landed(m.Position), place(m.Position), m.Item.Version
		res.Key, res.MovedFrom, res.Project, res.SubtasksMoved = m.Item.Key(), m.From, m.Item.Project, int32(m.Subtasks)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// RemoveWorkItem implements the contract.
func (h *Handler) RemoveWorkItem(ctx context.Context, req *trackerv1.RemoveWorkItemRequest) (*trackerv1.RemoveWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.RemoveWorkItemResponse{}
	gesture := store.Gesture{Name: req.GetItem(), Act: h.act(o, by)}
	err = h.Store.RemoveItem(ctx, operation(ctx, "remove_work_item", req), res, gesture, req.GetSubtree(), func(i *item.Item, at ops.Position, removed int) {
		res.Outcome, res.Position, res.Version = h.landed(at), place(at), i.Version
		res.Key, res.Removed = i.Key(), int32(removed)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// RestoreWorkItem implements the contract.
func (h *Handler) RestoreWorkItem(ctx context.Context, req *trackerv1.RestoreWorkItemRequest) (*trackerv1.RestoreWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.RestoreWorkItemResponse{}
	gesture := store.Gesture{Name: req.GetItem(), Act: h.act(o, by)}
	err = h.Store.RestoreItem(ctx, operation(ctx, "restore_work_item", req), res, gesture,
		func(i *item.Item, at ops.Position, restored int, warnings []string) {
			res.Outcome, res.Position, res.Version = h.landed(at), place(at), i.Version
			res.Key, res.Restored, res.Warnings = i.Key(), int32(restored), warnings
		})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// PlaceWorkItem implements the contract.
func (h *Handler) PlaceWorkItem(ctx context.Context, req *trackerv1.PlaceWorkItemRequest) (*trackerv1.PlaceWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	placement := store.Placement{Name: req.GetItem(), Before: req.GetBefore(), After: req.GetAfter(), IfMatch: new(req.GetIfMatch()), Act: h.act(o, by)}
	if req.GetStatus() != "" {
		placement.Status = new(req.GetStatus())
	}
	res := &trackerv1.PlaceWorkItemResponse{}
	err = h.Store.PlaceItem(ctx, operation(ctx, "place_work_item", req), res, placement, func(p store.Placed) {
		res.Outcome, res.Position, res.Version = h.landed(p.Position), place(p.Position), p.Item.Version
		res.Key, res.Status, res.Rank, res.Placed, res.Unplaced = p.Item.Key(), p.Item.Status, p.Item.Rank, p.Placed, p.Unplaced
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// PurgeWorkItem implements the contract.
func (h *Handler) PurgeWorkItem(ctx context.Context, req *trackerv1.PurgeWorkItemRequest) (*trackerv1.PurgeWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if !by.Person() {
		return nil, fault.New(fault.Forbidden, "only a person's own credential destroys an item; remove_work_item puts it into the trash")
	}
	res := &trackerv1.PurgeWorkItemResponse{}
	purge := store.Purge{Name: req.GetItem(), Confirm: req.GetConfirmKey(), Reason: req.GetReason(), Act: h.act(o, by)}
	err = h.Store.PurgeItem(ctx, operation(ctx, "purge_work_item", req), res, purge, func(key string, movedUp int, at ops.Position) {
		res.Outcome, res.Position, res.Key, res.MovedUp = h.landed(at), place(at), key, int32(movedUp)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// place is a position as receipts have it: empty when nothing was written.
func place(at ops.Position) string {
	if at == (ops.Position{}) {
		return ""
	}
	return at.String()
}
