package tracker_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// histories is how many random histories are tried unless -rapid.checks says otherwise.
const histories = 6

// Whatever several principals do in whatever order, every read answers what the specification says.
func TestEveryReadAnswersWhatTheSpecificationSaysOfAnyHistory(t *testing.T) {
	t.Parallel()
	now := newClock()
	b := setupAt(t, now.now)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "size", Name: "Size", Type: "number", Min: ptr(0.0), Max: ptr(10.0)})
	limit := histories
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			limit = math.MaxInt
		}
	})
	tried, failing, operations := 0, false, 0
	rapid.Check(t, func(r *rapid.T) {
		if tried++; tried > limit && !failing {
			return
		}
		done := false
		defer func() { failing = failing || !done }() // whatever failed is tried again until it is as short as can be
		d := &driver{T: r, t: t, b: b, clock: now, operations: &operations}
		d.begin()
		for n := range rapid.IntRange(1, 30).Draw(r, "gestures") {
			d.gesture()
			if n%6 == 5 {
				d.compare(2)
			}
		}
		d.compare(math.MaxInt)
		done = true
	})
	sound(t, b)
}

// driver does the same to the service and to the reference.
type driver struct {
	*rapid.T
	t          *testing.T
	b          bundle
	clock      *clock
	m          *reference
	operations *int
	again      []func()
}

// begin forgets everything that was done before.
func (d *driver) begin() {
	_, err := d.b.pool.Exec(d.t.Context(), `truncate items, former_keys, comments, history, relations, tallies, item_bodies, labels, operations`)
	require.NoError(d, err)
	d.m = newReference(d.clock.now())
	for len(d.m.items) == 0 {
		d.create(principals[0])
	}
}

// agreed compares what came of a gesture with what has to, and answers whether it was done.
func (d *driver) agreed(v verdict, err error, outcome string) bool {
	if len(v.refused) > 0 {
		require.Error(d, err)
		require.Contains(d, v.refused, rpc.FromError(err).Class, rpc.FromError(err).Message)
		return false
	}
	require.NoError(d, err)
	require.Equal(d, v.unchanged, outcome == "unchanged")
	return true
}

// do asks for a write under an operation of its own; what was done may be asked for again later.
func do[Q, A proto.Message](d *driver, by principal, call func(context.Context, Q) (A, error), req Q) (A, error) {
	*d.operations++
	ctx := rpc.WithOperation(by.as(d.t.Context()), fmt.Sprint("property-", *d.operations))
	res, err := call(ctx, req)
	if err == nil {
		d.again = append(d.again, func() {
			same, err := call(ctx, req)
			require.NoError(d, err)
			require.Empty(d, cmp.Diff(kept(res), kept(same), protocmp.Transform()), "the same operation answers the same")
		})
	}
	return res, err
}

func (d *driver) some(label string) *work {
	all := d.m.sorted()
	slices.SortStableFunc(all, func(a, b *work) int { return a.created.Compare(b.created) })
	return all[rapid.IntRange(0, len(all)-1).Draw(d.T, label)]
}

// name is one of an item's names.
func (d *driver) name(w *work) string {
	return rapid.SampledFrom(append([]string{w.key, w.id}, w.former...)).Draw(d.T, "name")
}

func (d *driver) likely(label string) bool { return rapid.IntRange(0, 3).Draw(d.T, label) == 0 }

func pick[T any](d *driver, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(d.T, label)
}

