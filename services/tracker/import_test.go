package tracker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func bring(t *testing.T, b bundle, dryRun bool, items ...*trackerv1.ImportedItem) []*trackerv1.ImportResult {
	t.Helper()
	res, err := b.client.ImportWorkItems(operator(t.Context()), &trackerv1.ImportWorkItemsRequest{
		Project: "OPS", Source: "github:acme/shop", Items: items, DryRun: dryRun,
	})
	require.NoError(t, err)
	require.Len(t, res.GetResults(), len(items))
	require.Equal(t, dryRun, res.GetPosition() == "" && res.GetResults()[0].GetOutcome() != "there" || dryRun)
	return res.GetResults()
}

func old(name, title string) *trackerv1.ImportedItem {
	return &trackerv1.ImportedItem{ExternalId: name, Title: title, Status: "todo", Reporter: "octocat"}
}

func TestAnImportedItemKeepsItsTimesItsThreadAndWhoSaidWhat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created := time.Date(2019, 3, 1, 10, 0, 0, 0, time.UTC)
	one := old("7", "The shop is slow")
	one.Status, one.Type, one.Labels, one.Due = "done", "bug", []string{"good first issue", "p1"}, "2019-04-01"
	one.CreateTime, one.UpdateTime, one.DoneTime = timestamppb.New(created), timestamppb.New(created.Add(48*time.Hour)), timestamppb.New(created.Add(24*time.Hour))
	one.Comments = []*trackerv1.ImportedComment{{Author: "hubot", Body: "Same here, @ops-lead", CreateTime: timestamppb.New(created.Add(time.Hour))}}
	result := bring(t, b, false, one)[0]
	require.Equal(t, "filed", result.GetOutcome(), result.GetProblem())
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: result.GetKey()})
	require.NoError(t, err)
	item := got.GetItem()
	require.Equal(t, "bug", item.GetType())
	require.Equal(t, "octocat", item.GetReporter())
	require.Equal(t, []string{"good-first-issue", "p1"}, item.GetLabels())
	require.Equal(t, created, item.GetCreateTime().AsTime())
	require.Equal(t, created.Add(24*time.Hour), item.GetDoneTime().AsTime())
	require.Len(t, got.GetComments(), 1)
	require.Equal(t, "hubot", got.GetComments()[0].GetAuthor())
	require.Empty(t, got.GetComments()[0].GetMentions(), "nobody is told of what was said long ago")
	require.Len(t, got.GetHistory(), 1)
	require.Equal(t, "imported", got.GetHistory()[0].GetKind())
	require.Equal(t, "ci", got.GetHistory()[0].GetActor())
	require.False(t, got.GetHistory()[0].GetNotified())
}

func TestAnImportIsRepeatedWithoutHarm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := bring(t, b, false, old("1", "One"), old("2", "Two"))
	again := bring(t, b, false, old("2", "Two, changed there"), old("3", "Three"))
	require.Equal(t, "there", again[0].GetOutcome())
	require.Equal(t, first[1].GetKey(), again[0].GetKey())
	require.Equal(t, "filed", again[1].GetOutcome())
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: first[1].GetKey()})
	require.NoError(t, err)
	require.Equal(t, "Two", got.GetItem().GetTitle(), "what is here stays as it is")
	projects, err := b.client.ListProjects(operator(t.Context()), &trackerv1.ListProjectsRequest{Q: "OPS"})
	require.NoError(t, err)
	require.EqualValues(t, 3, projects.GetProjects()[0].GetTaskCounts().GetTodo())
}

func TestWhatIsWrongWithOneImportedItemRefusesThatOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long, status, nobody := old("1", strings.Repeat("x", 257)), old("2", "x"), old("3", "x")
	status.Status = "doing"
	nobody.Assignee = "nobody-here"
	for _, dryRun := range []bool{true, false} {
		results := bring(t, b, dryRun, long, status, nobody, old("4", "good"), old("4", "twice"))
		require.Equal(t, "refused", results[0].GetOutcome())
		require.Contains(t, results[0].GetProblem(), "title")
		require.Contains(t, results[1].GetProblem(), "status")
		require.Contains(t, results[2].GetProblem(), "assignee names nobody")
		require.Contains(t, results[4].GetProblem(), "twice")
		want := "filed"
		if dryRun {
			want = "would_file"
		}
		require.Equal(t, want, results[3].GetOutcome())
	}
	listed, err := b.client.ListWorkItems(operator(t.Context()), &trackerv1.ListWorkItemsRequest{Project: "OPS"})
	require.NoError(t, err)
	require.EqualValues(t, 1, listed.GetTotal())
}

func TestImportedEdgesAreMadeAsSoonAsBothEndsAreHere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	child, waits := old("child", "Child"), old("waits", "Waits")
	child.Parent, waits.WaitingOn = "parent", []string{"parent", "never"}
	bring(t, b, false, child, waits)
	grand := old("grand", "Grandchild")
	grand.Parent = "child"
	bring(t, b, false, grand)
	parent := bring(t, b, false, old("parent", "Parent"))[0]
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: parent.GetKey()})
	require.NoError(t, err)
	require.Equal(t, []string{"OPS-1"}, got.GetSubtasks())
	require.Len(t, got.GetLinks(), 1)
	require.Equal(t, "blocking", got.GetLinks()[0].GetKind())
	deep, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: "OPS-3"})
	require.NoError(t, err)
	require.EqualValues(t, 3, deep.GetItem().GetDepth())
}

func TestAChainDeeperThanItemsGoIsImportedWithoutItsLastEdges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var chain []*trackerv1.ImportedItem
	for n := range 10 {
		one := old(fmt.Sprint(n), fmt.Sprint("Level ", n))
		if n > 0 {
			one.Parent = fmt.Sprint(n - 1)
		}
		chain = append(chain, one)
	}
	chain[0].Parent = "9" // and it bites its tail
	warned := 0
	for _, result := range bring(t, b, false, chain...) {
		require.Equal(t, "filed", result.GetOutcome())
		warned += len(result.GetWarnings())
	}
	require.Positive(t, warned)
	var deepest int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select max(depth) from items`).Scan(&deepest))
	require.LessOrEqual(t, deepest, 7)
}

func TestASeatImportsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.client.ImportWorkItems(seat(t.Context(), "ops-lead"), &trackerv1.ImportWorkItemsRequest{
		Project: "OPS", Source: "x", Items: []*trackerv1.ImportedItem{old("1", "One")},
	})
	refusal(t, err, fault.Forbidden, "")
	_, err = b.client.ImportWorkItems(operator(t.Context()), &trackerv1.ImportWorkItemsRequest{
		Project: "NOPE", Source: "x", Items: []*trackerv1.ImportedItem{old("1", "One")},
	})
	refusal(t, err, fault.Invalid, "project")
}
