package tracker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// listedAt is the moment at which lists are read: a Monday's noon in Lisbon.
var listedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func listWorld(t *testing.T) bundle {
	t.Helper()
	return setupAt(t, func() time.Time { return listedAt })
}

func put(t *testing.T, b bundle, req *trackerv1.CreateWorkItemRequest) string {
	t.Helper()
	if req.GetProject() == "" {
		req.Project = "OPS"
	}
	req.EvenIfExists = true
	res, err := b.client.CreateWorkItem(operator(t.Context()), req)
	require.NoError(t, err)
	return res.GetKey()
}

func list(ctx context.Context, t *testing.T, b bundle, req *trackerv1.ListWorkItemsRequest) *trackerv1.ListWorkItemsResponse {
	t.Helper()
	res, err := b.client.ListWorkItems(ctx, req)
	require.NoError(t, err)
	return res
}

func listKeys(t *testing.T, b bundle, req *trackerv1.ListWorkItemsRequest) []string {
	t.Helper()
	var keys []string
	for _, i := range list(operator(t.Context()), t, b, req).GetItems() {
		keys = append(keys, i.GetKey())
	}
	return keys
}

func where(t *testing.T, conditions map[string]any) *trackerv1.WorkQuery {
	t.Helper()
	s, err := structpb.NewStruct(conditions)
	require.NoError(t, err)
	return &trackerv1.WorkQuery{Where: s}
}

func listRefused(t *testing.T, b bundle, req *trackerv1.ListWorkItemsRequest, field string) string {
	t.Helper()
	_, err := b.client.ListWorkItems(operator(t.Context()), req)
	return refusal(t, err, fault.Invalid, field).Message
}

func TestAnUnknownKeyEnumOrOperatorIsRefusedNamingTheClosedSet(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Query: where(t, map[string]any{"flags": "cycle"})}, "flags"), "did you mean flag")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Query: where(t, map[string]any{"flag": "odd"})}, "flag"), "too_deep")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Sort: "spend"}, "sort"), "spend is not kept")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Sort: "mood"}, "sort"), "status_entered")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Due: "someday"}, "due"), "range:<from>..<to>")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Updated: "overdue"}, "updated"), "due alone")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Project: "NOPE"}, "project"), "OPS")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Assignee: "bob"}, "assignee"), "designer")
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Parent: "OPS-99"}, "parent"), "OPS-99")
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Preset: "mine"}, "preset")
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{View: "mine"}, "view")
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Limit: 501}, "limit")
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "status", Group: proto.String("doing")}}, "group")
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Due: "today", Query: where(t, map[string]any{"due": "today"})}, "query.where")
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Query: where(t, map[string]any{"due": []any{"today"}})}, "query.where.due")
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{FieldFilters: where(t, map[string]any{"team": "core"}).GetWhere()}, "f.team")
}

func TestAnUnknownUnitMatchesNothingAtARead(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	key := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "x"})
	require.Empty(t, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Unit: "no such unit"}))
	require.Equal(t, []string{key}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Unit: "OPERATIONS"}))
}

func TestEveryRowIsFilteredOnItsOwn(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	root := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "root", Priority: "high"})
	urgent := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "part", Parent: root, Priority: "urgent"})
	put(t, b, &trackerv1.CreateWorkItemRequest{Title: "other part", Parent: root})
	require.Equal(t, []string{urgent}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Priority: []string{"urgent"}}))
	require.Equal(t, []string{root}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Query: where(t, map[string]any{"subtasks": "collapsed"})}))
	require.Len(t, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Query: where(t, map[string]any{"root": root})}), 3)
	require.Len(t, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Parent: root}), 2)
	require.Equal(t, []string{root}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Query: where(t, map[string]any{"parent": "none"})}))
}

