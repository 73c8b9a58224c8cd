package tracker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// fielded is an item with a value for an open field, one that is hidden from agents, and one of bugs alone.
func fielded(t *testing.T, b bundle) string {
	t.Helper()
	_, err := b.client.WriteProject(operator(t.Context()), &trackerv1.WriteProjectRequest{Project: "OPS", Fields: []*trackerv1.FieldDeclaration{
		{Slug: "severity", Name: "Severity", Type: "number"},
		{Slug: "salary", Name: "Salary", Type: "number", HideFromAgents: true},
		{Slug: "browser", Name: "Browser", Type: "text", AppliesTo: []string{"bug"}},
	}})
	require.NoError(t, err)
	fields, err := structpb.NewStruct(map[string]any{"severity": 3, "salary": 5000, "browser": "Lynx"})
	require.NoError(t, err)
	res, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "Fields", Project: "OPS", Type: "bug", Fields: fields})
	require.NoError(t, err)
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: res.GetKey(), Type: ptr("task")})
	raise, err := structpb.NewStruct(map[string]any{"salary": 6000, "severity": 4})
	require.NoError(t, err)
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: res.GetKey(), Fields: raise})
	return res.GetKey()
}

func ptr[T any](v T) *T { return &v }

func readAs(ctx context.Context, t *testing.T, b bundle, key string) *trackerv1.GetWorkItemResponse {
	t.Helper()
	res, err := b.client.GetWorkItem(ctx, &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	return res
}

func TestCustomFieldsAreFlaggedHiddenAndForeignAndHiddenOnesAreNotShownToAgents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := fielded(t, b)
	shown := map[string]*trackerv1.ItemField{}
	for _, f := range readAs(operator(t.Context()), t, b, key).GetFields() {
		shown[f.GetSlug()] = f
	}
	require.Len(t, shown, 3)
	require.InDelta(t, 4, shown["severity"].GetValue().GetNumberValue(), 0)
	require.Equal(t, "Severity", shown["severity"].GetName())
	require.True(t, shown["salary"].GetHidden())
	require.True(t, shown["browser"].GetForeign(), "a task has no browser any more")
	agents := readAs(seat(t.Context(), "ops-lead"), t, b, key)
	require.NotContains(t, fmt.Sprint(agents.GetFields()), "salary")
	require.NotContains(t, fmt.Sprint(agents.GetItem().GetFields()), "salary")
	require.Contains(t, fmt.Sprint(agents.GetFields()), "severity")
	require.NotContains(t, fmt.Sprint(agents.GetHistory()), "salary", "nor by history")
	require.Contains(t, fmt.Sprint(readAs(operator(t.Context()), t, b, key).GetHistory()), "salary")
	feed, err := b.client.TaskActivity(seat(t.Context(), "ops-lead"), &trackerv1.TaskActivityRequest{Project: "OPS"})
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(feed.GetRows()), "salary", "nor by the feed")
}

func TestAValueThatNothingDeclaresIsFlaggedUndeclared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := fielded(t, b)
	_, err := b.client.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: key, Project: "SHOP"})
	require.NoError(t, err)
	got := readAs(operator(t.Context()), t, b, key)
	require.Equal(t, "SHOP-1", got.GetItem().GetKey())
	require.Equal(t, []string{key}, got.GetItem().GetFormerKeys())
	require.Len(t, got.GetFields(), 3)
	for _, f := range got.GetFields() {
		require.True(t, f.GetUndeclared())
	}
}

func TestARemovedItemReadsAndTakesNoComment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := file(t, b, "Whole")
	part, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "Part", Parent: parent.GetKey()})
	require.NoError(t, err)
	question := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: part.GetKey(), Body: "?", Ask: "ines"})
	_, err = b.client.RemoveWorkItem(operator(t.Context()), &trackerv1.RemoveWorkItemRequest{Item: parent.GetKey(), Subtree: true})
	require.NoError(t, err)
	got := readAs(operator(t.Context()), t, b, part.GetKey())
	require.Equal(t, "ci", got.GetItem().GetRemoval().GetActor())
	require.Equal(t, parent.GetKey(), got.GetItem().GetRemoval().GetRemovedWith())
	require.Empty(t, readAs(operator(t.Context()), t, b, parent.GetKey()).GetItem().GetRemoval().GetRemovedWith())
	for _, req := range []*trackerv1.CommentOnWorkItemRequest{{Body: "x"}, {Body: "x", Ask: "designer"}, {Body: "x", Answers: question.GetCommentId()}} {
		req.Item = part.GetKey()
		_, err := b.client.CommentOnWorkItem(member(t.Context(), "ines"), req)
		require.Equal(t, "ITEM_REMOVED", refusal(t, err, "invalid", "item").Reason)
	}
	require.Empty(t, mine(member(t.Context(), "ines"), t, b).GetAskedOfMe(), "what is in the trash asks nothing")
	_, err = b.client.SetPriorities(member(t.Context(), "ines"), &trackerv1.SetPrioritiesRequest{Items: []string{part.GetKey()}})
	require.Equal(t, "ITEM_REMOVED", refusal(t, err, "invalid", "items[0]").Reason)
}

func TestHistoryNamesItemsByIDAndTheAnswerSaysWhatTheyAreCalled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := file(t, b, "First"), file(t, b, "Second")
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: first.GetKey(), WaitingOn: &trackerv1.SetChange{Add: []string{second.GetKey()}}})
	got := readAs(operator(t.Context()), t, b, first.GetKey())
	require.True(t, got.GetItem().GetBlocked())
	require.Equal(t, second.GetKey(), got.GetItem().GetWaitingOn()[0].GetItem())
	require.Len(t, got.GetLinks(), 1)
	require.Contains(t, fmt.Sprint(got.GetHistory()[0].GetFields()), second.GetId())
	require.Contains(t, fmt.Sprint(got.GetKeys()), second.GetKey())
	feed := activity(t, b, &trackerv1.TaskActivityRequest{Item: first.GetKey(), Kinds: []string{"relations"}})
	require.Contains(t, fmt.Sprint(feed.GetKeys()), second.GetKey())
}
