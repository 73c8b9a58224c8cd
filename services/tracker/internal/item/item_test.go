package item_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

var (
	agent = item.Actor{Name: "ops", Kind: "agent", Seat: "ops", Turn: "t1"}
	human = item.Actor{Name: "ines", Kind: "human", Seat: "ines"}
	start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
)

func filed(t require.TestingT, by item.Actor) *item.Item {
	i := &item.Item{Project: "OPS", Number: 1, Type: "task", Title: "Renew the certificate", Status: "todo", Priority: "none"}
	change := item.New(i, by, start)
	require.Equal(t, "created", change.Kind)
	return i
}

func ptr[T any](v T) *T { return &v }

func TestAnUpdateThatChangesNothingIsNoChange(t *testing.T) {
	t.Parallel()
	i := filed(t, agent)
	before := *i
	_, changed, err := i.Apply(item.Update{Status: ptr("todo"), Title: ptr(i.Title)}, agent, start.Add(time.Hour))
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, before, *i)
}

func TestAStaleVersionIsRefusedAndNamesTheCurrentOne(t *testing.T) {
	t.Parallel()
	i := filed(t, agent)
	_, _, err := i.Apply(item.Update{IfMatch: ptr(int32(7)), Status: ptr("done")}, agent, start)
	f, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, fault.StaleVersion, f.Class)
	require.Equal(t, "1", f.Facts["current_version"])
	require.Equal(t, "todo", i.Status)
}

func TestTheMostSpecificChangeNamesTheRow(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	c, _, err := i.Apply(item.Update{Status: ptr("in_progress"), Assignee: ptr("ops"), Priority: ptr("high")}, human, start)
	require.NoError(t, err)
	require.Equal(t, "status", c.Kind)
	require.ElementsMatch(t, []string{"status", "assignee", "priority", "watchers"}, slices.Collect(maps.Keys(c.Fields)))
	c, _, err = i.Apply(item.Update{Assignee: ptr("dev"), Priority: ptr("low")}, human, start)
	require.NoError(t, err)
	require.Equal(t, "assignee", c.Kind)
	require.Equal(t, "ops", c.PreviousAssignee)
	for _, step := range []struct {
		kind string
		u    item.Update
	}{
		{"routed", item.Update{RoutingUnit: ptr("design"), Labels: &[]string{"a"}}},
		{"reparented", item.Update{Parent: &item.Place{Parent: ptr(uuid.New()), Depth: 2}, Title: ptr("Another")}},
		{"relations", item.Update{Related: map[string]item.Field{"waiting_on": {To: "x"}}, Title: ptr("A third")}},
		{"checklist", item.Update{Checklist: item.AddList("Setup", nil), Collaborators: &item.SetChange{Add: []string{"qa"}}}},
		{"collaborators", item.Update{Collaborators: &item.SetChange{Clear: true}, Labels: &[]string{"a", "b"}}},
		{"tags", item.Update{Labels: &[]string{"b"}, Title: ptr("A fourth")}},
		{"fields", item.Update{Title: ptr("A fifth"), Watch: ptr(false)}},
		{"watchers", item.Update{Watch: ptr(true)}},
	} {
		c, changed, err := i.Apply(step.u, human, start)
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, step.kind, c.Kind)
	}
}

func TestALongTextIsDescribedAndNotQuoted(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	c, _, err := i.Apply(item.Update{Body: ptr("secret plans")}, human, start)
	require.NoError(t, err)
	require.Equal(t, item.Field{From: "0 bytes", To: "12 bytes"}, c.Fields["body"])
}

func TestAgentsMayHandAnItemOnEightTimesUntilAPersonTouchesIt(t *testing.T) {
	t.Parallel()
	i := filed(t, agent)
	hands := []string{"dev", "ops"}
	for n := range item.MaxReassignments {
		_, _, err := i.Apply(item.Update{Assignee: &hands[n%2]}, agent, start)
		require.NoError(t, err)
	}
	held := i.Assignee
	_, _, err := i.Apply(item.Update{Assignee: ptr("qa")}, agent, start)
	require.Equal(t, fault.ReassignmentBudget, fault.ClassOf(err))
	require.Equal(t, held, i.Assignee, "a refusal leaves the item as it is")
	_, changed, err := i.Apply(item.Update{Assignee: &held}, agent, start)
	require.NoError(t, err, "giving it to whom it belongs to is free")
	require.False(t, changed)
	_, _, err = i.Apply(item.Update{Priority: ptr("high")}, human, start)
	require.NoError(t, err)
	_, _, err = i.Apply(item.Update{Assignee: ptr("qa")}, agent, start)
	require.NoError(t, err)
}

