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

// declare replaces the workspace's fields.
func declare(t *testing.T, b bundle, fields ...*trackerv1.FieldDeclaration) *trackerv1.WriteWorkCatalogueResponse {
	t.Helper()
	res, err := b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{Fields: fields})
	require.NoError(t, err)
	return res
}

func catalogue(t *testing.T, b bundle, archived bool) *trackerv1.GetWorkCatalogueResponse {
	t.Helper()
	res, err := b.client.GetWorkCatalogue(operator(t.Context()), &trackerv1.GetWorkCatalogueRequest{Archived: archived})
	require.NoError(t, err)
	return res
}

func manyOptions(n int) []*trackerv1.FieldOption {
	options := make([]*trackerv1.FieldOption, 0, n)
	for at := range n {
		options = append(options, &trackerv1.FieldOption{Slug: fmt.Sprint("option-", at), Name: fmt.Sprint("Option number ", at)})
	}
	return options
}

func TestEachListOfTheCatalogueReplacesTheOneThereIsAndCountsItsOwnVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := catalogue(t, b, false)
	require.Len(t, before.GetTypes(), 7)
	require.Zero(t, before.GetPolicyVersion())
	res, err := b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{
		Types:  []*trackerv1.WorkType{{Slug: "bug", Label: "Defect"}, {Slug: "incident", Label: "Incident"}},
		Fields: []*trackerv1.FieldDeclaration{{Slug: "severity", Name: "Severity", Type: "dropdown", Options: manyOptions(2), AppliesTo: []string{"incident"}}},
	})
	require.NoError(t, err)
	require.Equal(t, "applied", res.GetOutcome())
	require.Equal(t, int32(2), res.GetVersion())
	after := catalogue(t, b, false)
	require.Len(t, after.GetTypes(), 8)
	require.Equal(t, "Defect", after.GetTypes()[1].GetLabel())
	require.True(t, after.GetTypes()[1].GetBuiltin())
	require.Equal(t, "ci", after.GetFields()[0].GetAuthor())
	require.NotEmpty(t, after.GetFields()[0].GetId())
	require.Equal(t, []int32{1, 1}, []int32{after.GetTypesVersion(), after.GetFieldsVersion()})

	_, err = b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{Clear: []string{"fields"}})
	require.NoError(t, err)
	after = catalogue(t, b, false)
	require.Empty(t, after.GetFields())
	require.Equal(t, []int32{1, 2}, []int32{after.GetTypesVersion(), after.GetFieldsVersion()})
	require.True(t, catalogue(t, b, true).GetFields()[0].GetArchived(), "a field that is left out is archived")
	_, err = b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{Types: []*trackerv1.WorkType{{Slug: "bug"}}})
	require.NoError(t, err)
	require.Len(t, catalogue(t, b, false).GetTypes(), 7, "and so is a type")
	require.Len(t, catalogue(t, b, true).GetTypes(), 8)
}

func TestBothListsAreCheckedBeforeEitherIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{
		Types:  []*trackerv1.WorkType{{Slug: "incident", Label: "Incident"}},
		Fields: []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "text", AppliesTo: []string{"saga"}}},
	})
	refusal(t, err, fault.Invalid, "fields[0].applies_to[0]")
	require.Len(t, catalogue(t, b, true).GetTypes(), 7)
	for _, write := range []*trackerv1.WriteWorkCatalogueRequest{
		{},
		{Clear: []string{"labels"}},
		{Types: []*trackerv1.WorkType{{Slug: "Bad Slug"}}},
		{Fields: []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "colour"}}},
		{Fields: []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "rollup"}}},
		{Fields: []*trackerv1.FieldDeclaration{{Slug: "x", Name: "X", Type: "text"}}, Clear: []string{"fields"}},
		{Types: []*trackerv1.WorkType{{Slug: "x"}}, Clear: []string{"types"}},
	} {
		_, err := b.client.WriteWorkCatalogue(operator(t.Context()), write)
		require.Equal(t, fault.Invalid, rpc.FromError(err).Class, "%v", write)
	}
}

