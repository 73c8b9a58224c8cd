package tracker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func update(ctx context.Context, t *testing.T, b bundle, req *trackerv1.UpdateWorkItemRequest) *trackerv1.UpdateWorkItemResponse {
	t.Helper()
	res, err := b.client.UpdateWorkItem(ctx, req)
	require.NoError(t, err)
	return res
}

// moves says what a row of history tells of one field.
func moves(c *trackerv1.Change, field string) string {
	told := c.GetFields().GetFields()[field].GetStructValue().GetFields()
	return told["from"].GetStringValue() + " → " + told["to"].GetStringValue()
}

func TestOneCallIsOneChangeOfTheMostSpecificKind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Everything at once").GetKey()
	first := file(t, b, "First").GetKey()
	res := update(operator(t.Context()), t, b, &trackerv1.UpdateWorkItemRequest{
		Item: key, Status: proto.String("in_progress"), Assignee: proto.String("designer"), Priority: proto.String("high"), Title: proto.String("All at once"),
		Body: proto.String("How"), IfMatch: proto.Int32(1), Due: proto.String("2026-05-01"), Start: proto.String("2026-04-01T09:00:00+02:00"),
		EstimateMinutes: proto.Int32(30), Points: proto.Float64(3), Labels: []string{"a"}, LabelsCreateMissing: true, RoutingUnit: proto.String("Shop"),
		WaitingOn: adds(first), Collaborators: adds("ines"), Type: proto.String("bug"), Reason: proto.String("you know how"),
		Checklist: &trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddList{AddList: &trackerv1.AddChecklist{Name: "Setup", Items: []string{"one"}}}},
	})
	require.Equal(t, int32(2), res.GetVersion())
	require.Equal(t, []string{"a"}, res.GetLabelsCreated())
	history := rows(t, b, key)
	require.Len(t, history, 2)
	c := history[0]
	require.Equal(t, "status", c.GetKind())
	for field, told := range map[string]string{
		"status": "todo → in_progress", "assignee": " → designer", "priority": "none → high", "title": "Everything at once → All at once",
		"body": "0 bytes → 3 bytes", "due": " → 2026-05-01", "start": " → 2026-04-01T07:00:00Z", "estimate": " → 30", "points": " → 3", "tags": " → a",
		"routing_unit": "operations → shop", "collaborators": " → ines", "type": "task → bug", "checklists": " → Setup: 0 of 1 done",
		"waiting_on": " → " + got(t, b, first).GetId(), "watchers": "ops-lead → ops-lead, designer",
	} {
		require.Equal(t, told, moves(c, field), field)
	}
	require.Equal(t, res.GetPosition(), c.GetPosition())
	i := got(t, b, key)
	require.Equal(t, int32(2), i.GetBodyVersion())
	require.Equal(t, "shop", i.GetRoutingUnit())
	require.Equal(t, "operations", i.GetFiledUnit(), "the unit that it was filed for stays")
	require.True(t, i.GetBlocked())
}

func TestWhatIsLeftOutStaysAndWhatIsClearedGoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := operator(t.Context())
	res, err := create(ctx, b, &trackerv1.CreateWorkItemRequest{
		Title: "Full", Due: "2026-05-01", Start: "2026-04-01", EstimateMinutes: proto.Int32(30), Points: proto.Float64(0), Labels: []string{"a"},
		LabelsCreateMissing: true, Assignee: "designer",
	})
	require.NoError(t, err)
	key := res.GetKey()
	update(ctx, t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Priority: proto.String("low")})
	i := got(t, b, key)
	require.Equal(t, "2026-05-01", i.GetDue())
	require.NotNil(t, i.Points)
	update(ctx, t, b, &trackerv1.UpdateWorkItemRequest{
		Item: key, Due: proto.String(""), Start: proto.String(""), Assignee: proto.String(""), Clear: []string{"estimate_minutes", "points", "labels"},
	})
	i = got(t, b, key)
	require.Empty(t, i.GetDue()+i.GetStart()+i.GetAssignee())
	require.Nil(t, i.EstimateMinutes)
	require.Nil(t, i.Points)
	require.Empty(t, i.GetLabels())
	again := update(ctx, t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Due: proto.String(""), Clear: []string{"labels"}, Assignee: proto.String("")})
	require.Equal(t, "unchanged", again.GetOutcome())
	require.Empty(t, again.GetPosition())
	for _, req := range []*trackerv1.UpdateWorkItemRequest{
		{Points: proto.Float64(1), Clear: []string{"points"}}, {EstimateMinutes: proto.Int32(1), Clear: []string{"estimate_minutes"}}, {Labels: []string{"a"}, Clear: []string{"labels"}},
	} {
		req.Item = key
		_, err := b.client.UpdateWorkItem(ctx, req)
		refusal(t, err, fault.Invalid, "clear")
	}
}