func TestDaysAndOverdueAreCutAtTheCompanysMidnight(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	keys := map[string]string{}
	for _, due := range []string{"2026-11-29", "2026-11-30", "2026-11-30T11:00:00Z", "2026-11-30T23:59:00Z", "2026-12-01", "2026-12-06", "2026-12-07", "2026-12-14", ""} {
		keys[due] = put(t, b, &trackerv1.CreateWorkItemRequest{Title: "due " + due, Due: due})
	}
	finished := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "finished", Due: "2026-11-29", Status: "done"})
	dues := func(text string) []string {
		var found []string
		for _, i := range list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Due: text, Sort: "due", OpenOnly: true}).GetItems() {
			found = append(found, i.GetDue())
		}
		return found
	}
	require.Equal(t, []string{"2026-11-29", "2026-11-30T11:00:00Z"}, dues("overdue"))
	require.Equal(t, []string{"2026-11-30", "2026-11-30T11:00:00Z", "2026-11-30T23:59:00Z"}, dues("today"))
	require.Equal(t, []string{"2026-11-29"}, dues("lt:today"))
	require.Equal(t, []string{"2026-12-06"}, dues("range:+2d..eow"))
	require.Equal(t, []string{"2026-12-07", "2026-12-14"}, dues("gt:eow"))
	require.Equal(t, []string{""}, dues("none"))
	for _, i := range list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Preset: "overdue"}).GetItems() {
		require.True(t, i.GetOverdue())
		require.NotEqual(t, finished, i.GetKey())
	}
	board := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "due:bucket"}})
	counts := map[string]int32{}
	for _, g := range board.GetGroups() {
		counts[g.GetValue()] = g.GetCount()
	}
	require.Equal(t, map[string]int32{"overdue": 2, "today": 2, "thisweek": 2, "nextweek": 1, "later": 1, "earlier": 1, "": 1}, counts)
}

func TestAbsentValuesLastBothWaysAndPagesNeitherLoseNorRepeat(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	for n := range 12 {
		req := &trackerv1.CreateWorkItemRequest{Title: fmt.Sprintf("item %d", n%5), Priority: []string{"none", "low", "urgent"}[n%3]}
		if n%2 == 0 {
			req.Due, req.Start = fmt.Sprintf("2026-12-%02d", 1+n%4), "2026-12-01"
			req.EstimateMinutes, req.Points = proto.Int32(int32(10+n%3)), proto.Float64(float64(n%4))
		}
		put(t, b, req)
	}
	for _, sort := range []string{"updated", "created", "due", "start", "priority", "title", "estimate", "points", "reopens", "status_entered", "rank"} {
		for _, sort := range []string{sort, "-" + sort} {
			var walked []*trackerv1.WorkItem
			req := &trackerv1.ListWorkItemsRequest{Sort: sort, Project: "OPS", Limit: 5}
			for {
				res := list(operator(t.Context()), t, b, req)
				require.Equal(t, int32(12), res.GetTotal())
				walked = append(walked, res.GetItems()...)
				if req.Cursor = res.GetNextCursor(); req.GetCursor() == "" {
					break
				}
			}
			seen := map[string]bool{}
			absent := false
			for _, i := range walked {
				require.False(t, seen[i.GetKey()], "%s: %s came twice", sort, i.GetKey())
				seen[i.GetKey()] = true
				without := map[string]bool{
					"due": i.GetDue() == "", "start": i.GetStart() == "", "priority": i.GetPriority() == "none",
					"estimate": i.EstimateMinutes == nil, "points": i.Points == nil,
				}[strings.TrimPrefix(sort, "-")]
				require.False(t, absent && !without, "%s: %s has a value after one without", sort, i.GetKey())
				absent = absent || without
			}
			require.Len(t, walked, 12, sort)
		}
	}
	ascending := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Sort: "priority"}).GetItems()
	require.Equal(t, "low", ascending[0].GetPriority())
	descending := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Sort: "-priority"}).GetItems()
	require.Equal(t, "urgent", descending[0].GetPriority())
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Sort: "rank"}, "sort")
}

