package item_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// gesture makes one to an item.
func gesture(t require.TestingT, i *item.Item, g item.Gesture) item.Change {
	c, changed, err := i.Apply(item.Update{Checklist: g}, human, start)
	require.NoError(t, err)
	require.True(t, changed)
	return c
}

func refused(t *testing.T, i *item.Item, g item.Gesture) fault.Error {
	t.Helper()
	before := *i
	_, _, err := i.Apply(item.Update{Checklist: g}, human, start)
	f, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, before, *i, "a refusal leaves the item as it is")
	return *f
}

func TestAGestureChangesOneThingAndHistoryTellsHowMuchIsDone(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	c := gesture(t, i, item.AddList("Setup", []string{"one", "two"}))
	require.Equal(t, item.Field{To: "Setup: 0 of 2 done"}, c.Fields["checklists"])
	two := i.Checklists[0].Items[1].ID
	gesture(t, i, item.AddStep("setup", "three", "dev"))
	c = gesture(t, i, item.SetStepDone(two, true))
	require.Equal(t, item.Field{From: "Setup: 0 of 3 done", To: "Setup: 1 of 3 done"}, c.Fields["checklists"])
	require.Equal(t, "checklist", c.Kind)
	gesture(t, i, item.RenameStep(two, "second"))
	gesture(t, i, item.AssignStep("second", "qa"))
	gesture(t, i, item.RenameList("Setup", "Start"))
	require.Equal(t, "Start", i.Checklists[0].Name)
	require.Equal(t, item.Step{ID: two, Name: "second", Done: true, Assignee: "qa"}, i.Checklists[0].Items[1])
	gesture(t, i, item.RemoveStep(two))
	require.Len(t, i.Checklists[0].Items, 2)
	gesture(t, i, item.RemoveList(i.Checklists[0].ID))
	require.Empty(t, i.Checklists)
}

func TestGesturesOfTwoPeopleBothStand(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	gesture(t, i, item.AddList("Setup", []string{"one", "two"}))
	one, two := i.Checklists[0].Items[0].ID, i.Checklists[0].Items[1].ID
	// Both were decided when neither was done.
	mine, theirs := item.SetStepDone(one, true), item.SetStepDone(two, true)
	gesture(t, i, mine)
	gesture(t, i, theirs)
	require.True(t, i.Checklists[0].Items[0].Done && i.Checklists[0].Items[1].Done)
	_, changed, err := i.Apply(item.Update{Checklist: mine}, human, start)
	require.NoError(t, err)
	require.False(t, changed, "to tick what is ticked changes nothing")
}

func TestWhatAGestureNamesMustBeThereOnce(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	gesture(t, i, item.AddList("Setup", []string{"one", "one"}))
	gesture(t, i, item.AddList("setup", nil))
	require.Contains(t, refused(t, i, item.AddStep("Setup", "x", "")).Message, i.Checklists[1].ID)
	require.Contains(t, refused(t, i, item.SetStepDone("one", true)).Message, i.Checklists[0].Items[1].ID)
	require.Contains(t, refused(t, i, item.RemoveList("Tidy")).Message, "Setup ("+i.Checklists[0].ID+")")
	require.Equal(t, "checklist.remove_item.item", refused(t, i, item.RemoveStep("nothing")).Field)
	require.Equal(t, "checklist.rename_item.name", refused(t, i, item.RenameStep(i.Checklists[0].Items[0].ID, " \t")).Field)
	refused(t, i, item.AddList(" ", nil))
	refused(t, i, item.AddList("x", []string{""}))
	refused(t, i, item.RenameList(i.Checklists[0].ID, ""))
	refused(t, i, item.AssignStep("nothing", "dev"))
}

func TestChecklistsHaveRoomForSoMuchAndNoMore(t *testing.T) {
	t.Parallel()
	steps := strings.Split(strings.Repeat("x,", item.MaxListSteps-1)+"x", ",")
	i := filed(t, human)
	for n := range item.MaxLists {
		gesture(t, i, item.AddList(fmt.Sprint("List ", n), nil))
	}
	require.Equal(t, "checklist.add_list", refused(t, i, item.AddList("One more", nil)).Field)
	i = filed(t, human)
	for n := range item.MaxSteps / item.MaxListSteps {
		gesture(t, i, item.AddList(fmt.Sprint("List ", n), steps))
	}
	require.Contains(t, refused(t, i, item.AddStep("List 0", "x", "")).Message, "64")
	require.Contains(t, refused(t, i, item.AddList("Last", []string{"x"})).Message, "256")
	gesture(t, i, item.RemoveStep(i.Checklists[0].Items[0].ID))
	gesture(t, i, item.AddList("Last", []string{"x"}))
}

// Whatever gestures are made, ids are unique and limits hold, and what was before shares nothing with what is after.
func TestGesturesKeepTheListsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		i := filed(t, human)
		name := rapid.StringMatching("[a-c]")
		ref := func(t *rapid.T) string {
			var all []string
			for _, l := range i.Checklists {
				all = append(all, l.ID)
				for _, s := range l.Items {
					all = append(all, s.ID)
				}
			}
			return rapid.SampledFrom(append(all, "nothing")).Draw(t, "ref")
		}
		t.Repeat(map[string]func(*rapid.T){
			"gesture": func(t *rapid.T) {
				g := []item.Gesture{
					item.AddList(name.Draw(t, "name"), rapid.SliceOfN(name, 0, 5).Draw(t, "steps")), item.RemoveList(ref(t)), item.RenameList(ref(t), name.Draw(t, "name")),
					item.AddStep(ref(t), name.Draw(t, "name"), ""), item.RemoveStep(ref(t)), item.RenameStep(ref(t), name.Draw(t, "name")),
					item.SetStepDone(ref(t), rapid.Bool().Draw(t, "done")), item.AssignStep(ref(t), name.Draw(t, "who")),
				}[rapid.IntRange(0, 7).Draw(t, "gesture")]
				before, shown := *i, fmt.Sprint(i.Checklists)
				if _, changed, err := i.Apply(item.Update{Checklist: g}, human, start); err != nil || !changed {
					require.Equal(t, before, *i)
				}
				require.Equal(t, shown, fmt.Sprint(before.Checklists))
			},
			"": func(t *rapid.T) {
				seen, steps := map[string]bool{}, 0
				for _, l := range i.Checklists {
					require.False(t, seen[l.ID])
					seen[l.ID] = true
					for _, s := range l.Items {
						require.False(t, seen[s.ID])
						seen[s.ID] = true
					}
					require.LessOrEqual(t, len(l.Items), item.MaxListSteps)
					steps += len(l.Items)
				}
				require.LessOrEqual(t, len(i.Checklists), item.MaxLists)
				require.LessOrEqual(t, steps, item.MaxSteps)
			},
		})
	})
}