func TestABareListOrAMixIsRefusedNamingBothShapes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Sets").GetKey()
	for field, req := range map[string]*trackerv1.UpdateWorkItemRequest{
		"collaborators": {Collaborators: &trackerv1.SetChange{}},
		"waiting_on":    {WaitingOn: &trackerv1.SetChange{Add: []string{key}, Set: []string{key}}},
		"blocking":      {Blocking: &trackerv1.SetChange{Set: []string{key}, Clear: true}},
		"linked":        {Linked: &trackerv1.SetChange{}},
		"linked_pages":  {LinkedPages: &trackerv1.SetChange{Remove: []string{"x"}, Clear: true}},
	} {
		req.Item = key
		_, err := b.client.UpdateWorkItem(operator(t.Context()), req)
		message := refusal(t, err, fault.Invalid, field).Message
		require.Contains(t, message, `"add"`)
		require.Contains(t, message, `"set"`)
	}
}

func TestHelpersAreColleaguesAndAtMostEight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Helped").GetKey()
	update(operator(t.Context()), t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Collaborators: adds("The Designer", "designer", "@ines")})
	require.Equal(t, []string{"designer", "ines"}, got(t, b, key).GetCollaborators())
	require.Equal(t, "collaborators", rows(t, b, key)[0].GetKind())
	update(operator(t.Context()), t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Collaborators: replaces("ops-lead")})
	require.Equal(t, []string{"ops-lead"}, got(t, b, key).GetCollaborators())
	update(operator(t.Context()), t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Collaborators: &trackerv1.SetChange{Clear: true}})
	require.Empty(t, got(t, b, key).GetCollaborators())
	_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Collaborators: adds("bob")})
	refusal(t, err, fault.Invalid, "collaborators")
	_, err = b.pool.Exec(t.Context(), `update items set collaborators = array['a','b','c','d','e','f','g','h']`)
	require.NoError(t, err)
	_, err = b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Collaborators: adds("ines")})
	require.Contains(t, refusal(t, err, fault.Invalid, "collaborators").Message, "at most 8")
}

func TestWatchingIsAboutTheCallerAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Watched").GetKey()
	designer := seat(t.Context(), "designer")
	update(designer, t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Watch: proto.Bool(true)})
	require.Equal(t, []string{"ops-lead", "designer"}, got(t, b, key).GetWatchers())
	require.Equal(t, "watchers", rows(t, b, key)[0].GetKind())
	update(designer, t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Watch: proto.Bool(false)})
	_, err := b.client.CommentOnWorkItem(designer, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "and yet I speak"})
	require.NoError(t, err)
	require.Equal(t, []string{"ops-lead"}, got(t, b, key).GetWatchers(), "an unwatch survives what would make others watch")
	require.Equal(t, []string{"designer"}, got(t, b, key).GetMuted())
	_, err = b.pool.Exec(t.Context(), `update items set watchers = array(select 'seat-' || n from generate_series(1, 64) n)`)
	require.NoError(t, err)
	_, err = b.client.UpdateWorkItem(designer, &trackerv1.UpdateWorkItemRequest{Item: key, Watch: proto.Bool(true)})
	require.Contains(t, refusal(t, err, fault.Invalid, "watch").Message, "64")
	update(seat(t.Context(), "ops-lead"), t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Watch: proto.Bool(false)})
	_, err = b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Watch: proto.Bool(true)})
	refusal(t, err, fault.Invalid, "watch")
}

func TestOnlyALeadOrAPersonRoutesAnItemToAnotherUnit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Routed").GetKey()
	route := func(ctx context.Context, unit string) error {
		_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: key, RoutingUnit: &unit})
		return err
	}
	f := refusal(t, route(seat(t.Context(), "designer"), "design"), fault.Forbidden, "routing_unit")
	require.Contains(t, f.Message, "ops-lead")
	require.NoError(t, route(seat(t.Context(), "designer"), "operations"), "to say what is so already is nobody's privilege")
	require.NoError(t, route(seat(t.Context(), "ops-lead"), "Design"))
	require.Equal(t, "routed", rows(t, b, key)[0].GetKind())
	require.NoError(t, route(person(t.Context(), "ines"), "shop"))
	require.NoError(t, route(operator(t.Context()), "operations"))
	refusal(t, route(operator(t.Context()), "nowhere"), fault.Invalid, "routing_unit")
}

