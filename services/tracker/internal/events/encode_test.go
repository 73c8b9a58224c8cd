package events_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/events"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

func encoded(t *testing.T, e store.Event) (key string, event *trackerv1.ItemEvent) {
	t.Helper()
	m, err := events.Encode(e)
	require.NoError(t, err)
	event = &trackerv1.ItemEvent{}
	require.NoError(t, proto.Unmarshal(m.Payload, event))
	return m.Key, event
}

func TestTheSnapshotLeavesWithTheEvent(t *testing.T) {
	t.Parallel()
	other := uuid.UUID{2}
	i := &item.Item{ID: uuid.UUID{1}, Project: "OPS", Number: 4, Title: "Renew", Status: "todo", Priority: "none", Muted: []string{"wim"}, Body: "long"}
	key, event := encoded(t, store.Event{
		Item: i, Change: item.Change{Kind: "status", By: item.Actor{Name: "nightly", Kind: "operator"}, At: time.Now()},
		Position: ops.Position{Service: "tracker", Epoch: 1, Sequence: 7}, Lead: "pat", RoutingLead: "lea",
		Concerns: []wake.Concern{{Handle: "zoe", Reason: wake.Unblocked, About: &other, AboutKey: "OPS-5", AboutTitle: "Roll out"}},
	})
	require.Equal(t, i.ID.String(), key)
	updated := event.GetItemUpdated()
	require.Empty(t, updated.GetItem().GetBody(), "events carry no descriptions")
	routing := updated.GetRouting()
	require.Equal(t, "nightly", routing.GetActorToken())
	require.Empty(t, routing.GetActor())
	require.Equal(t, []string{"wim"}, routing.GetMuted())
	require.Equal(t, []string{"pat", "lea"}, []string{routing.GetLead(), routing.GetRoutingLead()})
	require.Len(t, routing.GetConcerns(), 1)
	require.True(t, proto.Equal(&trackerv1.Concern{
		Handle: "zoe", Reason: "unblocked", AboutId: other.String(), AboutKey: "OPS-5", AboutTitle: "Roll out",
	}, routing.GetConcerns()[0]))
}

func TestAPurgeCarriesNothingOfWhatTheItemSaid(t *testing.T) {
	t.Parallel()
	i := &item.Item{ID: uuid.UUID{1}, Project: "OPS", Number: 4, Title: "Secret plans", Status: "todo", Priority: "none", Watchers: []string{"wim"}}
	_, event := encoded(t, store.Event{
		Item: i, Change: item.Change{Kind: "purged", By: item.Actor{Name: "ines", Kind: "human", Seat: "ines"}, At: time.Now()}, Lead: "pat",
		Concerns: []wake.Concern{{Handle: "pat", Reason: wake.Purged}},
	})
	purged := event.GetItemPurged()
	require.Equal(t, "OPS-4", purged.GetKey())
	require.NotContains(t, event.String(), "Secret")
	require.NotContains(t, event.String(), "wim")
	require.Equal(t, "pat", purged.GetRouting().GetConcerns()[0].GetHandle())
}

func TestAnOrderOfWorkTellsWhoseItIs(t *testing.T) {
	t.Parallel()
	about := uuid.UUID{2}
	key, event := encoded(t, store.Event{
		Change:   item.Change{Kind: "prioritised", By: item.Actor{Name: "ines", Kind: "human", Seat: "ines"}, At: time.Now()},
		Concerns: []wake.Concern{{Handle: "ops", Reason: wake.Prioritised, Addressed: true, About: &about, AboutKey: "OPS-5"}},
	})
	require.NotEmpty(t, key)
	routing := event.GetProjectChanged().GetRouting()
	require.Equal(t, "ines", routing.GetActor())
	require.Equal(t, "OPS-5", routing.GetConcerns()[0].GetAboutKey())
}
