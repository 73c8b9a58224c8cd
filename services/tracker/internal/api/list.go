package api

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// defaultLimit is how many rows a page has when nobody says.
const defaultLimit = query.DefaultLimit

// ListWorkItems implements the contract.
func (h *Handler) ListWorkItems(ctx context.Context, req *trackerv1.ListWorkItemsRequest) (*trackerv1.ListWorkItemsResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	q, err := h.query(ctx, o, by, req)
	if err != nil {
		return nil, err
	}
	l := listing{Handler: h, q: q, act: h.act(o, by), res: &trackerv1.ListWorkItemsResponse{}}
	if q.GroupBy != "" && q.Group == nil {
		if req.GetCursor() != "" {
			return nil, fault.New(fault.Invalid, "a grouped answer has no pages: name one column with group, and page through that").WithField("cursor")
		}
		err = l.board(ctx)
	} else {
		err = l.page(ctx, req.GetCursor())
	}
	if err != nil {
		return nil, err
	}
	if err := l.totals(ctx); err != nil {
		return nil, err
	}
	return l.res, fits(l.res, "narrow the list, or ask for fewer with a smaller limit, and for a board with a smaller group_limit")
}

// query answers what a call asks for: its arguments over the view over the preset, with every name resolved.
func (h *Handler) query(ctx context.Context, o *org.Org, by item.Actor, req *trackerv1.ListWorkItemsRequest) (*query.Query, error) {
	given, err := arguments(req)
	if err != nil {
		return nil, err
	}
	preset, err := query.Preset(req.GetPreset())
	if err != nil {
		return nil, err
	}
	view := query.Params{}
	if req.GetView() != "" {
		if view, err = h.viewParams(ctx, by, req.GetView()); err != nil {
			return nil, err
		}
	}
	q, err := query.Parse(query.Merge(preset, view, given))
	if err != nil {
		return nil, err
	}
	r := &resolver{Handler: h, org: o, by: by}
	if err := r.resolve(ctx, q); err != nil {
		return nil, err
	}
	if q.Group != nil {
		return q, store.CheckGroup(q)
	}
	return q, nil
}

// listing is one answer in the making.
type listing struct {
	*Handler
	q   *query.Query
	act store.Act
	res *trackerv1.ListWorkItemsResponse
}

// page answers a plain list, or one column of a grouped one.
func (l *listing) page(ctx context.Context, token string) error {
	bind, err := bindOf(l.q)
	if err != nil {
		return err
	}
	var cursor *store.Cursor
	if token != "" {
		cursor = &store.Cursor{}
		if err := page.Decode(token, bind, cursor); err != nil {
			return err
		}
	}
	listed, err := l.Store.ListItems(ctx, l.q, l.act, cursor)
	if err != nil {
		return err
	}
	l.res.Count, l.res.Total, l.res.TotalIsAtLeast = int32(len(listed.Items)), listed.Total, listed.AtLeast
	if l.res.Items, err = l.rows(ctx, listed.Items); err != nil {
		return err
	}
	if listed.Next != nil {
		l.res.NextCursor, err = page.Encode(bind, listed.Next)
	}
	return err
}

// bindOf names the list that a cursor belongs to: everything that filters or sorts, names resolved.
func bindOf(q *query.Query) (string, error) {
	params := q.Params()
	delete(params, "limit")
	raw, err := json.Marshal(params)
	return "list_work_items " + string(raw), err
}

// board answers a grouped list.
func (l *listing) board(ctx context.Context) error {
	board, err := l.Store.Groups(ctx, l.q, l.act)
	if err != nil {
		return err
	}
	l.res.Total, l.res.TotalIsAtLeast = board.Total, board.AtLeast
	l.res.GroupsOverlap, l.res.GroupsDropped = board.Overlap, board.Dropped
	seen := map[uuid.UUID]bool{}
	var shown []store.Row
	for _, g := range board.Groups {
		group := &trackerv1.ItemGroup{
			Value: g.Value, Label: labelOf(l.act.Org, l.q, g.Value), Count: g.Count, CountIsAtLeast: g.AtLeast, Totals: convert.Totals(g.Totals),
		}
		for _, row := range g.Items {
			group.Keys = append(group.Keys, row.Key())
			if !seen[row.ID] {
				seen[row.ID] = true
				shown = append(shown, row)
			}
		}
		l.res.Groups = append(l.res.Groups, group)
	}
	l.res.Count = int32(len(shown))
	l.res.Items, err = l.rows(ctx, shown)
	return err
}

// rows says of each item what is computed with it: what it waits for, what is odd about it, and its custom fields by their slugs.
func (l *listing) rows(ctx context.Context, listed []store.Row) ([]*trackerv1.WorkItem, error) {
	if len(listed) == 0 {
		return nil, nil
	}
	ids, projects := make([]uuid.UUID, 0, len(listed)), []string{}
	for _, row := range listed {
		ids = append(ids, row.ID)
		if len(row.Fields) > 0 && !slices.Contains(projects, row.Project) {
			projects = append(projects, row.Project)
		}
	}
	standings, err := l.Store.Standings(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var catalogues map[string]store.Catalogue
	if len(projects) > 0 {
		if catalogues, err = l.Store.Catalogues(ctx, projects...); err != nil {
			return nil, err
		}
	}
	now := l.act.Org.Clock(l.act.At)
	rows := make([]*trackerv1.WorkItem, 0, len(listed))
	for _, row := range listed {
		shown := convert.Row(row, standings[row.ID], now)
		if shown.Fields, err = fieldsOf(catalogues[row.Project], row.Item, l.act.By); err != nil {
			return nil, err
		}
		rows = append(rows, shown)
	}
	return rows, nil
}

// totals adds the numbers over all matches.
func (l *listing) totals(ctx context.Context) error {
	if len(l.q.Totals) == 0 {
		return nil
	}
	numbers, over, err := l.Store.Totals(ctx, l.q, l.act)
	if err != nil {
		return err
	}
	if over {
		l.res.Incomplete = "totals are left out: more than 100,000 items match; narrow the list to have them"
	}
	l.res.Totals = convert.Totals(numbers)
	return nil
}
