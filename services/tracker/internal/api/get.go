package api

import (
	"context"
	"slices"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// GetWorkItem implements the contract.
func (h *Handler) GetWorkItem(ctx context.Context, req *trackerv1.GetWorkItemRequest) (*trackerv1.GetWorkItemResponse, error) {
	o, _, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	i, err := h.Store.ItemByName(ctx, req.GetItem())
	if err != nil {
		return nil, err
	}
	res := &trackerv1.GetWorkItemResponse{Item: convert.Item(i, o.Clock(h.Now()))}
	if res.Subtasks, err = h.Store.Subtasks(ctx, i.ID); err != nil {
		return nil, err
	}
	if wanted(req, "comments") {
		if err := h.thread(ctx, req, i, res); err != nil {
			return nil, err
		}
	}
	if wanted(req, "history") {
		entries, err := h.Store.History(ctx, i.ID)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			res.History = append(res.History, convert.Change(e))
		}
	}
	return res, nil
}

func wanted(req *trackerv1.GetWorkItemRequest, part string) bool {
	return len(req.GetInclude()) == 0 || slices.Contains(req.GetInclude(), part)
}

func (h *Handler) thread(ctx context.Context, req *trackerv1.GetWorkItemRequest, i *item.Item, res *trackerv1.GetWorkItemResponse) error {
	bind := "get_work_item " + i.ID.String()
	var cursor *store.ThreadCursor
	if req.GetCommentsCursor() != "" {
		cursor = &store.ThreadCursor{}
		if err := page.Decode(req.GetCommentsCursor(), bind, cursor); err != nil {
			return err
		}
	}
	comments, next, err := h.Store.Comments(ctx, i.ID, cursor)
	if err != nil {
		return err
	}
	for _, c := range comments {
		res.Comments = append(res.Comments, convert.Comment(c))
	}
	if next != nil {
		res.NextCommentsCursor, err = page.Encode(bind, next)
	}
	return err
}
