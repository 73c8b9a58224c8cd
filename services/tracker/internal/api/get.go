package api

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// How much of long texts is shown, in bytes.
const (
	bodyShown    = 4 << 10
	commentShown = 2 << 10
)

// GetWorkItem implements the contract.
func (h *Handler) GetWorkItem(ctx context.Context, req *trackerv1.GetWorkItemRequest) (*trackerv1.GetWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	parts, err := partsOf(req)
	if err != nil {
		return nil, err
	}
	w, err := h.Store.WholeItem(ctx, req.GetItem(), parts)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.GetWorkItemResponse{Item: convert.Item(w.Item, o.Clock(h.Now())), ReassignmentBudget: item.MaxReassignments, Units: units(o, w.Item)}
	convert.Standing(res.GetItem(), w.Standing)
	if w.Removal != nil && w.Removal.With != w.ID {
		res.Item.Removal.RemovedWith = w.Keys[w.Removal.With]
	}
	if parts.Comment != nil || !req.GetBody() {
		res.Item.Body = proto.String(item.Shorten(w.Body, bodyShown))
	}
	res.Subtasks = w.Subtasks
	if err := thread(w, parts, res); err != nil {
		return nil, err
	}
	for _, e := range w.History {
		res.History = append(res.History, changeFor(by, e, w.Catalogue))
	}
	for _, l := range w.Links {
		res.Links = append(res.Links, convert.Link(l))
	}
	if parts.Fields {
		customFields(by, w, res)
	}
	res.Keys = itemNames(w.Keys)
	return res, h.readable(req, res)
}

// partsOf reads what is asked for. One comment, and the whole description, come alone unless more is named; a comment goes before the
// description.
func partsOf(req *trackerv1.GetWorkItemRequest) (store.Parts, error) {
	named := func(part string) bool { return slices.Contains(req.GetInclude(), part) }
	if len(req.GetInclude()) == 0 && req.GetComment() == "" && !req.GetBody() {
		named = func(string) bool { return true }
	}
	p := store.Parts{Comments: named("comments"), History: named("history"), Links: named("links"), Fields: named("fields")}
	p.Subtasks = p.Links
	p.Before = func(id uuid.UUID) (*store.ThreadCursor, error) {
		if req.GetCommentsCursor() == "" {
			return nil, nil
		}
		cursor := &store.ThreadCursor{}
		return cursor, fieldOf("comments_cursor", page.Decode(req.GetCommentsCursor(), threadBind(id), cursor))
	}
	var err error
	p.Comment, err = commentID("comment", req.GetComment())
	return p, err
}

func threadBind(id uuid.UUID) string { return "get_work_item " + id.String() }

// thread answers the comments, each shortened unless it is the one that was asked for.
func thread(w *store.Whole, p store.Parts, res *trackerv1.GetWorkItemResponse) error {
	for _, c := range w.Comments {
		shown := convert.Comment(c)
		if p.Comment == nil {
			shown.Body = shorten(c, commentShown)
		}
		res.Comments = append(res.Comments, shown)
	}
	var err error
	if w.Next != nil {
		res.NextCommentsCursor, err = page.Encode(threadBind(w.ID), w.Next)
	}
	return err
}

// shorten answers a body of at most so many bytes. The store may have cut it already.
func shorten(c *store.Comment, bytes int) string {
	if int(c.Bytes) > len(c.Body) {
		return item.Shorten(c.Body+"……", bytes)
	}
	return item.Shorten(c.Body, bytes)
}

// units answers the units of an item as the chart knows them now.
func units(o *org.Org, i *item.Item) *trackerv1.ItemUnits {
	unit := func(id string) *trackerv1.ItemUnit {
		u, ok := o.Unit(id)
		if !ok || u.ID != id {
			return &trackerv1.ItemUnit{Key: id}
		}
		return &trackerv1.ItemUnit{Key: id, Name: u.Name, Resolved: true}
	}
	return &trackerv1.ItemUnits{Filed: unit(i.FiledUnit), Routing: unit(i.RoutingUnit)}
}

// itemNames answers keys by id, sorted by id.
func itemNames(keys map[uuid.UUID]string) []*trackerv1.ItemName {
	var names []*trackerv1.ItemName
	ids := slices.SortedFunc(maps.Keys(keys), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range ids {
		names = append(names, &trackerv1.ItemName{Id: id.String(), Key: keys[id]})
	}
	return names
}

// readable refuses an answer that is too large. A whole text that was asked for does not count: nothing could make it smaller.
func (h *Handler) readable(req *trackerv1.GetWorkItemRequest, res *trackerv1.GetWorkItemResponse) error {
	measured := proto.CloneOf(res)
	if req.GetComment() != "" {
		measured.Comments = nil
	} else if req.GetBody() {
		measured.Item.Body = nil
	}
	return fits(measured, "name in include what you need of comments, history, links and fields")
}

// fieldOf names the argument that a refused cursor came in.
func fieldOf(argument string, err error) error {
	if f, ok := fault.As(err); ok {
		return f.WithField(argument)
	}
	return err
}

// customFields answers the item's custom fields, as the caller may see them.
func customFields(by item.Actor, w *store.Whole, res *trackerv1.GetWorkItemResponse) {
	set := w.Catalogue.Fields(field.Scope{Type: w.Type, Subtask: w.Parent != nil})
	if by.Kind == "agent" {
		set = set.ForAgents()
	}
	for _, r := range set.Read(w.Fields) {
		res.Fields = append(res.Fields, convert.ItemField(r))
	}
	res.Item.Fields = convert.BySlug(set.BySlug(w.Fields))
}
