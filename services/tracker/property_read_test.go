package tracker_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// number is the number of a key.
func number(key string) (n int) {
	_, _ = fmt.Sscanf(key[strings.IndexByte(key, '-')+1:], "%d", &n)
	return n
}

// compare asks every read, of at most some items the ones that are about one, and compares what it answers with the reference.
func (d *driver) compare(items int) {
	all := d.m.sorted()
	for range min(items, len(all)) {
		w := all[0]
		if all = all[1:]; items < len(d.m.items) {
			w = d.some("read")
		}
		d.item(w)
	}
	for range 3 {
		d.list()
	}
	d.mine(pick(d, "mine", principals...))
	d.projects()
}

// item compares the fat read of an item, and what task_activity tells of it.
func (d *driver) item(w *work) {
	by := pick(d, "reader", principals...)
	res, err := d.b.client.GetWorkItem(by.as(d.t.Context()), &trackerv1.GetWorkItemRequest{Item: d.name(w)})
	require.NoError(d, err)
	require.Empty(d, cmp.Diff(d.m.shown(w), settled(res.GetItem()), protocmp.Transform()), "%s as the reference has it (-) and as it is read (+)", w.key)
	var ties, parts []string
	for _, l := range res.GetLinks() {
		ties = append(ties, l.GetKind()+" "+l.GetTo())
	}
	slices.Sort(ties)
	require.Equal(d, d.m.ties(w), ties)
	for _, c := range d.m.items {
		if c.parent == w.id && !c.trashed() {
			parts = append(parts, c.key)
		}
	}
	require.ElementsMatch(d, parts, res.GetSubtasks())
	d.thread(w, res.GetComments())
	d.rows(w, res.GetHistory())
	activity, err := d.b.client.TaskActivity(by.as(d.t.Context()), &trackerv1.TaskActivityRequest{Item: w.key, OldestFirst: true, Limit: 200})
	require.NoError(d, err)
	told := activity.GetRows()
	slices.Reverse(told)
	require.Empty(d, cmp.Diff(res.GetHistory(), told[:min(50, len(told))], protocmp.Transform()), "task_activity tells what history tells")
}

func (d *driver) thread(w *work, comments []*trackerv1.Comment) {
	thread := w.thread[max(0, len(w.thread)-20):]
	require.Len(d, comments, len(thread))
	for n, r := range thread {
		want := &trackerv1.Comment{
			Id: r.id, Author: r.author, AuthorKind: r.kind, Body: r.body, BodyBytes: int32(len(r.body)), CreateTime: stamp(r.at), Answers: r.answers, Choice: r.choice,
		}
		if r.asked != "" {
			want.Ask = &trackerv1.Ask{Asked: r.asked, Open: r.open()}
			if len(r.options) > 0 {
				want.Ask.Decision = choice()
			}
			if a := r.answer; a != nil {
				want.Ask.Answer, want.Ask.AnsweredBy, want.Ask.AnswerTime, want.Ask.Choice = a.id, a.author, stamp(a.at), a.choice
			}
		}
		require.Empty(d, cmp.Diff(want, comments[n], protocmp.Transform()))
	}
}

func (d *driver) rows(w *work, history []*trackerv1.Change) {
	rows := slices.Clone(w.rows)
	slices.Reverse(rows)
	rows = rows[:min(50, len(rows))]
	require.Len(d, history, len(rows), "history of %s", w.key)
	for n, row := range rows {
		c := history[n]
		require.Contains(d, row.kinds, c.GetKind())
		require.Equal(d, []any{row.actor, row.actorKind, row.version, row.handed, row.project},
			[]any{c.GetActor(), c.GetActorKind(), c.GetVersion(), c.GetReassignments(), c.GetProject()}, "row %d of %s: %s", n, w.key, c.GetKind())
		if row.fields != nil {
			require.Equal(d, row.fields, append([]string{}, slices.Sorted(maps.Keys(c.GetFields().GetFields()))...), "row %d of %s: %s", n, w.key, c.GetKind())
		}
	}
}