func TestACursorIsGoodForItsOwnListAlone(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	for n := range 3 {
		put(t, b, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("item ", n), Assignee: "designer"})
	}
	cursor := list(seat(t.Context(), "designer"), t, b, &trackerv1.ListWorkItemsRequest{Assignee: "me", Limit: 1}).GetNextCursor()
	require.NotEmpty(t, cursor)
	list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Assignee: "designer", Limit: 2, Cursor: cursor})
	for _, req := range []*trackerv1.ListWorkItemsRequest{
		{Assignee: "me", Limit: 1}, {Assignee: "designer", OpenOnly: true}, {Assignee: "designer", Sort: "created"}, {Cursor: "nonsense"}, {Assignee: "designer", Due: "today"},
	} {
		if req.GetCursor() == "" {
			req.Cursor = cursor
		}
		listRefused(t, b, req, "cursor")
	}
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Assignee: "designer", Cursor: cursor, Query: &trackerv1.WorkQuery{GroupBy: "status"}}, "cursor")
}

func TestGroupsOfAClosedSetAreDrawnInFullAndAColumnIsLoadedByItsValue(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	for n := range 5 {
		put(t, b, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("item ", n), Status: "in_review", Points: proto.Float64(float64(n))})
	}
	put(t, b, &trackerv1.CreateWorkItemRequest{Title: "elsewhere", Assignee: "designer", Labels: []string{"a", "b"}, LabelsCreateMissing: true})
	board := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "status", GroupLimit: 2, Totals: []string{"sum:points", "count"}}})
	var values []string
	for _, g := range board.GetGroups() {
		values = append(values, g.GetValue())
	}
	require.Equal(t, []string{"todo", "in_progress", "in_review", "done", "cancelled", "closed"}, values)
	require.Equal(t, int32(5), board.GetGroups()[2].GetCount())
	require.Len(t, board.GetGroups()[2].GetKeys(), 2)
	require.Equal(t, "In review", board.GetGroups()[2].GetLabel())
	require.InDelta(t, 10, board.GetGroups()[2].GetTotals()[0].GetValue(), 0)
	require.Empty(t, board.GetNextCursor())
	require.Len(t, board.GetItems(), 3)
	require.Equal(t, int32(6), board.GetTotal())

	column := &trackerv1.ListWorkItemsRequest{Limit: 2, Query: &trackerv1.WorkQuery{GroupBy: "status", Group: proto.String("in_review")}}
	var loaded []string
	for {
		res := list(operator(t.Context()), t, b, column)
		require.Equal(t, int32(5), res.GetTotal())
		for _, i := range res.GetItems() {
			loaded = append(loaded, i.GetKey())
		}
		if column.Cursor = res.GetNextCursor(); column.GetCursor() == "" {
			break
		}
	}
	require.Len(t, loaded, 5)
	nobody := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "assignee", Group: proto.String("")}})
	require.Equal(t, int32(5), nobody.GetTotal(), "an empty value is the column of those without")
	tags := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "tag"}})
	require.True(t, tags.GetGroupsOverlap())
	require.Len(t, tags.GetGroups(), 3)
	require.Empty(t, tags.GetGroups()[2].GetValue())
	require.Equal(t, tags.GetGroups()[0].GetKeys(), tags.GetGroups()[1].GetKeys())
	for _, by := range []string{"status_group", "priority", "type", "project", "unit", "routing_unit", "parent", "due:day", "due:week", "start:week"} {
		res := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: by}})
		var sum int32
		for _, g := range res.GetGroups() {
			sum += g.GetCount()
		}
		require.Equal(t, int32(6), sum, by)
	}
}

func TestTotalsAreOverAllMatches(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	for n := range 10 {
		put(t, b, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("item ", n), Points: proto.Float64(float64(n + 1))})
	}
	put(t, b, &trackerv1.CreateWorkItemRequest{Title: "without"})
	res := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Limit: 2, Query: &trackerv1.WorkQuery{Totals: []string{
		"sum:points", "avg:points", "min:points", "max:points", "median:points", "p90:points", "count", "sum:estimate",
	}}})
	numbers := map[string]float64{}
	for _, total := range res.GetTotals() {
		if total.Value != nil {
			numbers[total.GetName()] = total.GetValue()
		}
	}
	require.Equal(t, map[string]float64{
		"sum:points": 55, "avg:points": 5.5, "min:points": 1, "max:points": 10, "median:points": 5.5, "p90:points": 9.1, "count": 11,
	}, numbers, "what no item has is absent")
}

