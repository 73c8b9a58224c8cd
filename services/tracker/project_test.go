package tracker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func settle(ctx context.Context, t *testing.T, b bundle, req *trackerv1.WriteProjectRequest) *trackerv1.WriteProjectResponse {
	t.Helper()
	res, err := b.client.WriteProject(ctx, req)
	require.NoError(t, err)
	return res
}

func describe(t *testing.T, b bundle, key string) *trackerv1.DescribeProjectResponse {
	t.Helper()
	res, err := b.client.DescribeProject(operator(t.Context()), &trackerv1.DescribeProjectRequest{Project: key})
	require.NoError(t, err)
	return res
}

// keysOf answers the projects of a list.
func keysOf(ctx context.Context, t *testing.T, b bundle, req *trackerv1.ListProjectsRequest) []string {
	t.Helper()
	res, err := b.client.ListProjects(ctx, req)
	require.NoError(t, err)
	var keys []string
	for _, p := range res.GetProjects() {
		keys = append(keys, p.GetKey())
	}
	require.Len(t, keys, int(res.GetTotal()))
	return keys
}

func TestAnySeatDeclaresLabelsAndOnlyTheLeadOrAPersonDoesMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	settle(seat(t.Context(), "designer"), t, b, &trackerv1.WriteProjectRequest{Project: "ops", TagsAdd: []*trackerv1.NewLabel{{Slug: "urgent", Label: "Urgent!", Color: "#ff0000"}}})
	for field, req := range map[string]*trackerv1.WriteProjectRequest{
		"tags_rename":      {TagsRename: []*trackerv1.LabelName{{Slug: "urgent", Label: "Now"}}},
		"tags_archive":     {TagsArchive: []string{"urgent"}},
		"fields":           {Fields: []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "text"}}},
		"default_assignee": {DefaultAssignee: proto.String("designer")},
		"target_date":      {TargetDate: proto.String("2026-12-24")},
	} {
		req.Project = "OPS"
		_, err := b.client.WriteProject(seat(t.Context(), "designer"), req)
		require.Contains(t, refusal(t, err, fault.Forbidden, field).Message, "ops-lead")
		settle(seat(t.Context(), "ops-lead"), t, b, req)
		settle(person(t.Context(), "ines"), t, b, req)
		settle(operator(t.Context()), t, b, req)
	}
	p := describe(t, b, "OPS")
	require.Equal(t, "designer", p.GetProject().GetDefaultAssignee())
	require.Equal(t, "2026-12-24", p.GetProject().GetTargetDate())
	require.Empty(t, p.GetLabels(), "the only one is archived")
	for _, cleared := range []*trackerv1.WriteProjectRequest{{DefaultAssignee: proto.String("")}, {TargetDate: proto.String("")}, {Clear: []string{"fields"}}} {
		settle(seat(t.Context(), "ops-lead"), t, b, cleared)
	}
	p = describe(t, b, "OPS")
	require.Empty(t, p.GetProject().GetDefaultAssignee())
	require.Empty(t, p.GetProject().GetTargetDate())
	require.Empty(t, p.GetFields())
}

func TestOnlyAPersonArchivesAProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.client.WriteProject(seat(t.Context(), "ops-lead"), &trackerv1.WriteProjectRequest{Archived: proto.Bool(true)})
	refusal(t, err, fault.Forbidden, "archived")
	settle(person(t.Context(), "ines"), t, b, &trackerv1.WriteProjectRequest{Project: "OPS", Archived: proto.Bool(true)})
	_, err = b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "late"})
	refusal(t, err, fault.Invalid, "project")
	require.Equal(t, []string{"SHOP"}, keysOf(operator(t.Context()), t, b, &trackerv1.ListProjectsRequest{}))
	require.Equal(t, []string{"OPS"}, keysOf(operator(t.Context()), t, b, &trackerv1.ListProjectsRequest{ArchivedOnly: true}))
	require.Equal(t, []string{"OPS", "SHOP"}, keysOf(operator(t.Context()), t, b, &trackerv1.ListProjectsRequest{Archived: true}))
	listed, err := b.client.ListProjects(operator(t.Context()), &trackerv1.ListProjectsRequest{Q: "nothing"})
	require.NoError(t, err)
	require.Equal(t, int32(1), listed.GetCensus().GetActive())
	require.Equal(t, int32(1), listed.GetCensus().GetArchived())
	settle(operator(t.Context()), t, b, &trackerv1.WriteProjectRequest{Project: "OPS", Archived: proto.Bool(false)})
	file(t, b, "in time")
}

