package tracker_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// principal is somebody who acts in the property test.
type principal struct {
	name, kind, seat string
	as               func(ctx context.Context) context.Context
}

func (p principal) person() bool { return p.kind != "agent" }

// leads reports whether they lead a project's unit.
func (p principal) leads(project string) bool { return p.seat == "ops-lead" && project == "OPS" }

var principals = []principal{
	{"ops-lead", "agent", "ops-lead", func(ctx context.Context) context.Context { return seat(ctx, "ops-lead") }},
	{"designer", "agent", "designer", func(ctx context.Context) context.Context { return seat(ctx, "designer") }},
	{"ines", "human", "ines", func(ctx context.Context) context.Context { return person(ctx, "ines") }},
	{"ci", "operator", "", func(ctx context.Context) context.Context { return token(ctx, "ci") }},
}

// reference is what the specification says that stands after a few gestures. It is written from its sentences and knows nothing of the
// tracker's code: slow, in one piece, and without any database.
type reference struct {
	now   time.Time
	items map[string]*work
	// links are pairs of ids, the lesser one first.
	links map[[2]string]bool
	// order is each project's own, the trash included.
	order map[string][]string
}

func newReference(now time.Time) *reference {
	return &reference{now: now, items: map[string]*work{}, links: map[[2]string]bool{}, order: map[string][]string{}}
}

// work is an item.
type work struct {
	id, key, project, filed, unit          string
	former                                 []string
	title, body, status, priority          string
	assignee, reporter, parent, duplicate  string
	due, start                             string
	points                                 *float64
	size                                   *float64 // a custom field
	labels, helpers, watchers, muted       map[string]bool
	lists                                  []checklist
	handed, reopens, version               int32
	created, updated, entered              time.Time
	done, closed                           time.Time
	holder, holderKind                     string
	until                                  time.Time
	waits                                  map[string]bool // for whom now
	waited                                 bool            // ever
	removedBy, removedKind, with, mergedIn string
	removed                                time.Time
	rows                                   []row
	thread                                 []*remark
}

type checklist struct {
	name  string
	steps []step
}

type step struct {
	name, assignee string
	done           bool
}

// remark is a comment.
type remark struct {
	id, author, kind, seat string
	body, asked            string
	options                []string
	answers, choice        string
	answer                 *remark // to this one
	at                     time.Time
}

func (r *remark) open() bool { return r.asked != "" && r.answer == nil }

// row is a row of history.
type row struct {
	kinds            []string // one of these
	actor, actorKind string
	version, handed  int32
	fields           []string // nil for whatever
	project          string
}

func group(status string) string {
	switch status {
	case "in_progress", "in_review":
		return "active"
	case "done", "cancelled":
		return "done"
	case "closed":
		return "closed"
	default:
		return "not_started"
	}
}

func (w *work) open() bool    { return group(w.status) == "not_started" || group(w.status) == "active" }
func (w *work) trashed() bool { return w.with != "" }
func (w *work) live(now time.Time) bool {
	return w.holder != "" && now.Before(w.until)
}

func (w *work) heldBy(p principal, now time.Time) bool {
	return w.live(now) && w.holder == p.name && w.holderKind == p.kind
}

func (w *work) openAsks() (open []*remark) {
	for _, r := range w.thread {
		if r.open() {
			open = append(open, r)
		}
	}
	return open
}

// clone is a copy whose sets are its own.
func (w *work) clone() *work {
	c := *w
	for _, set := range []*map[string]bool{&c.labels, &c.helpers, &c.watchers, &c.muted, &c.waits} {
		if *set = maps.Clone(*set); *set == nil {
			*set = map[string]bool{}
		}
	}
	c.lists = slices.Clone(w.lists)
	for n := range c.lists {
		c.lists[n].steps = slices.Clone(c.lists[n].steps)
	}
	return &c
}

// verdict is what must come of a gesture: a refusal of one of some classes, or a change, or nothing because it was so already.
type verdict struct {
	refused   []fault.Class
	unchanged bool
}

func (v *verdict) unless(holds bool, class fault.Class) {
	if !holds {
		v.refused = append(v.refused, class)
	}
}

// named answers the item that a key, a former key or an id names.
func (m *reference) named(name string) *work {
	for _, w := range m.items {
		if w.id == name || strings.EqualFold(w.key, name) || slices.ContainsFunc(w.former, func(k string) bool { return strings.EqualFold(k, name) }) {
			return w
		}
	}
	return nil
}

// blocked: something that it waits for is open. Nobody waits for what is in the trash.
func (m *reference) blocked(w *work) bool {
	for id := range w.waits {
		if b := m.items[id]; b.open() && !b.trashed() {
			return true
		}
	}
	return false
}

// hears makes a seat a watcher, unless it muted the item.
func (w *work) hears(handle string) {
	if handle != "" && !w.muted[handle] {
		w.watchers[handle] = true
	}
}

// enters puts the item into a status. Any may be set.
func (w *work) enters(status string, now time.Time) {
	was, is := group(w.status), group(status)
	finished := func(g string) bool { return g == "done" || g == "closed" }
	w.status, w.entered = status, now
	if finished(is) {
		w.holder = ""
	}
	switch {
	case finished(was) && !finished(is):
		w.reopens++
		w.done, w.closed = time.Time{}, time.Time{}
		w.mergedIn = "" // whatever is taken up again is nobody's duplicate that was closed
	case is == "done":
		w.closed = time.Time{}
		if was != "done" {
			w.done = now
		}
	case is == "closed" && was != "closed":
		w.closed = now
		if w.done.IsZero() {
			w.done = now
		}
	}
}