func TestPresetsAreTheUsualQuestions(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	mine := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "mine", Assignee: "designer", Priority: "low"})
	urgent := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "mine and urgent", Assignee: "designer", Priority: "urgent"})
	waiting := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "waits", Assignee: "designer", WaitingOn: []string{mine}})
	put(t, b, &trackerv1.CreateWorkItemRequest{Title: "finished", Assignee: "designer", Status: "done"})
	triage := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "nobody's"})
	as := func(preset string) (keys []string) {
		for _, i := range list(seat(t.Context(), "designer"), t, b, &trackerv1.ListWorkItemsRequest{Preset: preset}).GetItems() {
			keys = append(keys, i.GetKey())
		}
		return keys
	}
	require.Equal(t, []string{urgent, mine, waiting}, as("my_queue"))
	require.Equal(t, []string{triage}, as("triage"))
	require.Equal(t, []string{waiting}, as("blocked"))
	require.Equal(t, []string{urgent, mine, triage}, as("ready"))
	require.Empty(t, as("priorities"))
	_, err := b.client.SetPriorities(operator(t.Context()), &trackerv1.SetPrioritiesRequest{Handle: "designer", Items: []string{waiting, mine}})
	require.NoError(t, err)
	require.Equal(t, []string{waiting, mine}, as("priorities"), "in the order that is kept")
	row := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Preset: "blocked"}).GetItems()[0]
	require.True(t, row.GetBlocked())
	require.Equal(t, mine, row.GetWaitingOn()[0].GetItem())
	require.True(t, row.GetWaitingOn()[0].GetOpen())
	for name, keys := range map[string][]string{"true": {mine, waiting}, "false": {urgent, triage}} {
		found := listKeys(t, b, &trackerv1.ListWorkItemsRequest{OpenOnly: true, Query: where(t, map[string]any{"has_dependencies": name})})
		slices.Sort(found)
		slices.Sort(keys)
		require.Equal(t, keys, found)
	}
}

func TestOnlyRemovedItemsAreInTheTrashTheLatestFirst(t *testing.T) {
	t.Parallel()
	var seconds atomic.Int64
	b := setupAt(t, func() time.Time { return listedAt.Add(time.Duration(seconds.Add(1)) * time.Second) })
	var keys []string
	for n := range 3 {
		keys = append(keys, put(t, b, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("item ", n)}))
	}
	for _, n := range []int{1, 0} {
		_, err := b.client.RemoveWorkItem(operator(t.Context()), &trackerv1.RemoveWorkItemRequest{Item: keys[n]})
		require.NoError(t, err)
	}
	require.Equal(t, []string{keys[0], keys[1]}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Removed: true}))
	require.Equal(t, []string{keys[2]}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{}))
	listRefused(t, b, &trackerv1.ListWorkItemsRequest{Removed: true, Sort: "due"}, "sort")
}