func TestBothHalvesAnswerAReceiptAndTheJoinedOneIsTheLatest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := &trackerv1.WriteProjectRequest{TagsAdd: []*trackerv1.NewLabel{{Slug: "Back End"}, {Slug: "backk-end"}}, TargetDate: proto.String("2026-12-24")}
	ctx := rpc.WithOperation(seat(t.Context(), "ops-lead"), "op-1")
	res := settle(ctx, t, b, req)
	require.Equal(t, "applied", res.GetOutcome())
	require.Equal(t, res.GetPolicy().GetPosition(), res.GetPosition())
	require.NotEqual(t, res.GetTags().GetPosition(), res.GetPosition())
	require.Equal(t, int32(3), res.GetVersion())
	require.Contains(t, res.GetTags().GetWarnings()[0], "nearly back-end")
	require.True(t, proto.Equal(res, settle(ctx, t, b, req)), "the same operation again is answered as it was")
	again := settle(seat(t.Context(), "ops-lead"), t, b, req)
	require.Equal(t, "unchanged", again.GetOutcome(), "and repeating the call is harmless")
	require.Empty(t, again.GetPosition())
	require.Equal(t, int32(3), again.GetVersion())
	require.Nil(t, settle(seat(t.Context(), "ops-lead"), t, b, &trackerv1.WriteProjectRequest{TargetDate: proto.String("")}).GetTags())
}

func TestARefusedSecondHalfNamesWhatLanded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := &trackerv1.WriteProjectRequest{
		TagsAdd: []*trackerv1.NewLabel{{Slug: "urgent"}},
		Fields:  []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "text", AppliesTo: []string{"saga"}}},
	}
	_, err := b.client.WriteProject(seat(t.Context(), "ops-lead"), req)
	f := refusal(t, err, fault.Invalid, "fields[0].applies_to[0]")
	require.Contains(t, f.Message, "the labels stand")
	require.Equal(t, "tags", f.Facts["landed"])
	require.Regexp(t, `^tracker@1:\d+$`, f.Facts["landed_position"])
	require.Len(t, describe(t, b, "OPS").GetLabels(), 1)
	_, err = b.client.WriteProject(seat(t.Context(), "ops-lead"), req)
	require.NotContains(t, refusal(t, err, fault.Invalid, "fields[0].applies_to[0]").Message, "the labels stand", "nothing landed the second time")
}

func TestWhatAProjectWriteSaysWronglyIsRefusedByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("x", 65)
	for field, req := range map[string]*trackerv1.WriteProjectRequest{
		"":                     {},
		"tags_add[0].slug":     {TagsAdd: []*trackerv1.NewLabel{{Slug: "!!!"}}},
		"tags_add[0].color":    {TagsAdd: []*trackerv1.NewLabel{{Slug: "a", Color: "red"}}},
		"tags_add[0].label":    {TagsAdd: []*trackerv1.NewLabel{{Slug: "a", Label: long}}},
		"tags_rename[0].slug":  {TagsRename: []*trackerv1.LabelName{{Slug: "nope", Label: "x"}}},
		"tags_rename[0].label": {TagsRename: []*trackerv1.LabelName{{Slug: "nope", Label: long}}},
		"tags_archive[0]":      {TagsArchive: []string{"nope"}},
		"default_assignee":     {DefaultAssignee: proto.String("bob")},
		"target_date":          {TargetDate: proto.String("2026-02-30")},
		"clear":                {Clear: []string{"fields"}, Fields: []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "text"}}},
		"fields[0].options":    {Fields: []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "dropdown"}}},
	} {
		_, err := b.client.WriteProject(seat(t.Context(), "ops-lead"), req)
		refusal(t, err, fault.Invalid, field)
	}
	_, err := b.client.WriteProject(operator(t.Context()), &trackerv1.WriteProjectRequest{Project: "OPT", Archived: proto.Bool(true)})
	require.Contains(t, refusal(t, err, fault.NotFound, "project").Message, "the nearest are OPS, SHOP")
}