func TestOnlyAPersonWritesTheCatalogue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	write := &trackerv1.WriteWorkCatalogueRequest{Types: []*trackerv1.WorkType{{Slug: "incident"}}}
	_, err := b.client.WriteWorkCatalogue(seat(t.Context(), "ops-lead"), write)
	refusal(t, err, fault.Forbidden, "")
	_, err = b.client.WriteWorkCatalogue(person(t.Context(), "ines"), write)
	require.NoError(t, err)
}

func TestTheSameCatalogueAgainWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "note", Name: "Note", Type: "text"})
	res := declare(t, b, &trackerv1.FieldDeclaration{Slug: "note", Name: "Note", Type: "text"})
	require.Equal(t, "unchanged", res.GetOutcome())
	require.Empty(t, res.GetPosition())
	require.Equal(t, int32(1), res.GetVersion())
	ctx := rpc.WithOperation(operator(t.Context()), "op-1")
	first, err := b.client.WriteWorkCatalogue(ctx, &trackerv1.WriteWorkCatalogueRequest{Clear: []string{"fields"}})
	require.NoError(t, err)
	again, err := b.client.WriteWorkCatalogue(ctx, &trackerv1.WriteWorkCatalogueRequest{Clear: []string{"fields"}})
	require.NoError(t, err)
	require.Equal(t, first.GetPosition(), again.GetPosition())
}

func TestTheWorkspaceDoesNotTakeASlugThatAProjectHas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.client.WriteProject(seat(t.Context(), "ops-lead"), &trackerv1.WriteProjectRequest{Fields: []*trackerv1.FieldDeclaration{{Slug: "cost", Name: "Cost", Type: "number"}}})
	require.NoError(t, err)
	_, err = b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{
		Fields: []*trackerv1.FieldDeclaration{{Slug: "cost", Name: "Cost", Type: "number"}},
	})
	require.Contains(t, refusal(t, err, fault.Invalid, "fields[0].slug").Message, "project OPS")
}

func TestAgentsAreNotShownHiddenFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "salary", Name: "Salary", Type: "number", HideFromAgents: true},
		&trackerv1.FieldDeclaration{Slug: "note", Name: "Note", Type: "text"})
	shown := func(ctx context.Context) (catalogue, project int) {
		c, err := b.client.GetWorkCatalogue(ctx, &trackerv1.GetWorkCatalogueRequest{})
		require.NoError(t, err)
		p, err := b.client.DescribeProject(ctx, &trackerv1.DescribeProjectRequest{Project: "OPS"})
		require.NoError(t, err)
		return len(c.GetFields()), len(p.GetFields())
	}
	c, p := shown(seat(t.Context(), "designer"))
	require.Equal(t, []int{1, 1}, []int{c, p})
	c, p = shown(person(t.Context(), "ines"))
	require.Equal(t, []int{2, 2}, []int{c, p})
}

func TestACatalogueThatIsTooLongForAnAnswerIsReadFieldByField(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var fields []*trackerv1.FieldDeclaration
	for n := range 16 {
		fields = append(fields, &trackerv1.FieldDeclaration{Slug: fmt.Sprint("f", n), Name: "F", Type: "labels", Options: manyOptions(128)})
	}
	declare(t, b, fields...)
	_, err := b.client.GetWorkCatalogue(operator(t.Context()), &trackerv1.GetWorkCatalogueRequest{})
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "name some of the fields")
	res, err := b.client.GetWorkCatalogue(operator(t.Context()), &trackerv1.GetWorkCatalogueRequest{Fields: []string{"f3"}})
	require.NoError(t, err)
	require.Len(t, res.GetFields()[0].GetOptions(), 128)

	described, err := b.client.DescribeProject(operator(t.Context()), &trackerv1.DescribeProjectRequest{Project: "OPS"})
	require.NoError(t, err)
	whole, empty := 0, 0
	for _, f := range described.GetFields() {
		require.Equal(t, int32(128), f.GetOptionsTotal())
		require.Len(t, f.GetField().GetOptions(), int(f.GetOptionsShown()), "a list that does not fit comes back empty")
		if f.GetOptionsShown() == 128 {
			whole++
		} else {
			require.Zero(t, f.GetOptionsShown())
			empty++
		}
	}
	require.Positive(t, whole)
	require.Positive(t, empty)
}