func TestReopeningClearsTheStampsAndIsCounted(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	for _, step := range []struct {
		status       string
		done, closed bool
		reopens      int32
	}{
		{"done", true, false, 0},
		{"closed", true, true, 0},
		{"done", true, false, 0}, // not a reopening
		{"todo", false, false, 1},
		{"cancelled", true, false, 1},
	} {
		_, _, err := i.Apply(item.Update{Status: &step.status}, human, start)
		require.NoError(t, err)
		require.Equal(t, step.done, i.DoneAt != nil, step.status)
		require.Equal(t, step.closed, i.ClosedAt != nil, step.status)
		require.Equal(t, step.reopens, i.Reopens, step.status)
	}
}

func TestWhoeverFilesTakesOrCommentsWatches(t *testing.T) {
	t.Parallel()
	i := filed(t, agent)
	_, _, err := i.Apply(item.Update{Assignee: ptr("dev")}, human, start)
	require.NoError(t, err)
	i.Remark(human, start)
	require.Equal(t, []string{"ops", "dev", "ines"}, i.Watchers)
	i.Muted = []string{"qa"}
	i.Watch("qa")
	require.NotContains(t, i.Watchers, "qa")
}

func TestMentionsIgnoreCodeQuotesAndMailAddresses(t *testing.T) {
	t.Parallel()
	text := "Hello @Ops-Lead, ask (@dev). Mail me at x@qa.example or see `@nobody`.\n> @quoted\n```\n@fenced\n```\n@ops-lead again, @ops-lead-2."
	require.Equal(t, []string{"ops-lead", "dev", "ops-lead-2"}, item.Mentions(text))
}

// Whatever happens to an item, its row of changes explains it: versions count the changes, and its fields are what the rows say.
func TestHistoryExplainsState(t *testing.T) {
	t.Parallel()
	statuses := []string{"todo", "in_progress", "in_review", "done", "cancelled", "closed"}
	rapid.Check(t, func(t *rapid.T) {
		i := filed(t, agent)
		told := map[string]string{"status": i.Status, "assignee": "", "priority": "none", "watchers": "ops", "muted": ""}
		version := i.Version
		t.Repeat(map[string]func(*rapid.T){
			"update": func(t *rapid.T) {
				u := item.Update{}
				if rapid.Bool().Draw(t, "status?") {
					u.Status = ptr(rapid.SampledFrom(statuses).Draw(t, "status"))
				}
				if rapid.Bool().Draw(t, "assignee?") {
					u.Assignee = ptr(rapid.SampledFrom([]string{"", "ops", "dev"}).Draw(t, "assignee"))
				}
				if rapid.Bool().Draw(t, "priority?") {
					u.Priority = ptr(rapid.SampledFrom([]string{"none", "high"}).Draw(t, "priority"))
				}
				by := rapid.SampledFrom([]item.Actor{agent, human}).Draw(t, "by")
				before := *i
				u.Watch = rapid.SampledFrom([]*bool{nil, ptr(true), ptr(false)}).Draw(t, "watch")
				c, changed, err := i.Apply(u, by, start)
				if err != nil || !changed {
					require.Equal(t, before, *i)
					return
				}
				version++
				for name, f := range c.Fields {
					require.Equal(t, told[name], f.From)
					told[name] = f.To
				}
				require.Equal(t, version, c.Version)
			},
			"": func(t *rapid.T) {
				require.Equal(t, version, i.Version)
				require.Equal(t, map[string]string{
					"status": i.Status, "assignee": i.Assignee, "priority": i.Priority, "watchers": item.Members(i.Watchers), "muted": item.Members(i.Muted),
				}, told)
				require.Equal(t, item.GroupOf(i.Status) >= item.Done, i.DoneAt != nil)
				require.Equal(t, i.Status == "closed", i.ClosedAt != nil)
				require.LessOrEqual(t, i.Reassignments, int32(item.MaxReassignments))
			},
		})
	})
}
