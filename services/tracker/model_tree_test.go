package tracker_test

import (
	"cmp"
	"slices"
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func minutes(req *trackerv1.ClaimWorkItemRequest) time.Duration {
	return time.Duration(cmp.Or(req.GetMinutes(), 30)) * time.Minute
}

// ready: it is open, waits for nothing, is theirs or nobody's, and nobody else works on it.
func (m *reference) ready(w *work, by principal) bool {
	return w.open() && !w.trashed() && !m.blocked(w) && (w.assignee == "" || w.assignee == by.seat) && (!w.live(m.now) || w.heldBy(by, m.now))
}

// next is the item that somebody gets who asks for any: the most urgent, then the one due first, then the oldest; never one that they have
// claimed already.
func (m *reference) next(by principal, project string) *work {
	var first *work
	for _, w := range m.items {
		if w.project != project || !m.ready(w, by) || w.live(m.now) {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(urgency[first.priority], urgency[w.priority]), cmp.Compare(dueOrNever(w), dueOrNever(first)),
			w.created.Compare(first.created), cmp.Compare(w.id, first.id)) < 0 {
			first = w
		}
	}
	return first
}

var urgency = map[string]int{"none": 0, "low": 1, "normal": 2, "high": 3, "urgent": 4}

func dueOrNever(w *work) string { return cmp.Or(w.due, "9999") }

func (m *reference) depth(w *work) int {
	if w.parent == "" {
		return 1
	}
	return m.depth(m.items[w.parent]) + 1
}

// below answers everything below an item, the trash included.
func (m *reference) below(w *work) (all []*work) {
	for _, c := range m.items {
		if c.parent == w.id {
			all = append(append(all, c), m.below(c)...)
		}
	}
	return all
}

// levels is how many levels of items stand below some depth.
func (m *reference) levels(items []*work, depth int) (levels int) {
	for _, w := range items {
		levels = max(levels, m.depth(w)-depth)
	}
	return levels
}

// hang puts is, a draft, below another item of its project; an empty name is the top.
func (m *reference) hang(v *verdict, is *work, name string) {
	if name == "" {
		is.parent = ""
		return
	}
	p := m.named(name)
	v.unless(!p.trashed() && p.project == is.project, fault.Invalid)
	if p.id == is.parent {
		return
	}
	below := m.below(is)
	inside := p.id == is.id || slices.ContainsFunc(below, func(w *work) bool { return w.id == p.id })
	v.unless(!inside && m.depth(p)+1+m.levels(below, m.depth(is)) <= 7, fault.Invalid)
	is.parent = p.id
}

// alter makes one change of a gesture, in its own row of history.
func (m *reference) alter(w *work, by principal, kind string, also []string, change func(w *work)) {
	was := w.clone()
	change(w)
	w.version++
	w.touched(by, m.now)
	fields := append(changed(was, w), also...)
	slices.Sort(fields)
	w.record(by, slices.Compact(fields), kind)
}

// remove puts an item into the trash, with everything below it if that is wanted.
func (m *reference) remove(by principal, req *trackerv1.RemoveWorkItemRequest) (v verdict) {
	w := m.named(req.GetItem())
	if w.trashed() {
		v.unchanged = true
		return v
	}
	live := slices.DeleteFunc(m.below(w), (*work).trashed)
	v.unless(req.GetSubtree() || !slices.ContainsFunc(live, (*work).open), fault.Invalid)
	if len(v.refused) > 0 {
		return v
	}
	going := []*work{w}
	if req.GetSubtree() {
		going = append(going, live...)
	}
	for _, one := range going {
		m.alter(one, by, "removed", nil, func(one *work) {
			one.holder = ""
			one.with, one.removed, one.removedBy, one.removedKind = w.id, m.now, by.name, by.kind
		})
	}
	return v
}

// restore brings back exactly what a removal took.
func (m *reference) restore(by principal, req *trackerv1.RestoreWorkItemRequest) (v verdict) {
	w := m.named(req.GetItem())
	v.unless(w.with == w.id, fault.Invalid)
	if len(v.refused) > 0 {
		return v
	}
	for _, one := range m.items {
		if one.with != w.id {
			continue
		}
		m.alter(one, by, "restored", nil, func(one *work) {
			one.with, one.removed, one.removedBy, one.removedKind = "", time.Time{}, "", ""
			if one == w && w.parent != "" && m.items[w.parent].trashed() {
				one.parent = ""
			}
		})
	}
	return v
}

// move brings an item at the top to another project, with everything below it. The keys are the answer's to say.
func (m *reference) move(by principal, req *trackerv1.MoveWorkItemRequest) (v verdict, moved []*work) {
	w := m.named(req.GetItem())
	v.unless(!w.trashed(), fault.Invalid)
	if w.project == req.GetProject() {
		v.unchanged = true
		return v, nil
	}
	below := m.below(w)
	v.unless(w.parent == "" && !slices.ContainsFunc(below, (*work).trashed), fault.Invalid)
	v.unless(by.person() || by.leads(w.project), fault.Forbidden)
	if len(v.refused) > 0 {
		return v, nil
	}
	from := w.project
	for _, one := range append(below, w) {
		m.alter(one, by, "moved", nil, func(one *work) {
			one.former = append([]string{one.key}, one.former...)
			one.project = req.GetProject()
			if one.unit == unitOf[from] {
				one.unit = unitOf[req.GetProject()]
			}
		})
		m.order[from] = slices.DeleteFunc(m.order[from], func(id string) bool { return id == one.id })
	}
	return v, append(below, w)
}

// merge closes a duplicate in favour of another item.
func (m *reference) merge(by principal, req *trackerv1.MergeWorkItemRequest) (v verdict) {
	x, into := m.named(req.GetItem()), m.named(req.GetInto())
	v.unless(x != into, fault.Invalid)
	var children, moving []*work
	for _, c := range m.items {
		if req.MoveSubtasks == nil && c.parent == x.id && !c.trashed() {
			children = append(children, c)
			moving = append(append(moving, c), m.below(c)...)
		}
	}
	if len(moving) > 0 {
		v.unless(x.project == into.project && !slices.Contains(moving, into) && m.depth(into)+m.levels(moving, m.depth(x)) <= 7, fault.Invalid)
	}
	if len(v.refused) == 0 && x.mergedIn == into.id {
		v.unchanged = true
		return v
	}
	v.unless(!x.trashed() && !into.trashed(), fault.Invalid)
	v.unless(x.mergedIn == "" && into.mergedIn == "", fault.Conflict)
	if len(v.refused) > 0 {
		return v
	}
	kind := "relations"
	if x.open() {
		kind = "status"
	}
	m.alter(x, by, kind, []string{"duplicates"}, func(x *work) {
		x.duplicate, x.holder = into.id, ""
		if x.open() {
			x.enters("cancelled", m.now)
		}
		x.mergedIn = into.id
	})
	for _, c := range children {
		m.alter(c, by, "reparented", nil, func(c *work) { c.parent = into.id })
	}
	return v
}

// place puts an item directly beside another one in their project's own order. It moves no version; a new lane does.
func (m *reference) place(by principal, req *trackerv1.PlaceWorkItemRequest) (v verdict, lane bool) {
	w := m.named(req.GetItem())
	v.unless(!w.trashed(), fault.Invalid)
	v.unless(req.GetIfMatch() == w.version, fault.StaleVersion)
	n := m.named(cmp.Or(req.GetBefore(), req.GetAfter()))
	fits := n != w && n.project == w.project && !n.trashed()
	lane = req.GetStatus() != "" && req.GetStatus() != w.status
	v.unless(fits || req.GetStatus() != "", fault.Invalid)
	if len(v.refused) > 0 {
		return v, lane
	}
	if fits {
		order := slices.DeleteFunc(m.order[w.project], func(id string) bool { return id == w.id })
		at := slices.Index(order, n.id)
		if req.GetAfter() != "" {
			at++
		}
		m.order[w.project] = slices.Insert(order, at, w.id)
	}
	if lane {
		m.alter(w, by, "status", nil, func(w *work) { w.enters(req.GetStatus(), m.now) })
		w.rows[len(w.rows)-1].fields = nil // with the rank
	}
	return v, lane
}