func TestReadsOfTheCatalogueAndOfProjectsAreServedFromNoEarlierThanAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	written := declare(t, b, &trackerv1.FieldDeclaration{Slug: "note", Name: "Note", Type: "text"}).GetPosition()
	for _, read := range []func(position string) error{
		func(position string) error {
			_, err := b.client.GetWorkCatalogue(operator(t.Context()), &trackerv1.GetWorkCatalogueRequest{MinPosition: position})
			return err
		},
		func(position string) error {
			_, err := b.client.ListProjects(operator(t.Context()), &trackerv1.ListProjectsRequest{MinPosition: position})
			return err
		},
		func(position string) error {
			_, err := b.client.DescribeProject(operator(t.Context()), &trackerv1.DescribeProjectRequest{Project: "OPS", MinPosition: position})
			return err
		},
	} {
		require.NoError(t, read(written))
		require.Equal(t, "BEHIND", refusal(t, read("tracker@1:999999"), fault.Unavailable, "min_position").Reason)
		require.Equal(t, "WRONG_STREAM", refusal(t, read("knowledge@1:1"), fault.Invalid, "min_position").Reason)
	}
}

func TestManyWritersOfTheCatalogueLoseNoVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const callers = 16
	var group sync.WaitGroup
	errs := make([]error, callers)
	for n := range callers {
		group.Go(func() {
			_, errs[n] = b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{
				Types:  []*trackerv1.WorkType{{Slug: fmt.Sprint("kind-", n)}},
				Fields: []*trackerv1.FieldDeclaration{{Slug: fmt.Sprint("f", n), Name: strings.Repeat("x", n+1), Type: "text"}},
			})
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	res := catalogue(t, b, true)
	require.Equal(t, []int32{callers, callers}, []int32{res.GetTypesVersion(), res.GetFieldsVersion()})
	require.Len(t, res.GetFields(), callers, "none was lost: all but the last are archived")
	require.Len(t, catalogue(t, b, false).GetFields(), 1)
	var rows int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select count(*) from history where item_id is null and kind = 'catalogue_updated' and project = ''`).Scan(&rows))
	require.Equal(t, 2*callers, rows, "one row a list and write")
}

func TestAChangeOfAProjectLeavesAsAnEventUnderItsKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "test")
	require.NoError(t, err)
	_, err = b.client.WriteProject(seat(t.Context(), "designer"), &trackerv1.WriteProjectRequest{Project: "OPS", TagsAdd: []*trackerv1.NewLabel{{Slug: "urgent"}}})
	require.NoError(t, err)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "note", Name: "Note", Type: "text"})
	told := map[string]*trackerv1.ProjectChanged{}
	for len(told) < 2 {
		messages, err := subscription.Fetch(t.Context(), 10)
		require.NoError(t, err)
		for _, m := range messages {
			e := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, e))
			told[m.Key] = e.GetProjectChanged()
		}
	}
	require.Equal(t, "OPS", told["OPS"].GetProject())
	require.Equal(t, "project_updated", told["OPS"].GetChange().GetKind())
	require.Equal(t, "urgent", told["OPS"].GetChange().GetFields().GetFields()["tags"].GetStructValue().GetFields()["to"].GetStringValue())
	require.Empty(t, told["workspace"].GetProject())
	require.Equal(t, "catalogue_updated", told["workspace"].GetChange().GetKind())
}
