package tracker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

func mine(ctx context.Context, t *testing.T, b bundle) *trackerv1.MyWorkResponse {
	t.Helper()
	res, err := b.client.MyWork(ctx, &trackerv1.MyWorkRequest{})
	require.NoError(t, err)
	return res
}

func keysIn(items []*trackerv1.WorkItem) []string {
	var keys []string
	for _, i := range items {
		keys = append(keys, i.GetKey())
	}
	return keys
}

func change(t *testing.T, b bundle, req *trackerv1.UpdateWorkItemRequest) {
	t.Helper()
	_, err := b.client.UpdateWorkItem(operator(t.Context()), req)
	require.NoError(t, err)
}

func TestMyWorkIsEmptyListsForWhoHasNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file(t, b, "Not the designer's")
	got := mine(seat(t.Context(), "designer"), t, b)
	require.Equal(t, "designer", got.GetHandle())
	require.Empty(t, got.GetPriorities())
	require.Empty(t, got.GetAssigned())
	require.Empty(t, got.GetWatchingRecent())
}

func TestMyWorkHas20OfEachListTheLatestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 22 {
		_, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("Mine ", n), Assignee: "designer", Body: "x"})
		require.NoError(t, err)
	}
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-21", Status: proto.String("done")})
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-1", Status: proto.String("in_progress")})
	got := mine(seat(t.Context(), "designer"), t, b)
	require.Len(t, got.GetAssigned(), 20)
	require.Equal(t, []string{"OPS-1", "OPS-22", "OPS-20"}, keysIn(got.GetAssigned())[:3], "open ones, the last changed first")
	require.Nil(t, got.GetAssigned()[0].Body)
	require.Len(t, got.GetWatchingRecent(), 20)
	require.Equal(t, []string{"OPS-1", "OPS-21", "OPS-22"}, keysIn(got.GetWatchingRecent())[:3], "finished ones too")
}

func TestMyWorkCarriesTheLiteralCallThatAnswersEachQuestion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Questions").GetKey()
	open := choice()
	open.Recommended = ""
	free := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "When?", Ask: "ines"})
	decided := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Choose.", Ask: "ines", Decision: choice()})
	undecided := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Choose.", Ask: "ines", Decision: open})
	asked := mine(member(t.Context(), "ines"), t, b).GetAskedOfMe()
	require.Len(t, asked, 3, "the oldest first")
	require.Equal(t, `comment_on_work_item {"item":"OPS-1","answers":"`+free.GetCommentId()+`","body":"<your answer>"}`, asked[0].GetAnswerWith())
	require.Equal(t, "When?", asked[0].GetQuestion())
	require.Equal(t, "ops-lead", asked[0].GetAsker())
	require.Equal(t, `comment_on_work_item {"item":"OPS-1","answers":"`+decided.GetCommentId()+`","choice":"a"}`, asked[1].GetAnswerWith())
	require.Equal(t, "Which one?", asked[1].GetQuestion())
	require.Equal(t, "a", asked[1].GetDecision().GetRecommended())
	require.True(t, asked[1].GetOpen())
	require.Equal(t, `comment_on_work_item {"item":"OPS-1","answers":"`+undecided.GetCommentId()+`","choice":"<a or b>"}`, asked[2].GetAnswerWith())
	say(member(t.Context(), "ines"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Answers: free.GetCommentId(), Body: "Now"})
	require.Len(t, mine(member(t.Context(), "ines"), t, b).GetAskedOfMe(), 2)
}

func TestMyWorkShowsThePrioritiesInTheirOrderAndOpenOnesAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 3 {
		file(t, b, fmt.Sprint("Item ", n))
	}
	_, err := b.client.SetPriorities(member(t.Context(), "ines"), &trackerv1.SetPrioritiesRequest{Items: []string{"OPS-3", "OPS-1", "OPS-2"}})
	require.NoError(t, err)
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-1", Status: proto.String("done")})
	require.Equal(t, []string{"OPS-3", "OPS-2"}, keysIn(mine(member(t.Context(), "ines"), t, b).GetPriorities()))
}

func TestMyWorkShowsStepsThatAreTheCallersAndNotDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Steps").GetKey()
	gesture := func(g *trackerv1.ChecklistGesture) {
		change(t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Checklist: g})
	}
	gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddList{AddList: &trackerv1.AddChecklist{Name: "Setup", Items: []string{"nobody's"}}}})
	for _, step := range []*trackerv1.AddChecklistItem{{Name: "one", Assignee: "designer"}, {Name: "two", Assignee: "ines"}, {Name: "three", Assignee: "designer"}} {
		step.List = "Setup"
		gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddItem{AddItem: step}})
	}
	steps := mine(seat(t.Context(), "designer"), t, b).GetChecklistItems()
	require.Len(t, steps, 2)
	require.Equal(t, "one", steps[0].GetName())
	require.Equal(t, "three", steps[1].GetName())
	require.Equal(t, "Setup", steps[0].GetList())
	require.Equal(t, key, steps[0].GetItem())
	gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_SetDone{SetDone: &trackerv1.SetChecklistItemDone{Item: steps[0].GetId(), Done: true}}})
	require.Len(t, mine(seat(t.Context(), "designer"), t, b).GetChecklistItems(), 1)
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Status: proto.String("done")})
	require.Empty(t, mine(seat(t.Context(), "designer"), t, b).GetChecklistItems(), "what is finished has no steps to do")
}

func TestMyWorkShowsWhatTheCallerHelpsWithAndWhatWasFreedLast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 4 {
		_, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("Item ", n), Assignee: "ines"})
		require.NoError(t, err)
	}
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-1", Collaborators: &trackerv1.SetChange{Add: []string{"designer"}}})
	require.Equal(t, []string{"OPS-1"}, keysIn(mine(seat(t.Context(), "designer"), t, b).GetCollaborating()))
	for _, waiting := range []string{"OPS-1", "OPS-2"} {
		change(t, b, &trackerv1.UpdateWorkItemRequest{Item: waiting, WaitingOn: &trackerv1.SetChange{Add: []string{"OPS-3", "OPS-4"}}})
	}
	freed := func() []string { return keysIn(mine(member(t.Context(), "ines"), t, b).GetUnblockedRecent()) }
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-3", Status: proto.String("done")})
	require.Empty(t, freed(), "each still waits for the other one")
	require.True(t, mine(member(t.Context(), "ines"), t, b).GetAssigned()[1].GetBlocked())
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-2", WaitingOn: &trackerv1.SetChange{Remove: []string{"OPS-4"}}})
	require.Equal(t, []string{"OPS-2"}, freed())
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-4", Status: proto.String("cancelled")})
	require.Equal(t, []string{"OPS-1", "OPS-2"}, freed(), "the one that was freed last comes first")
}