func TestDescribeProjectSaysHowWorkIsFiled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{
		Types: []*trackerv1.WorkType{{Slug: "incident", Label: "Incident"}, {Slug: "chore", Label: "Chore", Archived: true}},
		Fields: []*trackerv1.FieldDeclaration{
			{Slug: "note", Name: "Note", Type: "text"}, {Slug: "impact", Name: "Impact", Type: "number", AppliesTo: []string{"incident"}, Required: true},
		},
	})
	require.NoError(t, err)
	note := catalogue(t, b, false).GetFields()[0]
	note.Name, note.Pinned = "What to know", true
	settle(seat(t.Context(), "ops-lead"), t, b, &trackerv1.WriteProjectRequest{
		Fields:  []*trackerv1.FieldDeclaration{note, {Slug: "shelf", Name: "Shelf", Type: "dropdown", Options: manyOptions(3)}},
		TagsAdd: []*trackerv1.NewLabel{{Slug: "urgent", Label: "Urgent!", Description: "Today"}},
	})
	res, err := b.client.DescribeProject(seat(t.Context(), "ops-lead"), &trackerv1.DescribeProjectRequest{})
	require.NoError(t, err)
	var statuses, types, fields []string
	for _, s := range res.GetStatuses() {
		statuses = append(statuses, s.GetStatus()+":"+s.GetStatusGroup())
		require.NotEmpty(t, s.GetMeaning())
	}
	require.Equal(t, []string{"todo:not_started", "in_progress:active", "in_review:active", "done:done", "cancelled:done", "closed:closed"}, statuses)
	for _, w := range res.GetTypes() {
		types = append(types, w.GetSlug())
	}
	require.Equal(t, []string{"task", "bug", "epic", "story", "spike", "milestone", "incident"}, types)
	for _, f := range res.GetFields() {
		fields = append(fields, f.GetField().GetSlug()+":"+f.GetDeclaredAt())
	}
	require.Equal(t, []string{"impact:workspace", "note:project", "shelf:project"}, fields, "required ones first")
	require.Equal(t, []string{note.GetId()}, res.GetShadowed())
	require.Len(t, res.GetFields()[2].GetField().GetOptions(), 3)
	require.Equal(t, int32(1), res.GetLabelsTotal())
	require.Equal(t, "Today", res.GetLabels()[0].GetDescription())
	require.Equal(t, "ops-lead", res.GetProject().GetLead())
	require.True(t, res.GetProject().GetUnitResolved())

	res, err = b.client.DescribeProject(operator(t.Context()), &trackerv1.DescribeProjectRequest{Project: "ops", ForType: "Bug"})
	require.NoError(t, err)
	require.Len(t, res.GetFields(), 2)
	_, err = b.client.DescribeProject(operator(t.Context()), &trackerv1.DescribeProjectRequest{Project: "OPS", ForType: "saga"})
	refusal(t, err, fault.Invalid, "for_type")
	_, err = b.client.DescribeProject(operator(t.Context()), &trackerv1.DescribeProjectRequest{Project: "SHP"})
	require.Contains(t, refusal(t, err, fault.NotFound, "project").Message, "SHOP")
	_, err = b.client.DescribeProject(seat(t.Context(), "designer"), &trackerv1.DescribeProjectRequest{})
	refusal(t, err, fault.Invalid, "project")
}

func TestLabelsBeyondWhatAnAnswerHoldsAreCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 8 {
		req := &trackerv1.WriteProjectRequest{}
		for m := range 64 {
			req.TagsAdd = append(req.TagsAdd, &trackerv1.NewLabel{Slug: fmt.Sprintf("label-%d-%d", n, m), Description: strings.Repeat("d", 500)})
		}
		settle(seat(t.Context(), "ops-lead"), t, b, req)
	}
	res := describe(t, b, "OPS")
	require.Equal(t, int32(512), res.GetLabelsTotal())
	require.NotEmpty(t, res.GetLabels())
	require.Less(t, len(res.GetLabels()), 512)
	_, err := b.client.WriteProject(seat(t.Context(), "ops-lead"), &trackerv1.WriteProjectRequest{TagsAdd: []*trackerv1.NewLabel{{Slug: "more"}}})
	require.Contains(t, refusal(t, err, fault.Invalid, "tags_add").Message, "512")
}