func (d *driver) gesture() {
	d.clock.advance(pick(d, "later by", time.Millisecond, time.Second, time.Minute, 20*time.Minute, 31*time.Minute, 26*time.Hour))
	d.m.now = d.clock.now()
	by := pick(d, "by", principals...)
	switch rapid.IntRange(0, 19).Draw(d.T, "gesture") {
	case 0, 1, 2, 3:
		d.create(by)
	case 4, 5, 6, 7, 8, 9:
		d.update(by)
	case 10, 11:
		d.comment(by)
	case 12, 13:
		d.claim(by)
	case 14:
		req := &trackerv1.MergeWorkItemRequest{Item: d.name(d.some("item")), Into: d.name(d.some("into"))}
		if d.likely("leave subtasks") {
			req.MoveSubtasks = proto.Bool(false)
		}
		v := d.m.merge(by, req)
		res, err := do(d, by, d.b.client.MergeWorkItem, req)
		d.agreed(v, err, res.GetOutcome())
	case 15:
		d.move(by)
	case 16:
		req := &trackerv1.RemoveWorkItemRequest{Item: d.name(d.some("item")), Subtree: pick(d, "subtree", true, false)}
		v := d.m.remove(by, req)
		res, err := do(d, by, d.b.client.RemoveWorkItem, req)
		d.agreed(v, err, res.GetOutcome())
	case 17:
		req := &trackerv1.RestoreWorkItemRequest{Item: d.name(d.some("item"))}
		v := d.m.restore(by, req)
		res, err := do(d, by, d.b.client.RestoreWorkItem, req)
		d.agreed(v, err, res.GetOutcome())
	case 18:
		d.place(by)
	case 19:
		if len(d.again) > 0 {
			d.again[rapid.IntRange(0, len(d.again)-1).Draw(d.T, "again")]()
		}
	}
}

var (
	titles   = []string{"Alpha", "Beta one", "beta two", "Gamma", "Delta", "100% of it"}
	statuses = []string{"todo", "in_progress", "in_review", "done", "cancelled", "closed"}
	levels   = []string{"none", "low", "normal", "high", "urgent"}
	people   = []string{"ops-lead", "designer", "ines"}
)

// day is a day of the company's calendar around the one that it is, or none.
func (d *driver) day(label string) string {
	if offset := pick(d, label, -2, 0, 1, 9, 100); offset != 100 {
		return d.m.now.In(lisbon).AddDate(0, 0, offset).Format(time.DateOnly)
	}
	return ""
}

func (d *driver) create(by principal) {
	req := &trackerv1.CreateWorkItemRequest{
		Title: pick(d, "title", titles...), Project: pick(d, "project", "OPS", "OPS", "SHOP"), EvenIfExists: pick(d, "even if exists", true, true, false),
		Assignee: pick(d, "assignee", append(people, "", "")...), Priority: pick(d, "priority", levels...), Due: d.day("due"),
	}
	if d.likely("status") {
		req.Status = pick(d, "status", statuses...)
	}
	if len(d.m.items) > 0 && d.likely("part") {
		req.Parent = d.name(d.some("parent"))
	}
	if len(d.m.items) > 0 && d.likely("waits") {
		req.WaitingOn = []string{d.some("waiting on").key}
	}
	if d.likely("asks") {
		req.Ask = pick(d, "ask", people...)
	}
	v := d.m.create(by, req)
	res, err := do(d, by, d.b.client.CreateWorkItem, req)
	if d.agreed(v, err, res.GetOutcome()) {
		require.Nil(d, d.m.named(res.GetKey()), "no key is given twice")
		d.m.file(by, req, res)
	}
}

func (d *driver) update(by principal) {
	w := d.some("item")
	req := &trackerv1.UpdateWorkItemRequest{Item: d.name(w)}
	for range rapid.IntRange(1, 3).Draw(d.T, "parts") {
		d.part(w, req)
	}
	if req.Body != nil || d.likely("if match") {
		req.IfMatch = proto.Int32(max(1, w.version-pick[int32](d, "behind", 0, 0, 0, 1)))
	}
	v := d.m.update(by, req)
	res, err := do(d, by, d.b.client.UpdateWorkItem, req)
	if d.agreed(v, err, res.GetOutcome()) {
		require.Equal(d, d.m.named(res.GetKey()).version, res.GetVersion())
	} else if class := rpc.FromError(err); class.Class == fault.StaleVersion {
		require.Equal(d, fmt.Sprint(w.version), class.Facts["current_version"])
	}
}