func TestFieldsAreAskedWithTheOperatorsOfTheirType(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	_, err := b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{Fields: []*trackerv1.FieldDeclaration{
		{Slug: "cost", Name: "Cost", Type: "number"},
		{Slug: "team", Name: "Team", Type: "dropdown", Options: []*trackerv1.FieldOption{{Slug: "core", Name: "Core"}, {Slug: "edge", Name: "Edge"}}},
		{Slug: "secret", Name: "Secret", Type: "text", HideFromAgents: true},
		{Slug: "shipped", Name: "Shipped", Type: "date"},
	}})
	require.NoError(t, err)
	var keys []string
	for _, fields := range []map[string]any{{"cost": 3, "team": "core", "shipped": "2026-11-30"}, {"cost": 10, "team": "edge", "secret": "x"}, {}} {
		s, err := structpb.NewStruct(fields)
		require.NoError(t, err)
		keys = append(keys, put(t, b, &trackerv1.CreateWorkItemRequest{Title: "fields", Fields: s}))
	}
	for filter, want := range map[string][]string{
		"cost=gte:3": keys[:2], "cost=10": keys[1:2], "cost=range:1..5": keys[:1], "cost=unset": keys[2:], "cost=ne:3": keys[1:],
		"team=core": keys[:1], "team=in:core,edge": keys[:2], "team=ne:core": keys[1:], "secret=contains:X": keys[1:2], "shipped=today": keys[:1], "shipped=lt:today": nil,
	} {
		slug, value, _ := strings.Cut(filter, "=")
		found := listKeys(t, b, &trackerv1.ListWorkItemsRequest{FieldFilters: where(t, map[string]any{slug: value}).GetWhere(), Sort: "created"})
		slices.Sort(found)
		require.Equal(t, want, found, filter)
	}
	require.Equal(t, []string{keys[1], keys[0], keys[2]}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Sort: "-f.cost"}))
	require.Equal(t, []string{keys[0], keys[1], keys[2]}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{Sort: "f.team"}))
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{FieldFilters: where(t, map[string]any{"cost": "contains:3"}).GetWhere()}, "f.cost"), "range")
	_, err = b.client.ListWorkItems(seat(t.Context(), "designer"), &trackerv1.ListWorkItemsRequest{FieldFilters: where(t, map[string]any{"secret": "x"}).GetWhere()})
	refusal(t, err, fault.Invalid, "f.secret")
	board := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "f.team", Totals: []string{"sum:f.cost"}}})
	require.Len(t, board.GetGroups(), 3)
	require.Equal(t, []string{keys[1]}, board.GetGroups()[1].GetKeys())
	require.InDelta(t, 13, board.GetTotals()[0].GetValue(), 0)
	for value, count := range map[string]int32{"10": 1, "11": 0, "many": 0, "true": 0, "NaN": 0, "": 1} {
		column := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "f.cost", Group: proto.String(value)}})
		require.Equal(t, count, column.GetTotal(), value)
	}
	row := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{FieldFilters: where(t, map[string]any{"cost": 10}).GetWhere()}).GetItems()[0]
	require.InDelta(t, 10, row.GetFields().GetFields()["cost"].GetNumberValue(), 0)
}

func TestAnyOneOfTheAlternativesMustHoldTooAndWhatIsClosedMayBeHidden(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	one := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "one", Assignee: "designer"})
	two := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "two", Priority: "urgent"})
	put(t, b, &trackerv1.CreateWorkItemRequest{Title: "three"})
	closed := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "four", Assignee: "designer", Status: "closed"})
	either := func(conditions map[string]any) []string {
		q := where(t, conditions)
		for _, alternative := range []map[string]any{{"assignee": "designer"}, {"priority": "urgent"}} {
			q.Any = append(q.Any, where(t, alternative).GetWhere())
		}
		keys := listKeys(t, b, &trackerv1.ListWorkItemsRequest{Query: q})
		slices.Sort(keys)
		return keys
	}
	require.Equal(t, []string{one, two, closed}, either(nil))
	require.Equal(t, []string{one, two}, either(map[string]any{"show_closed": "false"}))
	require.Equal(t, []string{one, two, closed}, either(map[string]any{"show_closed": "recent:1d"}))
	require.Equal(t, []string{closed}, either(map[string]any{"status_group": "closed"}))
}

func TestAnAnswerOver64KiBIsRefusedNamingWhatNarrowsItAndAUsualPageFits(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	priorities := []string{"none", "low", "normal", "high", "urgent"}
	for n := range 120 {
		put(t, b, &trackerv1.CreateWorkItemRequest{
			Title: fmt.Sprintf("%d %s", n, strings.Repeat("x", 60)), Assignee: "designer", Due: "2026-12-01", Priority: priorities[n%5],
		})
	}
	res := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{})
	require.Equal(t, int32(50), res.GetCount())
	require.Equal(t, int32(120), res.GetTotal())
	board := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{Query: &trackerv1.WorkQuery{GroupBy: "priority"}})
	require.Equal(t, int32(100), board.GetCount(), "a usual board fits too")
	for n := range 100 {
		put(t, b, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprintf("%d %s", n, strings.Repeat("y", 200))})
	}
	require.Contains(t, listRefused(t, b, &trackerv1.ListWorkItemsRequest{Limit: 500}, ""), "smaller limit")
}
