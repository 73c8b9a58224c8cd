package api

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

const defaultLimit = 50

// ListWorkItems implements the contract.
func (h *Handler) ListWorkItems(ctx context.Context, req *trackerv1.ListWorkItemsRequest) (*trackerv1.ListWorkItemsResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	filter, err := h.filter(ctx, o, by, req)
	if err != nil {
		return nil, err
	}
	bind, err := listBind(req, filter)
	if err != nil {
		return nil, err
	}
	var cursor *store.Cursor
	if req.GetCursor() != "" {
		cursor = &store.Cursor{}
		if err := page.Decode(req.GetCursor(), bind, cursor); err != nil {
			return nil, err
		}
	}
	limit := req.GetLimit()
	if limit == 0 {
		limit = defaultLimit
	}
	listed, err := h.Store.ListItems(ctx, filter, order(req.GetSort()), cursor, limit)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.ListWorkItemsResponse{Count: int32(len(listed.Items)), Total: listed.Total, TotalIsAtLeast: listed.AtLeast}
	now := o.Clock(h.Now())
	for _, i := range listed.Items {
		row := convert.Item(i, now)
		row.Body = nil
		res.Items = append(res.Items, row)
	}
	if listed.Next != nil {
		res.NextCursor, err = page.Encode(bind, listed.Next)
	}
	return res, err
}

// listBind names the list that a cursor belongs to: everything that filters or sorts, names resolved.
func listBind(req *trackerv1.ListWorkItemsRequest, f store.Filter) (string, error) {
	list := proto.CloneOf(req)
	list.Cursor, list.Limit = "", 0
	if f.Assignee != nil {
		list.Assignee = *f.Assignee
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	return fmt.Sprintf("list_work_items %x", raw), err
}

func (h *Handler) filter(ctx context.Context, o *org.Org, by item.Actor, req *trackerv1.ListWorkItemsRequest) (store.Filter, error) {
	f := store.Filter{
		Project: req.GetProject(), Statuses: req.GetStatus(), OpenOnly: req.GetOpenOnly(), Text: req.GetText(), Types: req.GetType(),
		Priorities: req.GetPriority(), Parent: req.GetParent(),
	}
	var err error
	switch who := req.GetAssignee(); who {
	case "":
	case "nobody":
		f.Assignee = new(string)
	case "me":
		f.Assignee = &by.Name
	default:
		if who, err = h.colleague(ctx, o, "assignee", who); err != nil {
			return f, err
		}
		f.Assignee = &who
	}
	switch who := req.GetReporter(); who {
	case "":
	case "me":
		f.Reporter = by.Name
	default:
		f.Reporter, err = h.colleague(ctx, o, "reporter", who)
	}
	return f, err
}

func order(sort string) store.Order {
	switch sort {
	case "updated":
		return store.Order{}
	case "created":
		return store.Order{Created: true}
	case "-created":
		return store.Order{Created: true, Descending: true}
	default:
		return store.Order{Descending: true}
	}
}