// part adds one thing to what an update asks for.
func (d *driver) part(w *work, req *trackerv1.UpdateWorkItemRequest) {
	switch rapid.IntRange(0, 16).Draw(d.T, "part") {
	case 0, 1:
		req.Status = proto.String(pick(d, "status", statuses...))
	case 2, 3:
		req.Assignee = proto.String(pick(d, "assignee", append(people, "")...))
	case 4:
		req.Title = proto.String(pick(d, "title", titles...))
	case 5:
		req.Body = proto.String(pick(d, "body", "", "Some text.", "Another text."))
	case 6:
		req.Priority = proto.String(pick(d, "priority", levels...))
		req.Due = proto.String(d.day("due"))
	case 7:
		req.Start = proto.String(d.day("start"))
		req.Clear = slices.DeleteFunc(req.GetClear(), func(c string) bool { return c == "points" })
		if req.Points = proto.Float64(pick(d, "points", 0, 0.5, 8)); d.likely("no points") {
			req.Points, req.Clear = nil, append(req.GetClear(), "points")
		}
	case 8:
		if req.Labels = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"red", "green", "blue"}), 0, 3, rapid.ID).Draw(d.T, "labels"); len(req.GetLabels()) == 0 &&
			!slices.Contains(req.GetClear(), "labels") {
			req.Clear = append(req.GetClear(), "labels")
		} else {
			req.Clear = slices.DeleteFunc(req.GetClear(), func(c string) bool { return c == "labels" })
			req.LabelsCreateMissing = true
		}
	case 9:
		req.RoutingUnit = proto.String(pick(d, "unit", "operations", "design", "shop"))
	case 10:
		req.Watch = proto.Bool(pick(d, "watch", true, false))
	case 11:
		req.Collaborators = d.change(func(label string) string { return pick(d, label, people...) })
	case 12:
		req.WaitingOn = d.change(func(label string) string { return d.name(d.some(label)) })
	case 13:
		other := func(label string) string { return d.name(d.some(label)) }
		if pick(d, "blocking", true, false) {
			req.Blocking = d.change(other)
		} else {
			req.Linked = d.change(other)
		}
	case 14:
		if parent := d.some("parent"); pick(d, "hang", true, false) {
			req.Parent = proto.String(pick(d, "parent?", "", d.name(parent)))
		} else {
			req.DuplicateOf = proto.String(pick(d, "duplicate?", "", d.name(parent)))
		}
	case 15:
		req.Checklist = d.checklist(w)
	case 16:
		req.Fields = values(d.t, map[string]any{"size": pick[any](d, "size", 0.0, 3.0, 7.0, 1.5, 11.0, nil)})
	}
}

func (d *driver) change(member func(label string) string) *trackerv1.SetChange {
	switch rapid.IntRange(0, 4).Draw(d.T, "change") {
	case 0, 1:
		return &trackerv1.SetChange{Add: []string{member("add")}}
	case 2:
		return &trackerv1.SetChange{Add: []string{member("add")}, Remove: []string{member("remove")}}
	case 3:
		return &trackerv1.SetChange{Set: []string{member("set"), member("set")}}
	default:
		return &trackerv1.SetChange{Clear: true}
	}
}

// checklist is a gesture on lists and steps whose names are their own.
func (d *driver) checklist(w *work) *trackerv1.ChecklistGesture {
	lists, steps := []string{"none"}, []string{"none"}
	for _, l := range w.lists {
		lists = append(lists, l.name)
		for _, s := range l.steps {
			steps = append(steps, s.name)
		}
	}
	*d.operations++
	fresh := fmt.Sprint("step ", *d.operations)
	list, step := lists[len(lists)-1], steps[rapid.IntRange(0, len(steps)-1).Draw(d.T, "step")]
	switch rapid.IntRange(0, 5).Draw(d.T, "checklist") {
	case 0:
		return &trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddList{AddList: &trackerv1.AddChecklist{Name: "List " + fresh, Items: []string{fresh}}}}
	case 1:
		return &trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_RemoveList{RemoveList: &trackerv1.RemoveChecklist{List: list}}}
	case 2:
		return &trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddItem{
			AddItem: &trackerv1.AddChecklistItem{List: list, Name: fresh, Assignee: pick(d, "assignee", append(people, "")...)},
		}}
	case 3:
		return &trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_RemoveItem{RemoveItem: &trackerv1.RemoveChecklistItem{Item: step}}}
	case 4:
		return &trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_SetDone{
			SetDone: &trackerv1.SetChecklistItemDone{Item: step, Done: pick(d, "done", true, false)},
		}}
	default:
		return &trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AssignItem{
			AssignItem: &trackerv1.AssignChecklistItem{Item: step, Assignee: pick(d, "assignee", append(people, "")...)},
		}}
	}
}

