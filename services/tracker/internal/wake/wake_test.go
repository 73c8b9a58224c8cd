package wake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

var (
	ops  = item.Actor{Name: "ops", Kind: "agent", Seat: "ops", Turn: "t1"}
	ines = item.Actor{Name: "ines", Kind: "human", Seat: "ines"}
	now  = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
)

// world is an item that everybody has something to do with.
func world() *item.Item {
	return &item.Item{
		ID: uuid.UUID{1}, Project: "OPS", Number: 1, Status: "todo", Reporter: "ines", ReporterKind: "human", Assignee: "dev",
		Collaborators: []string{"qa"}, Watchers: []string{"ines", "dev", "wim"}, Body: "Ask @ana.",
	}
}

// facts are a change that by makes of an item of the world.
func facts(kind string, by item.Actor, change func(*item.Item)) wake.Facts {
	before, after := world(), world()
	change(after)
	return wake.Facts{
		Before: before, After: after, Change: item.Change{Kind: kind, By: by, Fields: map[string]item.Field{}, At: now},
		RoutingLead: "lea", ProjectLead: "pat", ParentAssignee: "paula",
	}
}

func nothing(*item.Item) {}

func finish(i *item.Item) { i.Status = "done" }

// told is a list of concerns as `handle reason`, with a mark on those who owe something.
func told(concerns []wake.Concern) []string {
	list := []string{}
	for _, c := range concerns {
		line := c.Handle + " " + c.Reason
		if c.AboutKey != "" {
			line += " of " + c.AboutKey
		}
		if c.Addressed {
			line += "!"
		}
		list = append(list, line)
	}
	return list
}