func TestANewBodyKeepsTheOldOnes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Rewritten").GetKey()
	ctx := operator(t.Context())
	const edits = 104
	for n := range edits {
		_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: key, Body: proto.String(fmt.Sprint("text ", n)), IfMatch: proto.Int32(int32(n + 1))})
		require.NoError(t, err)
	}
	_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: key, Body: proto.String("late"), IfMatch: proto.Int32(edits)})
	f := refusal(t, err, fault.StaleVersion, "if_match")
	require.Equal(t, fmt.Sprint(edits+1), f.Facts["current_version"])
	var kept, oldest int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select count(*), min(version) from item_bodies`).Scan(&kept, &oldest))
	require.Equal(t, 100, kept)
	require.Equal(t, edits-99, oldest)
	var body string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select body from item_bodies where version = $1`, edits).Scan(&body))
	require.Equal(t, fmt.Sprint("text ", edits-2), body)
	i := got(t, b, key)
	require.Equal(t, int32(edits+1), i.GetBodyVersion())
	update(ctx, t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Priority: proto.String("high")})
	require.Equal(t, int32(edits+1), got(t, b, key).GetBodyVersion(), "only a new body has a new version")
}

func TestAChecklistIsChangedByOneGestureACall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Steps").GetKey()
	gesture := func(g *trackerv1.ChecklistGesture) error {
		_, err := b.client.UpdateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.UpdateWorkItemRequest{Item: key, Checklist: g})
		return err
	}
	require.NoError(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddList{AddList: &trackerv1.AddChecklist{Name: "Setup", Items: []string{"one", "two"}}}}))
	require.NoError(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddItem{AddItem: &trackerv1.AddChecklistItem{List: "setup", Name: "three", Assignee: "The Designer"}}}))
	list := got(t, b, key).GetChecklists()[0]
	require.Equal(t, "designer", list.GetItems()[2].GetAssignee())
	require.True(t, rows(t, b, key)[0].GetNotified(), "who got a step hears of it")
	errs := together(2, func(n int) error {
		return gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_SetDone{SetDone: &trackerv1.SetChecklistItemDone{Item: list.GetItems()[n].GetId(), Done: true}}})
	})
	require.Equal(t, 2, only(t, errs))
	require.Equal(t, "Setup: 1 of 3 done → Setup: 2 of 3 done", moves(rows(t, b, key)[0], "checklists"), "two people's gestures both stand")
	require.NoError(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_RenameItem{RenameItem: &trackerv1.RenameChecklistItem{Item: list.GetItems()[2].GetId(), Name: "third"}}}))
	require.NoError(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AssignItem{AssignItem: &trackerv1.AssignChecklistItem{Item: "third"}}}))
	require.NoError(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_RenameList{RenameList: &trackerv1.RenameChecklist{List: list.GetId(), Name: "Start"}}}))
	require.NoError(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_RemoveItem{RemoveItem: &trackerv1.RemoveChecklistItem{Item: "two"}}}))
	after := got(t, b, key).GetChecklists()[0]
	require.Equal(t, "Start", after.GetName())
	require.Len(t, after.GetItems(), 2)
	require.Equal(t, "third", after.GetItems()[1].GetName())
	require.Empty(t, after.GetItems()[1].GetAssignee())
	require.NoError(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_RemoveList{RemoveList: &trackerv1.RemoveChecklist{List: "Start"}}}))
	require.Empty(t, got(t, b, key).GetChecklists())
	refusal(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_RemoveList{RemoveList: &trackerv1.RemoveChecklist{List: "Start"}}}), fault.Invalid, "checklist.remove_list.list")
	refusal(t, gesture(&trackerv1.ChecklistGesture{Gesture: &trackerv1.ChecklistGesture_AddList{AddList: &trackerv1.AddChecklist{Name: strings.Repeat("x", 129)}}}), fault.Invalid, "checklist.add_list.name")
	refusal(t, gesture(&trackerv1.ChecklistGesture{}), fault.Invalid, "checklist")
}

