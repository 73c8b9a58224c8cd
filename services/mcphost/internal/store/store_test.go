package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
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
	one, two, _ := both(t)
	holder := func(s *store.Store, ttl time.Duration) string {
		h, err := s.AcquireLease(t.Context(), "ada", ttl)
		require.NoError(t, err)
		return h.Name
	}
	require.Equal(t, "one", holder(one, time.Minute))
	require.Equal(t, "one", holder(two, time.Minute))
	kept, err := one.RenewLeases(t.Context(), []string{"ada"}, []string{}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, []string{"ada"}, kept)
	kept, err = two.RenewLeases(t.Context(), []string{"ada"}, []string{"ada"}, time.Minute)
	require.NoError(t, err)
	require.Empty(t, kept, "of another node: nothing happens")
	require.Equal(t, "one", holder(two, time.Minute))
	_, err = one.RenewLeases(t.Context(), []string{}, []string{"ada"}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, "two", holder(two, -time.Second), "ended at once")
	kept, err = two.RenewLeases(t.Context(), []string{"ada"}, []string{}, time.Minute)
	require.NoError(t, err)
	require.Empty(t, kept, "what ended is not renewed: another node may have acted")
	require.Equal(t, "one", holder(one, time.Minute))
}

// both are two nodes that have reported.
func both(t *testing.T) (one, two *store.Store, pool *pgxpool.Pool) {
	pool = pgtest.Pool(t, "mcphost", store.Migrations())
	var err error
	one, err = store.Open(t.Context(), pool, store.Node{Name: "one", URL: "http://one"}, nothing, func() {})
	require.NoError(t, err)
	two, err = store.Open(t.Context(), pool, store.Node{Name: "two", URL: "http://two"}, nothing, func() {})
	require.NoError(t, err)
	for _, s := range []*store.Store{one, two} {
		forgotten, err := s.Record(t.Context(), nil)
		require.NoError(t, err)
		require.True(t, forgotten, "for the first time")
		forgotten, err = s.Record(t.Context(), nil)
		require.NoError(t, err)
		require.False(t, forgotten)
	}
	return one, two, pool
}

func TestALeaseThatNobodyWorksUnderIsGivenBackButNotOneThatWasJustTaken(t *testing.T) {
	t.Parallel()
	one, two, pool := both(t)
	for _, seat := range []string{"ada", "bo"} {
		_, err := one.AcquireLease(t.Context(), seat, time.Minute)
		require.NoError(t, err)
	}
	// The release of ada failed a while ago, and the answer about bo is still on the way.
	_, err := pool.Exec(t.Context(), `update seat_leases set expires_at = expires_at - interval '4 seconds' where seat = 'ada'`)
	require.NoError(t, err)
	kept, err := one.RenewLeases(t.Context(), []string{}, []string{}, time.Minute)
	require.NoError(t, err)
	require.Empty(t, kept)
	holder, err := two.AcquireLease(t.Context(), "ada", time.Minute)
	require.NoError(t, err)
	require.Equal(t, "two", holder.Name)
	holder, err = two.AcquireLease(t.Context(), "bo", time.Minute)
	require.NoError(t, err)
	require.Equal(t, store.Node{Name: "one", URL: "http://one"}, holder)
}

func TestNodesFindEachOtherUntilOneWithdrawsAndForgetTheDead(t *testing.T) {
	t.Parallel()
	one, two, _ := both(t)
	_, err := two.AcquireLease(t.Context(), "ada", time.Minute)
	require.NoError(t, err)
	peers, err := one.Peers(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Equal(t, []store.Node{{Name: "two", URL: "http://two"}}, peers)
	live, err := one.Live(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, live, 2)
	require.Equal(t, "one", live[0].Node, "itself, too, though neither runs anything")
	require.NotZero(t, live[1].At)
	two.Withdraw()
	_, err = two.Record(t.Context(), nil)
	require.NoError(t, err)
	peers, err = one.Peers(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, peers)
	holder, err := one.Holder(t.Context(), "ada")
	require.NoError(t, err)
	require.Equal(t, store.Node{Name: "two"}, holder, "it still has what it has")
	others, err := one.Others(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"two"}, others)

	require.NoError(t, one.Bury(t.Context(), []string{"two"}))
	holder, err = one.Holder(t.Context(), "ada")
	require.NoError(t, err)
	require.Zero(t, holder)
	forgotten, err := two.Record(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, forgotten, "one that lives after all says everything again")
}

func TestReportsOfSilentNodesAreNotShown(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "mcphost", store.Migrations())
	s, err := store.Open(t.Context(), pool, store.Node{Name: "one", URL: "http://one"}, nothing, func() {})
	require.NoError(t, err)
	report := store.Report{Server: "gh", Seat: "ada", State: server.Ready, Tools: 3, Starts: 1, Protocol: "p", At: time.Now()}
	_, err = s.Record(t.Context(), []store.Fact{{Report: report}})
	require.NoError(t, err)
	reports, err := s.Reports(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	require.Equal(t, "one", reports[0].Node)
	_, err = pool.Exec(t.Context(), `update nodes set reported_at = now() - interval '1 hour'`)
	require.NoError(t, err)
	reports, err = s.Reports(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, reports)
	live, err := s.Live(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, live)
	require.NoError(t, s.Sweep(t.Context()))
	report.State = server.Shutdown
	_, err = s.Record(t.Context(), []store.Fact{{Report: report}})
	require.NoError(t, err)
	reports, err = s.Reports(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Empty(t, reports, "what was shut down leaves no row")
}

func TestAnEraIsRememberedByConfiguration(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), pgtest.Pool(t, "mcphost", store.Migrations()), store.Node{Name: "one", URL: "http://one"}, nothing, func() {})
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
