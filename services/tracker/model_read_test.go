package tracker_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// lisbon is the company's zone: days and what is overdue are cut at its midnight.
var lisbon = func() *time.Location {
	zone, err := time.LoadLocation("Europe/Lisbon")
	if err != nil {
		panic(err)
	}
	return zone
}()

func (m *reference) overdue(w *work) bool {
	return w.open() && w.due != "" && w.due < m.now.In(lisbon).Format(time.DateOnly)
}

// sorted are all items in an order of ids.
func (m *reference) sorted() []*work {
	return slices.SortedFunc(maps.Values(m.items), func(a, b *work) int { return cmp.Compare(a.id, b.id) })
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func members(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// shown is an item as get_work_item shows it, its sets sorted, without what the reference leaves open.
func (m *reference) shown(w *work) *trackerv1.WorkItem {
	i := &trackerv1.WorkItem{
		Id: w.id, Key: w.key, FormerKeys: w.former, Project: w.project, Type: "task", Title: w.title, Body: &w.body, Status: w.status, StatusGroup: group(w.status),
		Priority: w.priority, Reporter: w.reporter, Assignee: w.assignee, Parent: w.parent, Due: w.due, Overdue: m.overdue(w), Start: w.start, Points: w.points,
		Watchers: members(w.watchers), Muted: members(w.muted), Collaborators: members(w.helpers), Labels: members(w.labels),
		Reassignments: w.handed, Version: w.version, Reopens: w.reopens, Depth: int32(m.depth(w)), OpenAsks: int32(len(w.openAsks())),
		CreateTime: stamp(w.created), UpdateTime: stamp(w.updated), StatusTime: stamp(w.entered), DoneTime: stamp(w.done), CloseTime: stamp(w.closed),
		FiledUnit: w.filed, RoutingUnit: w.unit, Blocked: m.blocked(w), Flags: m.flags(w),
	}
	for id := range w.waits {
		b := m.items[id]
		i.WaitingOn = append(i.WaitingOn, &trackerv1.WaitingOn{Item: b.key, Open: b.open() && !b.trashed(), OneSidedFinal: b.trashed()})
	}
	if w.live(m.now) {
		i.Claim = &trackerv1.Claim{Holder: w.holder, ExpireTime: stamp(w.until)}
	}
	if w.trashed() {
		i.Removal = &trackerv1.Removal{Actor: w.removedBy, ActorKind: w.removedKind, RemoveTime: stamp(w.removed)}
		if w.with != w.id {
			i.Removal.RemovedWith = m.items[w.with].key
		}
	}
	for _, l := range w.lists {
		c := &trackerv1.Checklist{Name: l.name}
		for _, s := range l.steps {
			c.Items = append(c.Items, &trackerv1.ChecklistItem{Name: s.name, Done: s.done, Assignee: s.assignee})
		}
		i.Checklists = append(i.Checklists, c)
	}
	if w.size != nil {
		i.Fields = &structpb.Struct{Fields: map[string]*structpb.Value{"size": structpb.NewNumberValue(*w.size)}}
	}
	if w.duplicate != "" {
		i.DuplicateOf = m.items[w.duplicate].key
	}
	for _, c := range m.items {
		if c.parent == w.id && !c.trashed() {
			i.SubtaskCount++
		}
	}
	return settled(i)
}

// settled sorts the sets of an item and drops what the reference leaves open.
func settled(i *trackerv1.WorkItem) *trackerv1.WorkItem {
	i = proto.CloneOf(i)
	for _, set := range [][]string{i.GetWatchers(), i.GetMuted(), i.GetCollaborators(), i.GetLabels(), i.GetFlags()} {
		slices.Sort(set)
	}
	slices.SortFunc(i.GetWaitingOn(), func(a, b *trackerv1.WaitingOn) int { return cmp.Compare(a.GetItem(), b.GetItem()) })
	for _, c := range i.GetChecklists() {
		c.Id = ""
		for _, s := range c.GetItems() {
			s.Id = ""
		}
	}
	if len(i.GetFields().GetFields()) == 0 {
		i.Fields = nil
	}
	i.Rank, i.BodyBytes, i.BodyVersion = "", 0, 0
	return i
}

// flags say what is odd: waiting in a circle, and waiting for what is in the trash.
func (m *reference) flags(w *work) (flags []string) {
	reached := map[string]bool{}
	var follow func(w *work)
	follow = func(w *work) {
		for id := range w.waits {
			if b := m.items[id]; b.open() && !b.trashed() && !reached[id] {
				reached[id] = true
				follow(b)
			}
		}
	}
	follow(w)
	if reached[w.id] {
		flags = append(flags, "cycle")
	}
	for id := range w.waits {
		if m.items[id].trashed() {
			return append(flags, "one_sided_final")
		}
	}
	return flags
}

// ties are an item's links in both directions, as kind and the other's key.
func (m *reference) ties(w *work) []string {
	var ties []string
	for _, o := range m.items {
		if w.waits[o.id] {
			ties = append(ties, "waiting_on "+o.key)
		}
		if o.waits[w.id] {
			ties = append(ties, "blocking "+o.key)
		}
		if o != w && m.links[pair(w.id, o.id)] {
			ties = append(ties, "linked "+o.key)
		}
		if w.duplicate == o.id {
			ties = append(ties, "duplicates "+o.key)
		}
		if o.duplicate == w.id {
			ties = append(ties, "duplicated_by "+o.key)
		}
	}
	slices.Sort(ties)
	return ties
}

// listed are the keys that a list answers, in its order.
func (m *reference) listed(by principal, req *trackerv1.ListWorkItemsRequest) []string {
	var rows []*work
	for _, w := range m.sorted() {
		if m.matches(w, by, req) {
			rows = append(rows, w)
		}
	}
	sort := cmp.Or(req.GetSort(), map[string]string{"my_queue": "-priority", "triage": "created", "overdue": "due", "ready": "-priority"}[req.GetPreset()],
		map[bool]string{true: "-removed", false: "-updated"}[req.GetRemoved()])
	slices.SortFunc(rows, m.by(sort))
	keys := make([]string, 0, len(rows))
	for _, w := range rows {
		keys = append(keys, w.key)
	}
	return keys
}

func (m *reference) matches(w *work, by principal, req *trackerv1.ListWorkItemsRequest) bool {
	me := func(handle string) string {
		if handle == "me" {
			return by.seat
		}
		return handle
	}
	// What a call says goes before what its preset says of the same.
	assignee := cmp.Or(req.GetAssignee(), map[string]string{"my_queue": "me", "triage": "nobody"}[req.GetPreset()])
	open := req.GetOpenOnly() || len(req.GetStatus()) == 0 && slices.Contains([]string{"my_queue", "triage", "blocked"}, req.GetPreset())
	holds := []bool{
		w.trashed() == req.GetRemoved(),
		req.GetProject() == "" || w.project == req.GetProject(),
		len(req.GetStatus()) == 0 || slices.Contains(req.GetStatus(), w.status),
		!open || w.open(),
		assignee == "" || w.assignee == map[bool]string{true: "", false: me(assignee)}[assignee == "nobody"],
		req.GetReporter() == "" || w.reporter == me(req.GetReporter()),
		req.GetWatcher() == "" || w.watchers[me(req.GetWatcher())],
		req.GetLabel() == "" || w.labels[req.GetLabel()],
		req.GetParent() == "" || w.parent == m.named(req.GetParent()).id,
		len(req.GetPriority()) == 0 || slices.Contains(req.GetPriority(), w.priority),
		req.GetText() == "" || says(w.title, req.GetText()),
		req.GetFieldFilters() == nil || w.size != nil && *w.size >= 3,
		req.GetPreset() != "blocked" || m.blocked(w),
		req.GetPreset() != "overdue" || m.overdue(w),
		req.GetPreset() != "ready" || m.ready(w, by),
	}
	return !slices.Contains(holds, false)
}

// says reports whether a title holds a text. One or two letters are looked for at the beginnings of words.
func says(title, text string) bool {
	title, text = strings.ToLower(title), strings.ToLower(text)
	if len(text) < 3 {
		return strings.Contains(" "+title, " "+text)
	}
	return strings.Contains(title, text)
}

// by is an order of lists: what has no value comes last both ways, the newest first; ids decide between equals, in the same direction.
func (m *reference) by(sort string) func(a, b *work) int {
	key, falling := strings.CutPrefix(sort, "-")
	direction := map[bool]int{true: -1, false: 1}[falling]
	compare := func(a, b *work) int {
		switch key {
		case "updated":
			return a.updated.Compare(b.updated)
		case "created":
			return a.created.Compare(b.created)
		case "removed":
			return a.removed.Compare(b.removed)
		case "title":
			return cmp.Compare(strings.ToLower(a.title), strings.ToLower(b.title))
		case "due":
			return cmp.Compare(a.due, b.due)
		case "f.size":
			return cmp.Compare(*a.size, *b.size)
		case "rank":
			return cmp.Compare(slices.Index(m.order[a.project], a.id), slices.Index(m.order[b.project], b.id))
		default:
			return cmp.Compare(urgency[a.priority], urgency[b.priority])
		}
	}
	absent := func(w *work) bool {
		return key == "due" && w.due == "" || key == "priority" && w.priority == "none" || key == "f.size" && w.size == nil
	}
	return func(a, b *work) int {
		switch {
		case absent(a) && absent(b):
			return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.id, a.id))
		case absent(a):
			return 1
		case absent(b):
			return -1
		default:
			return direction * cmp.Or(compare(a, b), cmp.Compare(a.id, b.id))
		}
	}
}