func TestCustomFieldsAreCheckedAndRequiredOnesStay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "cost", Name: "Cost", Type: "number", Required: true},
		&trackerv1.FieldDeclaration{Slug: "cause", Name: "Cause", Type: "text", AppliesTo: []string{"bug"}, Required: true},
		&trackerv1.FieldDeclaration{Slug: "see", Name: "See", Type: "relationship"}, &trackerv1.FieldDeclaration{Slug: "owner", Name: "Owner", Type: "people"})
	res, err := create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Costly", Fields: values(t, map[string]any{"cost": 1})})
	require.NoError(t, err)
	key := res.GetKey()
	fields := func(v map[string]any) error {
		_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Fields: values(t, v)})
		return err
	}
	refusal(t, fields(map[string]any{"cost": nil}), fault.Invalid, "fields.cost")
	require.NoError(t, fields(map[string]any{"see": key, "owner": "the designer"}))
	require.Equal(t, map[string]any{"cost": 1.0, "see": res.GetId(), "owner": "designer"}, fieldsOf(operator(t.Context()), t, b, key), "an item is kept by its id, a colleague by their handle")
	refusal(t, fields(map[string]any{"see": "OPS-99"}), fault.Invalid, "fields.see")
	require.NoError(t, fields(map[string]any{"see": nil}))
	require.Equal(t, "see="+res.GetId()+" → ", moves(rows(t, b, key)[0], "fields"))
	_, err = b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Type: proto.String("bug")})
	refusal(t, err, fault.Invalid, "fields.cause")
	update(operator(t.Context()), t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Type: proto.String("bug"), Fields: &structpb.Struct{Fields: map[string]*structpb.Value{
		"cause": structpb.NewStringValue("age"),
	}}})
	require.Equal(t, "bug", got(t, b, key).GetType())
}

func TestFieldsThatOnlySubtasksNeedAreDemandedOfWhoBecomesOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent, key := add(t, b, "Parent", ""), add(t, b, "Child", "")
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "step", Name: "Step", Type: "text", Required: true, RequiredInSubtasks: true})
	_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Parent: &parent})
	refusal(t, err, fault.Invalid, "fields.step")
	update(operator(t.Context()), t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Parent: &parent, Fields: values(t, map[string]any{"step": "one"})})
	require.Equal(t, "reparented", rows(t, b, key)[0].GetKind())
}

func TestFinishingAnItemTellsWhoWaitedForIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := file(t, b, "First").GetKey()
	res, err := create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Second", WaitingOn: []string{first}, Assignee: "designer"})
	require.NoError(t, err)
	update(seat(t.Context(), "ops-lead"), t, b, &trackerv1.UpdateWorkItemRequest{Item: first, Status: proto.String("done")})
	require.True(t, rows(t, b, first)[0].GetNotified())
	require.False(t, got(t, b, res.GetKey()).GetBlocked())
}

func TestCountsOfAProjectFollowItsItems(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := []string{file(t, b, "a").GetKey(), file(t, b, "b").GetKey(), file(t, b, "c").GetKey(), file(t, b, "d").GetKey()}
	for n, status := range []string{"in_review", "cancelled", "closed"} {
		update(operator(t.Context()), t, b, &trackerv1.UpdateWorkItemRequest{Item: keys[n], Status: &status})
	}
	trash(t, b, keys[3], false)
	projects, err := b.client.ListProjects(operator(t.Context()), &trackerv1.ListProjectsRequest{Q: "ops"})
	require.NoError(t, err)
	counts := projects.GetProjects()[0].GetTaskCounts()
	require.Equal(t, []int32{0, 1, 1, 1}, []int32{counts.GetTodo(), counts.GetActive(), counts.GetDone(), counts.GetClosed()}, "what is removed does not count")
	require.Equal(t, "ci", projects.GetProjects()[0].GetLastChange().GetActor())
	restore(t, b, keys[3])
	projects, err = b.client.ListProjects(operator(t.Context()), &trackerv1.ListProjectsRequest{Q: "ops"})
	require.NoError(t, err)
	require.Equal(t, int32(1), projects.GetProjects()[0].GetTaskCounts().GetTodo())
}

func TestARepeatedUpdateIsAnsweredAsTheFirstTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Once").GetKey()
	req := &trackerv1.UpdateWorkItemRequest{Item: key, Title: proto.String("Twice"), IfMatch: proto.Int32(1)}
	ctx := rpc.WithOperation(operator(t.Context()), "update-1")
	first := update(ctx, t, b, req)
	require.True(t, proto.Equal(first, update(ctx, t, b, req)), "its version has moved on, and still it is the same operation")
	require.Len(t, rows(t, b, key), 2)
}
