package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// searchedDays is how far back a whole project is searched for a text.
const searchedDays = 90

// activityCursor is the last row that was shown, or the place up to which there was nothing to show.
type activityCursor struct {
	At int64 `json:"at"`
}

// TaskActivity implements the contract.
func (h *Handler) TaskActivity(ctx context.Context, req *trackerv1.TaskActivityRequest) (*trackerv1.TaskActivityResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	f, err := h.activity(ctx, o, req)
	if err != nil {
		return nil, err
	}
	f.ForAgent = by.Kind == "agent"
	bind, err := activityBind(req, f)
	if err != nil {
		return nil, err
	}
	var cursor activityCursor
	if err := page.Decode(req.GetCursor(), bind, &cursor); err != nil {
		return nil, err
	}
	if f.OldestFirst {
		f.Since = max(f.Since, cursor.At)
		if f.Through, err = h.Store.Settled(ctx); err != nil {
			return nil, err
		}
	} else {
		f.Before = cursor.At
	}
	a, err := h.Store.Activity(ctx, f)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.TaskActivityResponse{Count: int32(len(a.Entries)), More: a.More, Keys: itemNames(a.Keys)}
	for _, e := range a.Entries {
		res.Rows = append(res.Rows, changeFor(by, e, a.Catalogues[e.Project]))
	}
	if next := nextActivity(f, a); next > 0 {
		if res.NextCursor, err = page.Encode(bind, activityCursor{next}); err != nil {
			return nil, err
		}
	}
	return res, fits(res, "give a smaller limit, or narrow it by kinds, actor or time")
}

// nextActivity answers where the next page begins; 0 for nowhere. Who follows goes on from the last row, or from where there was
// nothing more.
func nextActivity(f store.ActivityFilter, a *store.Activity) int64 {
	switch n := len(a.Entries); {
	case n > 0 && a.More:
		return a.Entries[n-1].Position.Sequence
	case f.OldestFirst:
		return max(f.Since, f.Through)
	default:
		return 0
	}
}

// activity reads what is asked for.
func (h *Handler) activity(ctx context.Context, o *org.Org, req *trackerv1.TaskActivityRequest) (store.ActivityFilter, error) {
	f := store.ActivityFilter{
		Kinds: req.GetKinds(), ActorKinds: req.GetActorKinds(), Notified: req.Notified, Text: strings.TrimSpace(req.GetQ()),
		OldestFirst: req.GetOldestFirst(), Limit: req.GetLimit(),
	}
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	if err := h.subject(ctx, req, &f); err != nil {
		return f, err
	}
	for n, kind := range f.Kinds {
		if !slices.Contains(item.Kinds(), kind) {
			return f, fault.New(fault.Invalid, "kinds[%d] is no kind of change: %q; there are %s", n, kind, strings.Join(item.Kinds(), ", ")).
				WithField(fmt.Sprintf("kinds[%d]", n))
		}
	}
	var err error
	if f.Actor, err = h.whoActed(ctx, o, req.GetActor()); err != nil {
		return f, err
	}
	if req.GetAssignee() != "" {
		if f.Assignee, err = h.colleague(ctx, o, "assignee", req.GetAssignee()); err != nil {
			return f, err
		}
	}
	if f.From, err = bound("from", req.GetFrom(), o.Zone, 0); err != nil {
		return f, err
	}
	if f.To, err = bound("to", req.GetTo(), o.Zone, 1); err != nil {
		return f, err
	}
	if f.From != nil && f.To != nil && !f.From.Before(*f.To) {
		return f, fault.New(fault.Invalid, "from is not before to, so nothing could lie between them").WithField("from")
	}
	if f.Since, err = h.place(ctx, "since", req.GetSince()); err != nil {
		return f, err
	}
	return f, h.searchable(ctx, f)
}

// subject finds what the activity is of.
func (h *Handler) subject(ctx context.Context, req *trackerv1.TaskActivityRequest, f *store.ActivityFilter) error {
	if req.GetItem() != "" {
		id, err := h.Store.NamedItem(ctx, req.GetItem())
		f.Item = &id
		return err
	}
	f.Project = strings.ToUpper(req.GetProject())
	return h.Store.HasProject(ctx, f.Project)
}

// whoActed answers a colleague's handle, or the text itself: it may be a token's name, which only the company knows.
func (h *Handler) whoActed(ctx context.Context, o *org.Org, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	handle, err := h.colleague(ctx, o, "actor", text)
	if f, ok := fault.As(err); ok && f.Class == fault.Invalid && f.Reason == reasonNobody {
		return strings.TrimSpace(text), nil
	}
	return handle, err
}

// bound reads a day of the company's calendar or a time. Of a day it answers the beginning, or that of so many days later.
func bound(argument, text string, zone *time.Location, later int) (*time.Time, error) {
	m, err := item.ParseMoment(argument, text)
	if err != nil || m == nil {
		return nil, err
	}
	at := m.At
	if m.AllDay {
		at = query.StartOfDay(m.At.AddDate(0, 0, later), zone)
	}
	return &at, nil
}

// searchable refuses to search a whole project for a text without a bound: what it costs must not grow with the project's age.
func (h *Handler) searchable(ctx context.Context, f store.ActivityFilter) error {
	if f.Text == "" || f.Item != nil {
		return nil
	}
	oldest := h.Now().AddDate(0, 0, -searchedDays)
	if f.From != nil && !f.From.Before(oldest) {
		return nil
	}
	if f.Since > 0 {
		at, err := h.Store.SinceTime(ctx, f.Project, f.Since)
		if err != nil || at == nil || !at.Before(oldest) {
			return err
		}
	}
	return fault.New(fault.Invalid, "q needs an item, or a project with since or from in the last %d days", searchedDays).WithField("q")
}

// activityBind names the rows that a cursor belongs to, names resolved.
func activityBind(req *trackerv1.TaskActivityRequest, f store.ActivityFilter) (string, error) {
	list := proto.CloneOf(req)
	list.Cursor, list.Limit, list.MinPosition, list.Item, list.Project, list.Actor, list.Assignee = "", 0, "", "", f.Project, f.Actor, f.Assignee
	if f.Item != nil {
		list.Item = f.Item.String()
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	return fmt.Sprintf("task_activity %x", raw), err
}

// changeFor answers a row of history as its reader may see it: what fields say that are hidden from agents is not shown to one.
func changeFor(by item.Actor, e store.Entry, c store.Catalogue) *trackerv1.Change {
	if by.Kind == "agent" {
		e.Change.Fields = c.Unhidden(e.Change.Fields)
	}
	return convert.Change(e)
}