func TestWhomAChangeConcerns(t *testing.T) {
	t.Parallel()
	watchers := []string{"ines watcher", "dev watcher", "wim watcher"}
	fallback := []string{"lea lead_fallback", "pat lead_fallback"}
	all := func(parts ...[]string) (list []string) {
		for _, p := range parts {
			list = append(list, p...)
		}
		return list
	}
	other := wake.Neighbour{ID: uuid.UUID{2}, Key: "OPS-2", Title: "Roll out", Assignee: "zoe"}
	for name, c := range map[string]struct {
		facts wake.Facts
		want  []string
	}{
		"a new item is the assignee's to do, and the parent's assignee hears of the part": {
			func() wake.Facts {
				f := facts("created", ines, nothing)
				f.Before = nil
				return f
			}(),
			all([]string{"dev assignee!", "paula parent_assignee", "qa collaborator"}, watchers, fallback),
		},
		"an item filed as a question asks somebody": {
			func() wake.Facts {
				f := facts("created", ines, func(i *item.Item) { i.Assignee, i.Collaborators, i.Watchers = "", nil, nil })
				f.Before, f.Asked, f.ParentAssignee = nil, "ana", ""
				return f
			}(),
			all([]string{"ana asked!"}, fallback),
		},
		"work that begins is heard by those who have it and those who watch": {
			facts("status", ops, func(i *item.Item) { i.Status = "in_progress" }),
			all([]string{"dev assignee", "qa collaborator"}, watchers, fallback),
		},
		"a finish is the assignee's to know and reaches who filed it": {
			facts("status", ops, finish),
			all([]string{"dev assignee!", "ines reporter", "paula parent_assignee", "qa collaborator"}, watchers, fallback),
		},
		"a reopening is the assignee's again but no news to the reporter": {
			func() wake.Facts {
				f := facts("status", ops, nothing)
				f.Before.Status = "done"
				return f
			}(),
			all([]string{"dev assignee!", "paula parent_assignee", "qa collaborator"}, watchers, fallback),
		},
		"from done to closed crosses nothing": {
			func() wake.Facts {
				f := facts("status", ops, func(i *item.Item) { i.Status = "closed" })
				f.Before.Status = "done"
				return f
			}(),
			all([]string{"dev assignee", "qa collaborator"}, watchers, fallback),
		},
		"a finish frees what waited for the item": {
			func() wake.Facts {
				f := facts("status", ops, finish)
				f.Unblocked = []wake.Neighbour{other, {ID: uuid.UUID{3}, Key: "OPS-3"}}
				return f
			}(),
			all([]string{"zoe unblocked of OPS-2", "dev assignee!", "ines reporter", "paula parent_assignee", "qa collaborator"}, watchers, fallback),
		},
		"a hand-over is the new assignee's to do and told to the one before and to the reporter": {
			facts("assignee", ops, func(i *item.Item) { i.Assignee = "eve" }),
			all([]string{"eve assignee!", "dev unassigned", "ines reporter", "qa collaborator"}, watchers),
		},
		"an item given to nobody is told to who had it": {
			facts("assignee", ops, func(i *item.Item) { i.Assignee = "" }),
			all([]string{"dev unassigned", "ines reporter", "qa collaborator"}, watchers),
		},
		"a field is heard by those who have it and those who watch, and by no lead": {
			facts("fields", ops, func(i *item.Item) { i.Priority = "high" }),
			all([]string{"dev assignee", "qa collaborator"}, watchers),
		},
		"a description calls those whom it newly names": {
			func() wake.Facts {
				f := facts("fields", ops, func(i *item.Item) { i.Body = "Ask @ana and @tom." })
				f.Mentions = []string{"ana", "tom"}
				return f
			}(),
			all([]string{"tom mention!", "dev assignee", "qa collaborator"}, watchers),
		},
		"a person's comment is the assignee's to answer": {
			facts("comment", ines, nothing),
			all([]string{"dev assignee!", "ines reporter", "qa collaborator"}, watchers, fallback),
		},
		"an agent's comment may be absorbed": {
			facts("comment", ops, nothing),
			all([]string{"dev assignee", "ines reporter", "qa collaborator"}, watchers, fallback),
		},
		"a comment calls whom it names although the description named them": {
			func() wake.Facts {
				f := facts("comment", ops, nothing)
				f.Mentions = []string{"ana"}
				return f
			}(),
			all([]string{"ana mention!", "dev assignee", "ines reporter", "qa collaborator"}, watchers, fallback),
		},
		"a question is owed an answer": {
			func() wake.Facts {
				f := facts("comment", ops, nothing)
				f.Asked = "ana"
				return f
			}(),
			all([]string{"ana asked!", "dev assignee", "ines reporter", "qa collaborator"}, watchers, fallback),
		},
		"an answer reaches who asked": {
			func() wake.Facts {
				f := facts("comment", ops, nothing)
				f.Asker = "ana"
				return f
			}(),
			all([]string{"ana answered", "dev assignee", "ines reporter", "qa collaborator"}, watchers, fallback),
		},
		"those who spoke hear that the thread goes on": {
			func() wake.Facts {
				f := facts("comment", ops, nothing)
				f.Thread = []string{"tom", "tom", "zoe"}
				return f
			}(),
			all([]string{"dev assignee", "ines reporter", "tom thread", "zoe thread", "qa collaborator"}, watchers, fallback),
		},
		"an item that now waits is told to who holds it up": {
			func() wake.Facts {
				f := facts("relations", ops, nothing)
				f.Blocking = []wake.Neighbour{other}
				return f
			}(),
			all([]string{"zoe blocking of OPS-2", "dev assignee", "qa collaborator"}, watchers),
		},
		"another unit's lead hears that the item is routed there": {
			func() wake.Facts {
				f := facts("routed", ops, nothing)
				f.Change.Fields["routing_unit"] = item.Field{From: "a", To: "b"}
				return f
			}(),
			all([]string{"dev assignee", "lea routed_to", "qa collaborator"}, watchers, fallback),
		},
		"a removal reaches who filed it and who has the parent": {
			facts("removed", ops, func(i *item.Item) { i.Removal = &item.Removal{By: "ops", Kind: "agent", At: now} }),
			all([]string{"dev assignee", "ines reporter", "paula parent_assignee", "qa collaborator"}, watchers, fallback),
		},
		"an item under another parent is news to that one's assignee": {
			facts("reparented", ops, nothing),
			all([]string{"dev assignee", "paula parent_assignee", "qa collaborator"}, watchers),
		},
		"a step given to somebody is theirs; ticking is heard by those who have the item": {
			facts("checklist", ops, func(i *item.Item) {
				i.Checklists = []item.Checklist{{ID: "l", Items: []item.Step{{ID: "1", Assignee: "tom"}, {ID: "2", Assignee: "zoe", Done: true}, {ID: "3"}}}}
			}),
			[]string{"dev assignee", "tom checklist", "qa collaborator"},
		},
		"a new helper hears that they help": {
			facts("collaborators", ops, func(i *item.Item) { i.Collaborators = []string{"qa", "tom"} }),
			[]string{"dev assignee", "qa collaborator", "tom collaborator"},
		},
		"who is taken off the list of watchers by somebody else hears of that alone": {
			facts("watchers", ops, func(i *item.Item) { i.Watchers = []string{"ines", "dev"} }),
			[]string{"wim unwatched"},
		},
		"who leaves by themselves hears of nothing": {
			facts("watchers", item.Actor{Name: "wim", Kind: "human", Seat: "wim"}, func(i *item.Item) { i.Watchers = []string{"ines", "dev"} }),
			[]string{},
		},
		"a label concerns nobody": {
			facts("tags", ops, func(i *item.Item) { i.Labels = []string{"urgent"} }),
			[]string{},
		},
		"an import concerns nobody, whatever it brings": {
			func() wake.Facts {
				f := facts("imported", ines, func(i *item.Item) {
					i.Checklists = []item.Checklist{{ID: "l", Items: []item.Step{{ID: "1", Assignee: "tom"}}}}
				})
				f.Before = nil
				return f
			}(),
			[]string{},
		},
		"a purge is told to the project's lead alone": {
			facts("purged", ines, nothing),
			[]string{"pat purged"},
		},
		"an order of work tells whose it is of each item that is new in it": {
			wake.Facts{Change: item.Change{Kind: "prioritised", By: ines}, Prioritised: "dev", Listed: []wake.Neighbour{other}},
			[]string{"dev prioritised of OPS-2!"},
		},
		"a token that filed an item has no inbox": {
			facts("status", ops, func(i *item.Item) {
				i.Status, i.Reporter, i.ReporterKind, i.Watchers, i.Collaborators = "done", "ci", "operator", nil, nil
			}),
			append([]string{"dev assignee!", "paula parent_assignee", "ines unwatched", "dev unwatched", "wim unwatched"}, fallback...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, told(wake.Resolve(c.facts)))
		})
	}
}

