package tracker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func personOf(t *testing.T, b bundle, handle string) *trackerv1.GetPersonResponse {
	t.Helper()
	res, err := b.client.GetPerson(operator(t.Context()), &trackerv1.GetPersonRequest{Handle: handle})
	require.NoError(t, err)
	return res
}

func prioritise(ctx context.Context, b bundle, handle string, items ...string) (*trackerv1.SetPrioritiesResponse, error) {
	return b.client.SetPriorities(ctx, &trackerv1.SetPrioritiesRequest{Handle: handle, Items: items})
}

func TestPrioritiesAreOnesOwnALeadsForTheirLineOrAPersonsToSet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 2 {
		file(t, b, fmt.Sprint("Item ", n))
	}
	mineAlone, err := prioritise(seat(t.Context(), "designer"), b, "", "OPS-2", "ops-1")
	require.NoError(t, err)
	require.Equal(t, []string{"OPS-2", "OPS-1"}, mineAlone.GetItems())
	require.Empty(t, personOf(t, b, "designer").GetPrioritiesSetBy(), "one's own order names nobody")
	_, err = prioritise(seat(t.Context(), "designer"), b, "ines", "OPS-1")
	refusal(t, err, fault.Forbidden, "handle")
	_, err = prioritise(seat(t.Context(), "ops-lead"), b, "designer", "OPS-1")
	refusal(t, err, fault.Forbidden, "handle")
	_, err = prioritise(seat(t.Context(), "ops-lead"), b, "ops-lead", "OPS-1")
	require.NoError(t, err)
	_, err = prioritise(member(t.Context(), "ines"), b, "designer", "OPS-1")
	require.NoError(t, err)
	set := personOf(t, b, "designer")
	require.Equal(t, "ines", set.GetPrioritiesSetBy())
	require.NotNil(t, set.GetPrioritiesSetTime())
	require.Equal(t, []string{"OPS-1"}, set.GetPriorities())
	_, err = prioritise(operator(t.Context()), b, "designer", "OPS-2")
	require.NoError(t, err)
	require.Equal(t, "ci", personOf(t, b, "designer").GetPrioritiesSetBy())
	_, err = prioritise(operator(t.Context()), b, "", "OPS-2")
	refusal(t, err, fault.Forbidden, "")
}

func TestAnOrderIsWholeAndNamesEachItemOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ines := member(t.Context(), "ines")
	var keys []string
	for n := range 33 {
		keys = append(keys, file(t, b, fmt.Sprint("Item ", n)).GetKey())
	}
	res, err := prioritise(ines, b, "", keys[:32]...)
	require.NoError(t, err)
	require.Equal(t, int32(1), res.GetVersion())
	_, err = prioritise(ines, b, "", keys...)
	refusal(t, err, fault.Invalid, "items")
	_, err = prioritise(ines, b, "", "OPS-1", "ops-1")
	refusal(t, err, fault.Invalid, "items[1]")
	_, err = prioritise(ines, b, "", "OPS-1", "OPS-99")
	refusal(t, err, fault.Invalid, "items[1]")
	_, err = prioritise(ines, b, "")
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "items")
	_, err = b.client.SetPriorities(ines, &trackerv1.SetPrioritiesRequest{Items: keys[:1], Clear: []string{"items"}})
	refusal(t, err, fault.Invalid, "")
	again, err := prioritise(ines, b, "", keys[:32]...)
	require.NoError(t, err)
	require.Equal(t, "unchanged", again.GetOutcome())
	require.Empty(t, again.GetPosition())
	_, err = b.client.SetPriorities(ines, &trackerv1.SetPrioritiesRequest{Items: keys[:1], IfMatch: proto.Int32(0)})
	require.Equal(t, "1", refusal(t, err, fault.StaleVersion, "if_match").Facts["current_version"])
	none, err := b.client.SetPriorities(ines, &trackerv1.SetPrioritiesRequest{Clear: []string{"items"}, IfMatch: proto.Int32(1)})
	require.NoError(t, err)
	require.Equal(t, "applied", none.GetOutcome())
	require.Empty(t, personOf(t, b, "ines").GetPriorities())
}