func (d *driver) comment(by principal) {
	w := d.some("item")
	req := &trackerv1.CommentOnWorkItemRequest{Item: d.name(w), Body: "Something."}
	switch rapid.IntRange(0, 4).Draw(d.T, "comment") {
	case 0, 1:
		if req.Ask = pick(d, "ask", people...); pick(d, "decision", true, false) {
			req.Decision = choice()
		}
	case 2:
		if len(w.thread) > 0 {
			req.Answers = w.thread[rapid.IntRange(0, len(w.thread)-1).Draw(d.T, "answers")].id
		}
	case 3:
		req.Ask = pick(d, "ask and choose", append(people, "", "", "")...)
		req.Choice = pick(d, "choice", "a", "b", "other")
	}
	v, stands := d.m.comment(by, req)
	res, err := do(d, by, d.b.client.CommentOnWorkItem, req)
	if d.agreed(v, err, res.GetOutcome()) {
		stands(res.GetCommentId())
	}
}

func (d *driver) claim(by principal) {
	req := &trackerv1.ClaimWorkItemRequest{Minutes: pick[int32](d, "minutes", 0, 1, 60, 1440)}
	switch rapid.IntRange(0, 4).Draw(d.T, "claim") {
	case 0:
		req.Project = pick(d, "project", "OPS", "SHOP")
	case 1:
		req.Item, req.Release = d.name(d.some("item")), true
	default:
		req.Item = d.name(d.some("item"))
	}
	v, got := d.m.claim(by, req)
	res, err := do(d, by, d.b.client.ClaimWorkItem, req)
	if d.agreed(v, err, res.GetOutcome()) && got != nil {
		require.Empty(d, cmp.Diff(d.m.shown(got), settled(res.GetItem()), protocmp.Transform()), got.key)
		require.Equal(d, got.version, res.GetVersion())
	}
}

func (d *driver) move(by principal) {
	req := &trackerv1.MoveWorkItemRequest{Item: d.name(d.some("item")), Project: pick(d, "project", "OPS", "SHOP")}
	v, moved := d.m.move(by, req)
	res, err := do(d, by, d.b.client.MoveWorkItem, req)
	if !d.agreed(v, err, res.GetOutcome()) {
		return
	}
	numbers := map[string]int{}
	for _, w := range moved {
		w.key = got(d.t, d.b, w.id).GetKey()
		require.Regexp(d, "^"+req.GetProject()+`-\d+$`, w.key)
		numbers[w.id] = number(w.key)
	}
	slices.SortFunc(moved, func(a, b *work) int { return numbers[a.id] - numbers[b.id] })
	for _, w := range moved {
		d.m.order[w.project] = append(d.m.order[w.project], w.id)
	}
}

func (d *driver) place(by principal) {
	w := d.some("item")
	req := &trackerv1.PlaceWorkItemRequest{Item: d.name(w), IfMatch: w.version}
	if d.likely("stale") {
		req.IfMatch++
	}
	if n := d.name(d.some("neighbour")); pick(d, "before", true, false) {
		req.Before = n
	} else {
		req.After = n
	}
	if d.likely("lane") {
		req.Status = pick(d, "status", statuses...)
	}
	v, lane := d.m.place(by, req)
	res, err := do(d, by, d.b.client.PlaceWorkItem, req)
	v.unchanged = res.GetOutcome() == "unchanged" // it may have stood there already
	if d.agreed(v, err, res.GetOutcome()) {
		require.Equal(d, w.version, res.GetVersion())
		if !lane && res.GetOutcome() != "unchanged" {
			w.record(by, nil, "placed")
		}
	}
}