func TestNoMoreThanSixteenWhoSpokeHearThatTheThreadGoesOn(t *testing.T) {
	t.Parallel()
	f := facts("comment", ops, func(i *item.Item) { i.Watchers = nil })
	f.Before = f.After
	for n := range 20 {
		f.Thread = append(f.Thread, fmt.Sprint("seat-", n))
	}
	heard := 0
	for _, c := range wake.Resolve(f) {
		if c.Reason == wake.Thread {
			heard++
		}
	}
	require.Equal(t, wake.MaxThread, heard)
}

func TestAChangeConcernsSomebodyUnlessItIsTheActorsOrMuted(t *testing.T) {
	t.Parallel()
	concern := func(handle, reason string, owed bool) []wake.Concern {
		return []wake.Concern{{Handle: handle, Reason: reason, Addressed: owed}}
	}
	for name, c := range map[string]struct {
		concerns []wake.Concern
		muted    []string
		want     bool
	}{
		"nobody":                               {nil, nil, false},
		"the actor":                            {concern("ops", wake.Assignee, true), nil, false},
		"the actor, of an item that was freed": {concern("ops", wake.Unblocked, false), nil, true},
		"somebody else":                        {concern("dev", wake.Watcher, false), nil, true},
		"who muted it":                         {concern("dev", wake.Watcher, false), []string{"dev"}, false},
		"who muted it and owes an answer":      {concern("dev", wake.Asked, true), []string{"dev"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, wake.Notified(c.concerns, ops, c.muted))
		})
	}
}