func TestOfManyOrdersOfOneVersionExactlyOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var keys []string
	for n := range 32 {
		keys = append(keys, file(t, b, fmt.Sprint("Item ", n)).GetKey())
	}
	errs := make([]error, len(keys))
	var group sync.WaitGroup
	for n, key := range keys {
		group.Go(func() {
			_, errs[n] = b.client.SetPriorities(operator(t.Context()), &trackerv1.SetPrioritiesRequest{Handle: "ines", Items: []string{key}, IfMatch: proto.Int32(0)})
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.Equal(t, "1", refusal(t, err, fault.StaleVersion, "if_match").Facts["current_version"])
	}
	require.Equal(t, 1, won)
}

func TestPinsAreOnesOwnAndNameWhatIsThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ines := member(t.Context(), "ines")
	one, two := file(t, b, "One"), file(t, b, "Two")
	pin := func(favorites *trackerv1.SetChange) (*trackerv1.SetPinsResponse, error) {
		return b.client.SetPins(ines, &trackerv1.SetPinsRequest{Favorites: favorites})
	}
	res, err := pin(&trackerv1.SetChange{Add: []string{one.GetKey(), two.GetId()}})
	require.NoError(t, err)
	require.Equal(t, "applied", res.GetOutcome())
	require.Equal(t, []string{"OPS-1", "OPS-2"}, personOf(t, b, "ines").GetFavorites())
	res, err = pin(&trackerv1.SetChange{Add: []string{"ops-1"}})
	require.NoError(t, err)
	require.Equal(t, "unchanged", res.GetOutcome())
	_, err = pin(&trackerv1.SetChange{Remove: []string{"OPS-1", uuid.NewString()}})
	require.NoError(t, err, "what is gone can be taken away by its id")
	require.Equal(t, []string{"OPS-2"}, personOf(t, b, "ines").GetFavorites())
	_, err = pin(&trackerv1.SetChange{Add: []string{"OPS-1", "OPS-99"}})
	refusal(t, err, fault.Invalid, "favorites.add[1]")
	_, err = pin(&trackerv1.SetChange{})
	require.Contains(t, refusal(t, err, fault.Invalid, "favorites").Message, `{"add": […], "remove": […]} or {"set": […]}`)
	_, err = pin(&trackerv1.SetChange{Add: []string{"OPS-1"}, Clear: true})
	refusal(t, err, fault.Invalid, "favorites")
	_, err = b.client.SetPins(ines, &trackerv1.SetPinsRequest{})
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "give views or favorites")
	_, err = pin(&trackerv1.SetChange{Clear: true})
	require.NoError(t, err)
	require.Empty(t, personOf(t, b, "ines").GetFavorites())
}

func TestAPersonsRecordIsEmptyUntilTheyKeepSomethingAndCountsWhatTheyHold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "Held", Project: "OPS", Assignee: "ines"})
	require.NoError(t, err)
	got := personOf(t, b, "ines")
	require.Zero(t, got.GetVersion())
	require.Equal(t, int32(1), got.GetHeld())
	require.Empty(t, got.GetSeenThrough())
	require.Len(t, got.GetPrimaryReasons(), 8)
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: "OPS-1", Status: proto.String("done")})
	require.Zero(t, personOf(t, b, "ines").GetHeld(), "open items alone")
	_, err = b.client.GetPerson(seat(t.Context(), "designer"), &trackerv1.GetPersonRequest{Handle: "ines"})
	refusal(t, err, fault.Forbidden, "handle")
	_, err = b.client.GetPerson(operator(t.Context()), &trackerv1.GetPersonRequest{Handle: "bob"})
	refusal(t, err, fault.Invalid, "handle")
}
