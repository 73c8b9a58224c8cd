package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

func TestMigrationsGoUpDownAndUpAgain(t *testing.T) {
	t.Parallel()
	pgtest.UpDownUp(t, store.Migrations())
}

func nothing(store.Fact, func() (int64, error)) ([]outbox.Message, error) { return nil, nil }

func TestASeatHasOneHolderUntilItLetsGoOrItsTimeIsOver(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "mcphost", store.Migrations())
	one, err := store.Open(t.Context(), pool, "one", nothing, func() {})
	require.NoError(t, err)
	two, err := store.Open(t.Context(), pool, "two", nothing, func() {})
	require.NoError(t, err)
	holder := func(s *store.Store, ttl time.Duration) string {
		h, err := s.AcquireLease(t.Context(), "ada", ttl)
		require.NoError(t, err)
		return h
	}
	require.Equal(t, "one", holder(one, time.Minute))
	require.Equal(t, "one", holder(two, time.Minute))
	kept, err := one.RenewLeases(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Equal(t, []string{"ada"}, kept)
	require.NoError(t, two.ReleaseLease(t.Context(), "ada"), "of another node: nothing happens")
	require.Equal(t, "one", holder(two, time.Minute))
	require.NoError(t, one.ReleaseLease(t.Context(), "ada"))
	require.Equal(t, "two", holder(two, -time.Second), "ended at once")
	kept, err = two.RenewLeases(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, kept, "what ended is not renewed: another node may have acted")
	require.Equal(t, "one", holder(one, time.Minute))
}

func TestReportsOfSilentNodesAreNotShown(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "mcphost", store.Migrations())
	s, err := store.Open(t.Context(), pool, "one", nothing, func() {})
	require.NoError(t, err)
	report := store.Report{Server: "gh", Seat: "ada", State: server.Ready, Tools: 3, Starts: 1, Protocol: "p", At: time.Now()}
	require.NoError(t, s.Record(t.Context(), []store.Fact{{Report: report}}))
	reports, err := s.Reports(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	require.Equal(t, "one", reports[0].Node)
	_, err = pool.Exec(t.Context(), `update nodes set reported_at = now() - interval '1 hour'`)
	require.NoError(t, err)
	reports, err = s.Reports(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, reports)
	require.NoError(t, s.Sweep(t.Context()))
	report.State = server.Shutdown
	require.NoError(t, s.Record(t.Context(), []store.Fact{{Report: report}}))
	reports, err = s.Reports(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, reports, "what was shut down leaves no row")
}

func TestAnEraIsRememberedByConfiguration(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), pgtest.Pool(t, "mcphost", store.Migrations()), "one", nothing, func() {})
	require.NoError(t, err)
	_, known, err := s.Legacy(t.Context(), []byte("a"))
	require.NoError(t, err)
	require.False(t, known)
	require.NoError(t, s.SetLegacy(t.Context(), []byte("a"), true))
	legacy, known, err := s.Legacy(t.Context(), []byte("a"))
	require.NoError(t, err)
	require.True(t, known)
	require.True(t, legacy)
}
