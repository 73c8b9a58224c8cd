package tracker_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// declared is the field with a slug, as people are shown it.
func declared(t *testing.T, b bundle, slug string) *trackerv1.FieldDeclaration {
	t.Helper()
	p, err := b.client.DescribeProject(operator(t.Context()), &trackerv1.DescribeProjectRequest{Project: "OPS"})
	require.NoError(t, err)
	for _, f := range p.GetFields() {
		if f.GetField().GetSlug() == slug {
			return f.GetField()
		}
	}
	return nil
}

func TestAnAgentDoesNotFindByItsValueWhatIsHiddenFromIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := fielded(t, b)
	for _, q := range []string{"5000", "salary", "true"} {
		res, err := b.client.TaskActivity(seat(t.Context(), "ops-lead"), &trackerv1.TaskActivityRequest{Item: key, Q: q})
		require.NoError(t, err)
		require.Empty(t, res.GetRows(), q)
	}
	res, err := b.client.TaskActivity(operator(t.Context()), &trackerv1.TaskActivityRequest{Item: key, Q: "5000"})
	require.NoError(t, err)
	require.Len(t, res.GetRows(), 2, "a person does")
	res, err = b.client.TaskActivity(seat(t.Context(), "ops-lead"), &trackerv1.TaskActivityRequest{Item: key, Q: "task"})
	require.NoError(t, err)
	require.Len(t, res.GetRows(), 1, "and an agent whatever else changed")
}

func TestALeadThatIsAnAgentNeitherUnhidesNorDropsWhatIsHiddenFromIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := fielded(t, b)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "margin", Name: "Margin", Type: "number", HideFromAgents: true})
	own, everywhere := declared(t, b, "salary"), declared(t, b, "margin")
	write := func(fields ...*trackerv1.FieldDeclaration) error {
		_, err := b.client.WriteProject(seat(t.Context(), "ops-lead"), &trackerv1.WriteProjectRequest{Project: "OPS", Fields: fields})
		return err
	}
	for name, f := range map[string]*trackerv1.FieldDeclaration{
		"its own by id":         {Id: own.GetId(), Slug: "pay", Name: "Pay", Type: "number"},
		"its own by slug":       {Slug: "salary", Name: "Pay", Type: "number"},
		"the workspace's by id": {Id: everywhere.GetId(), Slug: "gain", Name: "Gain", Type: "number"},
		"the workspace's slug":  {Slug: "margin", Name: "Gain", Type: "number"},
	} {
		said := refusal(t, write(f), fault.Forbidden, "fields[0]").Message
		require.NotContains(t, said, everywhere.GetId(), name)
	}
	require.NoError(t, write(&trackerv1.FieldDeclaration{Slug: "mood", Name: "Mood", Type: "text"}))
	require.True(t, proto.Equal(own, declared(t, b, "salary")), "what it cannot see it does not leave out")
	_, err := b.client.WriteProject(seat(t.Context(), "ops-lead"), &trackerv1.WriteProjectRequest{Project: "OPS", Clear: []string{"fields"}})
	require.NoError(t, err)
	require.True(t, proto.Equal(own, declared(t, b, "salary")))
	require.Nil(t, declared(t, b, "mood"))
	require.NotContains(t, fmt.Sprint(readAs(seat(t.Context(), "ops-lead"), t, b, key).GetFields()), "6000")
}

func TestAHiddenFieldStaysSoInHistoryWhateverItIsCalledNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := fielded(t, b)
	renamed := declared(t, b, "salary")
	renamed.Slug = "pay"
	_, err := b.client.WriteProject(operator(t.Context()), &trackerv1.WriteProjectRequest{Project: "OPS", Fields: []*trackerv1.FieldDeclaration{renamed}})
	require.NoError(t, err)
	got := readAs(seat(t.Context(), "ops-lead"), t, b, key)
	require.NotContains(t, fmt.Sprint(got.GetHistory()), "salary")
}

func TestAFieldThatWasHiddenAndRenamedAfterwardsIsHiddenInWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := fielded(t, b)
	severity := declared(t, b, "severity")
	severity.Slug, severity.HideFromAgents = "harm", true
	_, err := b.client.WriteProject(operator(t.Context()), &trackerv1.WriteProjectRequest{
		Project: "OPS", Fields: []*trackerv1.FieldDeclaration{severity, declared(t, b, "browser")},
	})
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(readAs(seat(t.Context(), "ops-lead"), t, b, key).GetHistory()), "severity")
}

func TestWhatWasHiddenInOneProjectIsNotShownToAgentsInAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := fielded(t, b)
	_, err := b.client.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: key, Project: "SHOP"})
	require.NoError(t, err)
	got := readAs(seat(t.Context(), "ops-lead"), t, b, key)
	require.Empty(t, got.GetFields(), "nothing declares them there, so nothing says that they may be shown")
	require.NotContains(t, fmt.Sprint(got), "salary")
}

func TestEventsSayNothingOfWhatIsHiddenFromAgents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "hidden")
	require.NoError(t, err)
	defer subscription.Close()
	key := fielded(t, b)
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: key, Status: ptr("done")})
	var all string
	for done := false; !done; {
		messages, err := subscription.Fetch(t.Context(), 100)
		require.NoError(t, err)
		for _, m := range messages {
			event := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, event))
			all += event.String()
			done = done || event.GetItemUpdated().GetItem().GetStatus() == "done"
		}
	}
	require.Contains(t, all, "agents are not shown")
	require.NotContains(t, all, "salary")
}