func TestProjectsAreSortedWithMissingValuesLastBothWays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := operator(t.Context())
	_, err := b.pool.Exec(t.Context(), `insert into projects (key, name, unit, epoch, target_date) values ('AAA', 'Zulu', '', 1, null), ('BBB', 'Yankee', 'gone', 1, '2026-01-01')`)
	require.NoError(t, err)
	settle(ctx, t, b, &trackerv1.WriteProjectRequest{Project: "OPS", TargetDate: proto.String("2026-06-01")})
	file(t, b, "one")
	for sort, keys := range map[string][]string{
		"": {"AAA", "BBB", "OPS", "SHOP"}, "-key": {"SHOP", "OPS", "BBB", "AAA"}, "name": {"OPS", "SHOP", "BBB", "AAA"},
		"target": {"BBB", "OPS", "AAA", "SHOP"}, "-target": {"OPS", "BBB", "AAA", "SHOP"},
		"unit": {"BBB", "OPS", "SHOP", "AAA"}, "-unit": {"SHOP", "OPS", "BBB", "AAA"},
		"-todo": {"OPS", "AAA", "BBB", "SHOP"}, "last_change": {"OPS", "AAA", "BBB", "SHOP"}, "-last_change": {"OPS", "AAA", "BBB", "SHOP"},
	} {
		require.Equal(t, keys, keysOf(ctx, t, b, &trackerv1.ListProjectsRequest{Sort: sort}), sort)
	}
	_, err = b.client.ListProjects(ctx, &trackerv1.ListProjectsRequest{Sort: "colour"})
	require.Contains(t, refusal(t, err, fault.Invalid, "sort").Message, "last_change")
}

func TestProjectsAreFoundByKeyNamePurposeAndUnit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := operator(t.Context())
	for q, keys := range map[string][]string{"op": {"OPS", "SHOP"}, "operat": {"OPS"}, "SHOP FLOOR": {"OPS"}, "%": nil, "_": nil} {
		require.Equal(t, keys, keysOf(ctx, t, b, &trackerv1.ListProjectsRequest{Q: q}), q)
	}
	for unit, keys := range map[string][]string{"operations": {"OPS"}, "OPERATIONS": {"OPS"}, "Shop": {"SHOP"}, "sales": nil} {
		require.Equal(t, keys, keysOf(ctx, t, b, &trackerv1.ListProjectsRequest{Unit: unit}), unit)
	}
}

func TestAProjectTellsItsCountsAndItsLastChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	listed, err := b.client.ListProjects(operator(t.Context()), &trackerv1.ListProjectsRequest{Q: "OPS"})
	require.NoError(t, err)
	require.Nil(t, listed.GetProjects()[0].GetLastChange(), "absent when nothing was ever filed")
	key := file(t, b, "one").GetKey()
	_, err = b.client.CommentOnWorkItem(person(t.Context(), "ines"), &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "hello"})
	require.NoError(t, err)
	settle(operator(t.Context()), t, b, &trackerv1.WriteProjectRequest{Project: "OPS", TargetDate: proto.String("2026-06-01")})
	p := describe(t, b, "OPS").GetProject()
	require.Equal(t, int32(1), p.GetTaskCounts().GetTodo())
	require.Equal(t, "ines", p.GetLastChange().GetActor(), "settings do not move it")
	require.Equal(t, "human", p.GetLastChange().GetActorKind())
}

func TestASeatIsShownFiftyProjectsAndAnybodyElseTwoHundred(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.pool.Exec(t.Context(), `insert into projects (key, name, epoch) select 'P' || lpad(n::text, 3, '0'), 'P', 1 from generate_series(1, 210) n`)
	require.NoError(t, err)
	for _, c := range []struct {
		ctx   context.Context
		least int
		most  int
	}{{seat(t.Context(), "designer"), 50, 50}, {operator(t.Context()), 100, 200}} {
		res, err := b.client.ListProjects(c.ctx, &trackerv1.ListProjectsRequest{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(res.GetProjects()), c.least)
		require.LessOrEqual(t, len(res.GetProjects()), c.most)
		require.True(t, res.GetTruncated())
		require.Equal(t, int32(212), res.GetTotal())
		require.Equal(t, int32(212), res.GetCensus().GetActive())
	}
}

func TestManySeatsDeclareTheSameLabelsAndEachIsThereOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const callers = 32
	errs := make([]error, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			req := &trackerv1.WriteProjectRequest{Project: "OPS"}
			for m := range 8 {
				req.TagsAdd = append(req.TagsAdd, &trackerv1.NewLabel{Slug: fmt.Sprint("label-", (n+m)%8)})
			}
			_, errs[n] = b.client.WriteProject(seat(t.Context(), "designer"), req)
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, describe(t, b, "OPS").GetLabels(), 8)
	var rows, version int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select count(*) from history where project = 'OPS' and item_id is null`).Scan(&rows))
	require.NoError(t, b.pool.QueryRow(t.Context(), `select version from projects where key = 'OPS'`).Scan(&version))
	require.Equal(t, version-1, rows, "one row a change")
}
