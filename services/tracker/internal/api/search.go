package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/search"
	"github.com/bullpenhq/bullpen/services/tracker/internal/search/words"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

const (
	defaultMatches = 8
	// maxKeyed is how many items are told apart that a key names or begins.
	maxKeyed = 1000
	// spareMatches are asked of the index beyond the limit, for those that it has not seen go.
	spareMatches = 8
)

// SearchWorkItems implements the contract.
func (h *Handler) SearchWorkItems(ctx context.Context, req *trackerv1.SearchWorkItemsRequest) (*trackerv1.SearchWorkItemsResponse, error) {
	o, _, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	q := search.Query{Text: req.GetText(), OpenOnly: req.GetOpenOnly(), Limit: int(req.GetLimit())}
	if q.Limit == 0 {
		q.Limit = defaultMatches
	}
	if q.Project, err = h.searched(ctx, o, req.GetProject()); err != nil {
		return nil, err
	}
	res := &trackerv1.SearchWorkItemsResponse{Query: req.GetText(), Complete: true}
	if err := h.fresh(ctx, req.GetMinPosition() != "", res); err != nil {
		return nil, err
	}
	keyed, err := h.Store.Keyed(ctx, strings.TrimSpace(q.Text), q.Project, q.OpenOnly, maxKeyed)
	if err != nil {
		return nil, unread(err)
	}
	if len(keyed) == maxKeyed {
		missing(res, fmt.Sprintf("%d keys or more begin so, and those after the first %d are not counted: give more of the key", maxKeyed, maxKeyed))
	}
	q.Except = keyed
	limit := q.Limit
	q.Limit += spareMatches
	found, err := h.Search.Search(ctx, q)
	if err != nil {
		return nil, h.building(err)
	}
	if found.Partial > 0 {
		missing(res, fmt.Sprintf("about %d items have more than 4 MiB of comments, and their oldest are not searched", found.Partial))
	}
	if err := h.matches(ctx, q, keyed, found, limit, res); err != nil {
		return nil, err
	}
	return res, fits(res, "give a smaller limit")
}

// searched answers the key of the project that is searched; one that the chart no longer names keeps its work.
func (h *Handler) searched(ctx context.Context, o *org.Org, project string) (string, error) {
	key := strings.ToUpper(strings.TrimSpace(project))
	if key == "" || o.HasProject(key) {
		return key, nil
	}
	err := h.Store.HasProject(ctx, key)
	if err != nil && fault.ClassOf(err) == fault.NotFound {
		return "", o.NoProject(key)
	}
	return key, unread(err)
}

// fresh waits for the index, and says in res when it is behind. With exactly, that is refused.
func (h *Handler) fresh(ctx context.Context, exactly bool, res *trackerv1.SearchWorkItemsResponse) error {
	behind, err := h.Search.Fresh(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, search.ErrBuilding) || ctx.Err() != nil:
		return h.building(err)
	}
	late := "the search index is behind the writes: what changed last may be missing"
	if behind >= 0 {
		late = fmt.Sprintf("the search index is %d changes behind the writes: what changed last may be missing", behind)
	}
	if exactly {
		return fault.New(fault.Unavailable, "%s; ask again in a moment, or without min_position", late).WithField("min_position").WithReason("BEHIND").WithCause(err)
	}
	missing(res, late)
	return nil
}

// building says that an index that is being built answers nothing, which must not be taken for there being nothing.
func (h *Handler) building(err error) error {
	if !errors.Is(err, search.ErrBuilding) {
		return unread(err)
	}
	progress := h.Search.Progress()
	return fault.New(fault.Unavailable, "the search index is being built, %d of about %d items are in it: ask again in a moment, and do not conclude that there is nothing; "+
		"list_work_items answers meanwhile", progress.Read, max(progress.Items, progress.Read)).WithReason("INDEX_BUILDING")
}

func unread(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := fault.As(err); ok {
		return err
	}
	return fault.New(fault.Unavailable, "the search could not be made: do not conclude that there is nothing").WithCause(err)
}

func missing(res *trackerv1.SearchWorkItemsResponse, what string) {
	res.Complete = false
	if res.GetIncomplete() != "" {
		res.Incomplete += "; "
	}
	res.Incomplete += what
}

// matches shows what was found: items by their keys, then by their words.
func (h *Handler) matches(ctx context.Context, q search.Query, keyed []uuid.UUID, found search.Result, limit int, res *trackerv1.SearchWorkItemsResponse) error {
	shown := make([]uuid.UUID, 0, limit+spareMatches)
	shown = append(shown, keyed[:min(len(keyed), limit)]...)
	top := float32(0)
	for _, hit := range found.Hits {
		top = max(top, hit.Score)
		shown = append(shown, hit.ID)
	}
	rows, err := h.Store.Matches(ctx, shown, q.Project, q.OpenOnly)
	if err != nil {
		return unread(err)
	}
	// What the index has not seen go, or finish, or move.
	stale := len(shown) - len(rows)
	res.Total = int32(max(len(keyed)+found.Total-stale, len(rows)))
	add := func(id uuid.UUID, score float32, byKey bool) {
		row, there := rows[id]
		if !there || len(res.GetMatches()) == limit {
			return
		}
		m := &trackerv1.WorkMatch{
			Key: row.Key(), Id: id.String(), Title: row.Title, Status: row.Status, Assignee: row.Assignee, Score: float64(score), FoundIn: "key", Snippet: row.Title,
		}
		if !byKey {
			m.Snippet, m.FoundIn = excerpt(row, found.Weights)
		}
		res.Matches = append(res.Matches, m)
	}
	for i, id := range keyed[:min(len(keyed), limit)] {
		add(id, top+float32(len(keyed)-i), true)
	}
	for _, hit := range found.Hits {
		add(hit.ID, hit.Score, false)
	}
	res.Count = int32(len(res.GetMatches()))
	return nil
}

// excerpt answers the part of an item's text that holds most of what was looked for, and where that is. Of equal parts it is the first.
func excerpt(row store.Match, weights map[string]float32) (snippet, in string) {
	snippet, most := words.Snippet(row.Title, weights)
	in = "title"
	consider := func(text, where string) {
		if s, worth := words.Snippet(text, weights); worth > most {
			snippet, most, in = s, worth, where
		}
	}
	consider(row.Body, "body")
	for _, comment := range row.Comments {
		consider(comment, "comment")
	}
	return snippet, in
}

// What makes a title similar to another item: how much of the score that its own words would have, and how long that may take to find.
const (
	similarScore = 0.55
	similarShown = 3
	similarTime  = 50 * time.Millisecond
)

// similar answers open items of a project that may be about what a title says. It is a help to whoever files, so it answers none rather
// than keep anybody waiting.
func (h *Handler) similar(ctx context.Context, project, title string) []*trackerv1.SimilarItem {
	if h.Search == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, similarTime)
	defer cancel()
	found, err := h.Search.Search(ctx, search.Query{Text: title, Project: project, OpenOnly: true, Limit: similarShown, Whole: true})
	if err != nil {
		return nil
	}
	var ids []uuid.UUID
	for _, hit := range found.Hits {
		if hit.Score >= similarScore*found.Ideal {
			ids = append(ids, hit.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := h.Store.Matches(ctx, ids, project, true)
	if err != nil {
		return nil
	}
	var similar []*trackerv1.SimilarItem
	for _, id := range ids {
		if row, there := rows[id]; there {
			similar = append(similar, &trackerv1.SimilarItem{Key: row.Key(), Title: row.Title, Status: row.Status})
		}
	}
	return similar
}