// touched is what every change does beside.
func (w *work) touched(by principal, now time.Time) {
	w.updated = now
	if by.person() {
		w.handed = 0
	}
	if until := now.Add(30 * time.Minute); w.heldBy(by, now) && until.After(w.until) {
		w.until = until
	}
}

func (w *work) record(by principal, fields []string, kinds ...string) {
	w.rows = append(w.rows, row{kinds: kinds, actor: by.name, actorKind: by.kind, version: w.version, handed: w.handed, fields: fields, project: w.project})
}

// changed names what differs, as history calls it.
func changed(was, is *work) []string {
	differs := map[string]bool{
		"title": was.title != is.title, "status": was.status != is.status, "assignee": was.assignee != is.assignee, "priority": was.priority != is.priority,
		"project": was.project != is.project, "tags": !maps.Equal(was.labels, is.labels), "due": was.due != is.due, "start": was.start != is.start,
		"due_all_day": (was.due == "") != (is.due == ""), "points": !equal(was.points, is.points), "watchers": !maps.Equal(was.watchers, is.watchers),
		"muted": !maps.Equal(was.muted, is.muted), "collaborators": !maps.Equal(was.helpers, is.helpers), "parent": was.parent != is.parent,
		"routing_unit": was.unit != is.unit, "removed_with": was.with != is.with, "waiting_on": !maps.Equal(was.waits, is.waits),
		"fields": !equal(was.size, is.size), "duplicates": was.duplicate != is.duplicate, "body": was.body != is.body,
		"checklists": !slices.EqualFunc(was.lists, is.lists, func(a, b checklist) bool { return a.name == b.name && slices.Equal(a.steps, b.steps) }),
	}
	maps.DeleteFunc(differs, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(differs))
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// kindsOf are the kinds that a change of some fields may have: the most specific one.
func kindsOf(fields []string) []string {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(fields, n) })
	}
	switch {
	case has("status"):
		return []string{"status"}
	case has("assignee"):
		return []string{"assignee"}
	}
	var kinds []string
	for kind, names := range map[string][]string{
		"routed": {"routing_unit"}, "reparented": {"parent"}, "relations": {"waiting_on", "blocking", "linked", "duplicates"},
		"checklist": {"checklists"}, "collaborators": {"collaborators"}, "tags": {"tags"},
	} {
		if has(names...) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		return kinds
	}
	if !slices.ContainsFunc(fields, func(f string) bool { return f != "watchers" && f != "muted" }) {
		return []string{"watchers"}
	}
	return []string{"fields"}
}

// create is the filing of an item; it is called before the answer is known, and file after it.
func (m *reference) create(by principal, req *trackerv1.CreateWorkItemRequest) (v verdict) {
	for _, w := range m.items {
		v.unless(req.GetEvenIfExists() || w.project != req.GetProject() || w.title != req.GetTitle() || !w.open() || w.trashed(), fault.Exists)
	}
	if req.GetParent() != "" {
		p := m.named(req.GetParent())
		v.unless(!p.trashed() && p.project == req.GetProject() && m.depth(p) < 7, fault.Invalid)
	}
	for _, name := range req.GetWaitingOn() {
		v.unless(!m.named(name).trashed(), fault.Invalid)
	}
	v.unless(req.GetAsk() == "" || req.GetAsk() != by.seat, fault.Invalid)
	return v
}

func (m *reference) file(by principal, req *trackerv1.CreateWorkItemRequest, res *trackerv1.CreateWorkItemResponse) {
	w := (&work{
		id: res.GetId(), key: res.GetKey(), project: req.GetProject(), filed: unitOf[req.GetProject()], unit: unitOf[req.GetProject()], title: req.GetTitle(), body: req.GetBody(),
		priority: "none", assignee: req.GetAssignee(), reporter: by.name, due: req.GetDue(), created: m.now, updated: m.now, version: 1,
	}).clone()
	if req.GetPriority() != "" {
		w.priority = req.GetPriority()
	}
	if req.GetParent() != "" {
		w.parent = m.named(req.GetParent()).id
	}
	w.hears(by.seat)
	w.hears(w.assignee)
	w.hears(req.GetAsk())
	m.items[w.id] = w
	m.order[w.project] = append(m.order[w.project], w.id)
	status := "todo"
	if req.GetStatus() != "" {
		status = req.GetStatus()
	}
	w.enters(status, m.now)
	w.reopens = 0
	w.record(by, nil, "created")
	for _, name := range req.GetWaitingOn() {
		b := m.named(name)
		w.waits[b.id], w.waited = true, true
		b.record(by, []string{"blocking"}, "relations")
	}
	if req.GetAsk() != "" {
		w.thread = append(w.thread, &remark{
			id: res.GetCommentId(), author: by.name, kind: by.kind, seat: by.seat, body: w.title, asked: req.GetAsk(), at: m.now,
		})
	}
}

var unitOf = map[string]string{"OPS": "operations", "SHOP": "shop"}
