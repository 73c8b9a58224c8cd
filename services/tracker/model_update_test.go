package tracker_test

import (
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// applied answers a set as a change of it leaves it.
func applied(set map[string]bool, c *trackerv1.SetChange, id func(string) string) map[string]bool {
	next := map[string]bool{}
	if !c.GetClear() && len(c.GetSet()) == 0 {
		maps.Copy(next, set)
	}
	for _, member := range slices.Concat(c.GetSet(), c.GetAdd()) {
		next[id(member)] = true
	}
	for _, member := range c.GetRemove() {
		delete(next, id(member))
	}
	return next
}

// update changes an item, all of it or nothing.
func (m *reference) update(by principal, req *trackerv1.UpdateWorkItemRequest) (v verdict) {
	was := m.named(req.GetItem())
	is := was.clone()
	v.unless(!was.trashed(), fault.Invalid)
	v.unless(req.IfMatch == nil || req.GetIfMatch() == was.version, fault.StaleVersion)
	if req.Title != nil {
		is.title = req.GetTitle()
	}
	if req.Body != nil {
		is.body = req.GetBody()
	}
	if req.Priority != nil {
		is.priority = req.GetPriority()
	}
	if req.Due != nil {
		is.due = req.GetDue()
	}
	if req.Start != nil {
		is.start = req.GetStart()
	}
	if req.Points != nil {
		is.points = req.Points
	}
	if slices.Contains(req.GetClear(), "points") {
		is.points = nil
	}
	if len(req.GetLabels()) > 0 {
		is.labels = applied(nil, &trackerv1.SetChange{Set: req.GetLabels()}, strings.ToLower)
	}
	if slices.Contains(req.GetClear(), "labels") {
		clear(is.labels)
	}
	if value, given := req.GetFields().GetFields()["size"]; given {
		n := value.GetNumberValue()
		v.unless(n >= 0 && n <= 10 && n == math.Trunc(n), fault.Invalid) // never rounded
		if is.size = &n; isNull(value) {
			is.size = nil
		}
	}
	if req.RoutingUnit != nil {
		is.unit = req.GetRoutingUnit()
		v.unless(is.unit == was.unit || by.person() || by.leads(was.project), fault.Forbidden)
	}
	if c := req.GetCollaborators(); c != nil {
		is.helpers = applied(was.helpers, c, strings.ToLower)
	}
	if req.Watch != nil {
		v.unless(by.seat != "", fault.Invalid)
		delete(is.watchers, by.seat)
		delete(is.muted, by.seat)
		map[bool]map[string]bool{true: is.watchers, false: is.muted}[req.GetWatch()][by.seat] = true
	}
	if req.Assignee != nil && req.GetAssignee() != was.assignee {
		is.assignee = req.GetAssignee()
		if by.kind == "agent" {
			v.unless(was.handed < 8, fault.ReassignmentBudget)
			is.handed++
		}
		is.hears(is.assignee)
	}
	if req.GetChecklist() != nil {
		v.unless(is.steps(req.GetChecklist()), fault.Invalid)
	}
	if req.Parent != nil {
		m.hang(&v, is, req.GetParent())
	}
	k := m.knot(&v, is, req)
	if len(v.refused) > 0 {
		return v
	}
	if req.Status != nil && req.GetStatus() != was.status {
		is.enters(req.GetStatus(), m.now)
	}
	fields := changed(was, is)
	if len(k.blocking)+len(k.freed) > 0 {
		fields = append(fields, "blocking")
	}
	if !maps.Equal(k.links, m.links) {
		fields = append(fields, "linked")
	}
	if len(fields) == 0 {
		v.unchanged = true
		return v
	}
	is.version++
	is.touched(by, m.now)
	slices.Sort(fields)
	is.record(by, fields, kindsOf(fields)...)
	*was = *is
	m.tie(by, was, k)
	return v
}

func isNull(value *structpb.Value) bool {
	_, null := value.GetKind().(*structpb.Value_NullValue)
	return null
}

// steps makes a gesture on checklists, or answers that it names nothing.
func (w *work) steps(g *trackerv1.ChecklistGesture) bool {
	list := func(name string) *checklist {
		at := slices.IndexFunc(w.lists, func(l checklist) bool { return l.name == name })
		if at < 0 {
			return nil
		}
		return &w.lists[at]
	}
	at := func(name string) (*checklist, int) {
		for n := range w.lists {
			if s := slices.IndexFunc(w.lists[n].steps, func(s step) bool { return s.name == name }); s >= 0 {
				return &w.lists[n], s
			}
		}
		return nil, 0
	}
	switch g := g.GetGesture().(type) {
	case *trackerv1.ChecklistGesture_AddList:
		l := checklist{name: g.AddList.GetName()}
		for _, name := range g.AddList.GetItems() {
			l.steps = append(l.steps, step{name: name})
		}
		w.lists = append(w.lists, l)
		return len(w.lists) <= 16
	case *trackerv1.ChecklistGesture_RemoveList:
		n := len(w.lists)
		w.lists = slices.DeleteFunc(w.lists, func(l checklist) bool { return l.name == g.RemoveList.GetList() })
		return len(w.lists) < n
	case *trackerv1.ChecklistGesture_AddItem:
		l := list(g.AddItem.GetList())
		if l != nil {
			l.steps = append(l.steps, step{name: g.AddItem.GetName(), assignee: g.AddItem.GetAssignee()})
		}
		return l != nil
	case *trackerv1.ChecklistGesture_RemoveItem:
		l, n := at(g.RemoveItem.GetItem())
		if l != nil {
			l.steps = slices.Delete(l.steps, n, n+1)
		}
		return l != nil
	case *trackerv1.ChecklistGesture_SetDone:
		l, n := at(g.SetDone.GetItem())
		if l != nil {
			l.steps[n].done = g.SetDone.GetDone()
		}
		return l != nil
	case *trackerv1.ChecklistGesture_AssignItem:
		l, n := at(g.AssignItem.GetItem())
		if l != nil {
			l.steps[n].assignee = g.AssignItem.GetAssignee()
		}
		return l != nil
	default:
		return false
	}
}

// edges are what an update does to relations.
type edges struct {
	waits, unwaits  []string // of the item: for whom it waits since now, for whom no longer
	blocking, freed []string // who waits for the item since now, who no longer
	links           map[[2]string]bool
}

func pair(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// knot decides about the relations of an update; is gets those that are its own.
func (m *reference) knot(v *verdict, is *work, req *trackerv1.UpdateWorkItemRequest) (k edges) {
	id := func(name string) string { return m.named(name).id }
	takes := func(other string) { v.unless(other != is.id && !m.items[other].trashed(), fault.Invalid) }
	differ := func(was map[string]bool, c *trackerv1.SetChange) (next map[string]bool, added, gone []string) {
		next = applied(was, c, id)
		for _, other := range slices.Sorted(maps.Keys(next)) {
			if !was[other] {
				takes(other)
				added = append(added, other)
			}
		}
		for other := range was {
			if !next[other] {
				gone = append(gone, other)
			}
		}
		return next, added, gone
	}
	k.links = maps.Clone(m.links)
	if c := req.GetWaitingOn(); c != nil {
		is.waits, k.waits, k.unwaits = differ(is.waits, c)
		is.waited = is.waited || len(k.waits) > 0
	}
	if c := req.GetBlocking(); c != nil {
		waiting := map[string]bool{}
		for _, w := range m.items {
			if w.waits[is.id] {
				waiting[w.id] = true
			}
		}
		_, k.blocking, k.freed = differ(waiting, c)
	}
	if c := req.GetLinked(); c != nil {
		linked := map[string]bool{}
		for p := range m.links {
			if p[0] == is.id {
				linked[p[1]] = true
			} else if p[1] == is.id {
				linked[p[0]] = true
			}
		}
		_, added, gone := differ(linked, c)
		for _, other := range added {
			k.links[pair(is.id, other)] = true
		}
		for _, other := range gone {
			delete(k.links, pair(is.id, other))
		}
	}
	if req.DuplicateOf != nil {
		to := ""
		if req.GetDuplicateOf() != "" {
			if to = id(req.GetDuplicateOf()); to != is.duplicate {
				takes(to)
			}
		}
		is.duplicate = to
	}
	return k
}

// tie writes the other ends of relations, each of which hears of it in its own history.
func (m *reference) tie(by principal, is *work, k edges) {
	m.links = k.links
	for _, other := range slices.Concat(k.waits, k.unwaits) {
		m.items[other].record(by, []string{"blocking"}, "relations")
	}
	for _, other := range k.blocking {
		m.items[other].waits[is.id], m.items[other].waited = true, true
		m.items[other].record(by, []string{"waiting_on"}, "relations")
	}
	for _, other := range k.freed {
		delete(m.items[other].waits, is.id)
		m.items[other].record(by, []string{"waiting_on"}, "relations")
	}
}

// comment posts to a thread; id is the comment's, once it stands.
func (m *reference) comment(by principal, req *trackerv1.CommentOnWorkItemRequest) (v verdict, stands func(id string)) {
	w := m.named(req.GetItem())
	v.unless(!w.trashed(), fault.Invalid)
	v.unless(req.GetAsk() == "" || req.GetAsk() != by.seat, fault.Invalid)
	question := w.answered(&v, by, req)
	if question != nil && req.GetChoice() != "" {
		v.unless(slices.Contains(question.options, req.GetChoice()), fault.Invalid)
	}
	v.unless(question != nil || req.GetChoice() == "", fault.Invalid)
	return v, func(id string) {
		r := &remark{id: id, author: by.name, kind: by.kind, seat: by.seat, body: req.GetBody(), asked: req.GetAsk(), choice: req.GetChoice(), at: m.now}
		for _, o := range req.GetDecision().GetOptions() {
			r.options = append(r.options, o.GetId())
		}
		if question != nil {
			question.answer, r.answers = r, question.id
		}
		w.thread = append(w.thread, r)
		w.touched(by, m.now)
		w.hears(by.seat)
		w.hears(req.GetAsk())
		w.record(by, nil, "comment")
	}
}

// answered is the question that a comment answers: the one it names, or the only one that waits for its author.
func (w *work) answered(v *verdict, by principal, req *trackerv1.CommentOnWorkItemRequest) *remark {
	if req.GetAnswers() != "" {
		at := slices.IndexFunc(w.thread, func(r *remark) bool { return r.id == req.GetAnswers() && r.asked != "" })
		if at < 0 {
			v.refused = append(v.refused, fault.Invalid)
			return nil
		}
		q := w.thread[at]
		v.unless(q.answer == nil, fault.AlreadyAnswered)
		v.unless(by.person() || by.seat == q.asked, fault.Forbidden)
		return q
	}
	if req.GetAsk() != "" {
		return nil
	}
	mine := slices.DeleteFunc(w.openAsks(), func(r *remark) bool { return by.seat == "" || r.asked != by.seat })
	v.unless(len(mine) <= 1, fault.Invalid)
	if len(mine) == 1 {
		return mine[0]
	}
	return nil
}

// claim takes an item to work on, or gives it back.
func (m *reference) claim(by principal, req *trackerv1.ClaimWorkItemRequest) (v verdict, got *work) {
	w := m.next(by, req.GetProject())
	if req.GetItem() != "" {
		w = m.named(req.GetItem())
	}
	if w == nil {
		v.unchanged = true
		return v, nil
	}
	v.unless(!w.trashed(), fault.Invalid)
	others := w.live(m.now) && !w.heldBy(by, m.now)
	if req.GetRelease() {
		v.unless(!others || by.person(), fault.Conflict)
		if v.unchanged = !w.live(m.now); len(v.refused) == 0 && !v.unchanged {
			w.holder = ""
			w.record(by, []string{}, "released")
		}
		return v, w
	}
	v.unless(w.open() && !others && (w.assignee == "" || w.assignee == by.seat), fault.Conflict)
	until := m.now.Add(minutes(req))
	if v.unchanged = w.heldBy(by, m.now) && w.until.Equal(until); len(v.refused) == 0 && !v.unchanged {
		w.holder, w.holderKind, w.until = by.name, by.kind, until
		w.record(by, []string{}, "claimed")
	}
	return v, w
}