// list compares a random list, page by page.
func (d *driver) list() {
	by := pick(d, "lister", principals...)
	req := &trackerv1.ListWorkItemsRequest{
		Preset: pick(d, "preset", "", "", "triage", "blocked", "overdue", "ready"), Limit: pick[int32](d, "limit", 2, 50),
		Sort: pick(d, "sort", "", "-updated", "updated", "created", "-created", "due", "-due", "priority", "-priority", "title", "-title", "rank", "f.size", "-f.size"),
	}
	if by.seat != "" && d.likely("queue") {
		req.Preset = "my_queue"
	}
	switch rapid.IntRange(0, 10).Draw(d.T, "filter") {
	case 0:
		req.Assignee = pick(d, "assignee", append(people, "nobody")...)
	case 1:
		req.Status = []string{pick(d, "status", statuses...)}
	case 2:
		req.OpenOnly = true
	case 3:
		req.Priority = []string{pick(d, "priority", levels...), "high"}
		req.Priority = slices.Compact(req.GetPriority())
	case 4:
		req.Label = pick(d, "label", "red", "green")
	case 5:
		req.Watcher = pick(d, "watcher", people...)
	case 6:
		req.Reporter = pick(d, "reporter", people...)
	case 7:
		req.Parent = d.some("parent").key
	case 8:
		req.Text = pick(d, "text", "beta", "100%", "a")
	case 9:
		req.FieldFilters = values(d.t, map[string]any{"size": "gte:3"})
	}
	if req.Project = pick(d, "project", "", "OPS", "SHOP"); req.GetSort() == "rank" {
		req.Project = "OPS" // an order is a project's own
	}
	if req.GetPreset() == "" && d.likely("removed") {
		req.Removed, req.Sort = true, pick(d, "order of the trash", "removed", "-removed", "")
	}
	want := d.m.listed(by, req)
	keys := []string{}
	for {
		res, err := d.b.client.ListWorkItems(by.as(d.t.Context()), req)
		require.NoError(d, err)
		require.Equal(d, len(want), int(res.GetTotal()), "%v", req)
		for _, i := range res.GetItems() {
			keys = append(keys, i.GetKey())
			w := d.m.named(i.GetKey())
			require.Equal(d, []any{d.m.blocked(w), d.m.overdue(w), w.version, w.status}, []any{i.GetBlocked(), i.GetOverdue(), i.GetVersion(), i.GetStatus()}, i.GetKey())
		}
		if req.Cursor = res.GetNextCursor(); req.GetCursor() == "" {
			break
		}
	}
	require.Equal(d, want, keys, "%v", req)
}

// mine compares what somebody has to do.
func (d *driver) mine(by principal) {
	if by.seat == "" {
		return
	}
	res, err := d.b.client.MyWork(by.as(d.t.Context()), &trackerv1.MyWorkRequest{})
	require.NoError(d, err)
	latest := func(holds func(w *work) bool) []string {
		rows := slices.DeleteFunc(d.m.sorted(), func(w *work) bool { return w.trashed() || !holds(w) })
		slices.SortFunc(rows, d.m.by("-updated"))
		keys := []string{}
		for _, w := range rows[:min(20, len(rows))] {
			keys = append(keys, w.key)
		}
		return keys
	}
	read := func(items []*trackerv1.WorkItem) []string { return append([]string{}, keysIn(items)...) }
	theirs := func(w *work) bool { return w.open() && w.assignee == by.seat }
	require.Equal(d, latest(theirs), read(res.GetAssigned()), "assigned to %s", by.seat)
	require.Equal(d, latest(func(w *work) bool { return w.open() && w.helpers[by.seat] }), read(res.GetCollaborating()), "%s helps", by.seat)
	require.Equal(d, latest(func(w *work) bool { return w.watchers[by.seat] }), read(res.GetWatchingRecent()), "%s watches", by.seat)
	require.ElementsMatch(d, latest(func(w *work) bool { return theirs(w) && w.waited && !d.m.blocked(w) }), read(res.GetUnblockedRecent()), "freed for %s", by.seat)
	asked, questions, steps, todo := []string{}, []string{}, []string{}, []string{}
	for _, w := range d.m.items {
		if w.trashed() {
			continue
		}
		for _, r := range w.openAsks() {
			if r.asked == by.seat {
				questions = append(questions, r.id)
			}
		}
		for _, l := range w.lists {
			for _, s := range l.steps {
				if w.open() && s.assignee == by.seat && !s.done {
					steps = append(steps, s.name)
				}
			}
		}
	}
	for _, q := range res.GetAskedOfMe() {
		asked = append(asked, q.GetCommentId())
	}
	for _, s := range res.GetChecklistItems() {
		todo = append(todo, s.GetName())
	}
	require.ElementsMatch(d, questions, asked, "asked of %s", by.seat)
	require.ElementsMatch(d, steps, todo, "steps of %s", by.seat)
}

// projects compares the counts that projects keep, and their feeds.
func (d *driver) projects() {
	res, err := d.b.client.ListProjects(operator(d.t.Context()), &trackerv1.ListProjectsRequest{})
	require.NoError(d, err)
	for _, p := range res.GetProjects() {
		n := map[string]int32{}
		told := map[string]int{}
		for _, w := range d.m.items {
			if w.project == p.GetKey() && !w.trashed() {
				n[group(w.status)]++
			}
			for _, row := range w.rows {
				if row.project == p.GetKey() {
					told[w.id]++
				}
			}
		}
		want := &trackerv1.TaskCounts{Todo: n["not_started"], Active: n["active"], Done: n["done"], Closed: n["closed"]}
		require.Empty(d, cmp.Diff(want, p.GetTaskCounts(), protocmp.Transform()), p.GetKey())
		feed := map[string]int{}
		req := &trackerv1.TaskActivityRequest{Project: p.GetKey(), Limit: 200}
		for {
			page, err := d.b.client.TaskActivity(operator(d.t.Context()), req)
			require.NoError(d, err)
			for _, row := range page.GetRows() {
				feed[row.GetItemId()]++
			}
			if req.Cursor = page.GetNextCursor(); !page.GetMore() {
				break
			}
		}
		delete(feed, "") // what is about the project itself
		require.Equal(d, told, feed, "the feed of %s", p.GetKey())
	}
}