func TestWhoPromisedToTellOfTheAnswerOwesThat(t *testing.T) {
	t.Parallel()
	f := facts("comment", ines, nothing)
	f.Asker, f.Promised = "ops", wake.Promise{Surface: "slack", Channel: "#shop"}
	require.Contains(t, wake.Resolve(f), wake.Concern{Handle: "ops", Reason: wake.Answered, Owes: f.Promised})
}

// Whatever happens to an item: nobody is told twice of one thing, nobody without a name, only what is owed is marked so, watchers hear
// of everything that is not silent, and a purge names nobody but the lead.
func TestConcernsAreDistinctAndOwedForAReason(t *testing.T) {
	t.Parallel()
	seats := []string{"", "ines", "ops", "dev", "qa", "wim", "ana"}
	one := rapid.SampledFrom(seats)
	some := rapid.SliceOfN(rapid.SampledFrom(seats[1:]), 0, 5)
	states := rapid.SampledFrom([]string{"todo", "in_progress", "done", "cancelled", "closed"})
	silent := []string{"watchers", "tags", "claimed", "placed"}
	kinds := append([]string{
		"created", "status", "assignee", "fields", "comment", "relations", "routed", "moved", "reparented", "removed", "restored",
		"collaborators", "checklist", "purged",
	}, silent...)
	owed := map[string]bool{wake.Asked: true, wake.Mention: true, wake.Prioritised: true, wake.Assignee: true}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *item.Item {
			return &item.Item{
				Status: states.Draw(t, label+" status"), Assignee: one.Draw(t, label+" assignee"), Reporter: "ines", ReporterKind: "human",
				Watchers: some.Draw(t, label+" watchers"), Collaborators: some.Draw(t, label+" collaborators"),
			}
		}
		f := wake.Facts{
			After:    draw("after"),
			Change:   item.Change{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), By: rapid.SampledFrom([]item.Actor{ops, ines}).Draw(t, "by")},
			Mentions: some.Draw(t, "mentions"), Thread: some.Draw(t, "thread"), Asked: one.Draw(t, "asked"), Asker: one.Draw(t, "asker"),
			ParentAssignee: one.Draw(t, "parent"), RoutingLead: one.Draw(t, "routing lead"), ProjectLead: one.Draw(t, "lead"),
		}
		if f.Change.Kind != "created" {
			f.Before = draw("before")
		}
		type told struct{ handle, reason string }
		seen := map[told]bool{}
		for _, c := range wake.Resolve(f) {
			require.NotEmpty(t, c.Handle)
			require.False(t, seen[told{c.Handle, c.Reason}], "%s hears of %s twice", c.Handle, c.Reason)
			seen[told{c.Handle, c.Reason}] = true
			require.True(t, !c.Addressed || owed[c.Reason], "%s owes nothing", c.Reason)
			if f.Change.Kind == "purged" {
				require.Equal(t, told{f.ProjectLead, wake.Purged}, told{c.Handle, c.Reason})
			}
		}
		quiet := f.Change.Kind == "purged" || f.Change.Kind == "collaborators" || f.Change.Kind == "checklist"
		for _, kind := range silent {
			quiet = quiet || f.Change.Kind == kind
		}
		for _, handle := range f.After.Watchers {
			require.NotEqual(t, quiet, seen[told{handle, wake.Watcher}])
		}
	})
}
