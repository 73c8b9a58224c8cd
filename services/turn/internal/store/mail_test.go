package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/turn/internal/events"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// TestHeldMailTellsWhenItIsDue covers mail that waits for two things, a while and its seat's readiness: when the seat is ready
// first, nobody else would say when to look again.
func TestHeldMailTellsWhenItIsDue(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "turn", store.Migrations())
	s := store.New(pool, events.Encoders(), nil)
	now := time.Now().Truncate(time.Microsecond)
	due := now.Add(time.Minute)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return store.AcceptMail(t.Context(), tx, mailbox.Mail{
			DeliveryID: uuid.Must(uuid.NewV7()).String(), Seat: "ada", ConversationKey: "slack:1", Source: "slack", Surface: "slack",
			Obligation: "tool", Body: "hello", OccurAt: now, ReceiveAt: now,
		})
	}))
	_, err := pool.Exec(t.Context(), "update mail set available_at = $1", due)
	require.NoError(t, err)
	taken, err := s.Acquire(t.Context(), "n1", []string{"ada"}, time.Minute, 1)
	require.NoError(t, err)
	require.NoError(t, s.HoldSeat(t.Context(), store.Fence{Seat: "ada", Epoch: taken["ada"]}, "its keys rest"))

	mail, next, err := s.Waiting(t.Context(), "ada", now)
	require.NoError(t, err)
	require.Empty(t, mail)
	require.True(t, next.Equal(due), "%s is not %s", next, due)
	mail, _, err = s.Waiting(t.Context(), "ada", due)
	require.NoError(t, err)
	require.Len(t, mail, 1)
}
