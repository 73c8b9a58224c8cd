package store_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/events"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func record(seat, turn, callID string, at time.Time) *call.Record {
	return &call.Record{
		ID: uuid.Must(uuid.NewV7()), CallID: callID, Principal: "seat:" + seat, Seat: seat, TurnID: turn, Tool: "reply", Source: "builtin",
		Arguments: `{"body":"hi"}`, Result: `{}`, Status: call.OK, OperationID: "op", StartedAt: at, Duration: 1500 * time.Microsecond,
	}
}

func open(t *testing.T) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t, "toolregistry", store.Migrations)
	return store.New(pool, events.Encode, func() {}), pool
}

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func TestMigrationsGoDownAndUpAgain(t *testing.T) {
	t.Parallel()
	_, pool := open(t)
	down, err := fs.Glob(store.Migrations, "migrations/*.down.sql")
	require.NoError(t, err)
	slices.Reverse(down)
	up, err := fs.Glob(store.Migrations, "migrations/*.up.sql")
	require.NoError(t, err)
	for _, file := range append(down, up...) {
		sql, err := store.Migrations.ReadFile(file)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), string(sql))
		require.NoError(t, err, file)
	}
	require.NoError(t, outbox.Check(t.Context(), pool))
}

func TestACallAndItsEventAreWrittenTogether(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	big := record("ada", "t1", "c1", noon)
	big.Result = strings.Repeat("whole ", 500_000)
	big.Decision, big.Rule, big.ApprovalID = "ask", "big orders", uuid.NewString()
	batch := []*call.Record{big, record("ada", "t1", "c2", noon.Add(time.Second))}
	require.NoError(t, s.InsertCalls(t.Context(), batch))
	require.NoError(t, s.InsertCalls(t.Context(), batch), "a commit that was not heard of is repeated")
	require.Equal(t, 2, count(t, pool, `select count(*) from calls`))
	require.Equal(t, 2, count(t, pool, `select count(distinct event_id) from outbox`))
	got, more, err := s.ListCalls(t.Context(), store.Filter{}, store.After{}, 10)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.False(t, more)
	require.Equal(t, big.Result, got[1].Result, "nothing is cut")
	require.Equal(t, big.Duration, got[1].Duration)
	require.Equal(t, []string{big.Decision, big.Rule, big.ApprovalID}, []string{got[1].Decision, got[1].Rule, got[1].ApprovalID})
}

func TestWritingACallDoesNotReadThoseBeforeIt(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	const batches, size = 100, 20
	for range batches {
		var batch []*call.Record
		for range size {
			batch = append(batch, record("ada", "t1", "", noon)) // a caller may give every call of its turn the same id
		}
		require.NoError(t, s.InsertCalls(t.Context(), batch))
	}
	for _, conn := range pool.AcquireAllIdle(t.Context()) {
		_, err := conn.Exec(t.Context(), `select pg_stat_force_next_flush()`)
		require.NoError(t, err)
		conn.Release()
	}
	read := count(t, pool, `select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = 'calls'`)
	require.Zero(t, read)
}

func TestWhatPostgresWillNeverTakeIsInvalid(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	bad := record("ada", "t1", "c1", noon)
	bad.Result = "a\x00b"
	require.Equal(t, fault.Invalid, fault.ClassOf(s.InsertCalls(t.Context(), []*call.Record{record("ada", "t1", "c0", noon), bad})))
	require.Zero(t, count(t, pool, `select count(*) from calls`), "all or none")
}

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	var all []*call.Record
	for i := range 7 {
		r := record([]string{"ada", "bo"}[i%2], "t1", string(rune('a'+i)), noon.Add(time.Duration(i/2)*time.Second))
		if i == 6 {
			r.Status, r.RefusalClass, r.Tool = call.Refused, "invalid", "get_page"
		}
		all = append(all, r)
	}
	require.NoError(t, s.InsertCalls(t.Context(), all))
	seen := map[uuid.UUID]bool{}
	var after store.After
	for range 3 {
		page, _, err := s.ListCalls(t.Context(), store.Filter{}, after, 3)
		require.NoError(t, err)
		for _, r := range page {
			require.False(t, seen[r.ID])
			seen[r.ID] = true
			after = store.After{StartedAt: r.StartedAt, ID: r.ID}
		}
	}
	require.Len(t, seen, 7)
	for _, c := range []struct {
		filter store.Filter
		want   int
	}{
		{store.Filter{Seat: "bo"}, 3},
		{store.Filter{Tool: "get_page"}, 1},
		{store.Filter{TurnID: "t1", Seat: "ada"}, 4},
		{store.Filter{TurnID: "t2"}, 0},
		{store.Filter{RefusalClass: "invalid"}, 1},
	} {
		page, _, err := s.ListCalls(t.Context(), c.filter, store.After{}, 10)
		require.NoError(t, err)
		require.Len(t, page, c.want, "%+v", c.filter)
	}
}

func TestRestoredCallsFillGapsAndGiveWayToTheDoorsOwn(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	kept, late := record("ada", "t1", "kept", noon), record("ada", "t1", "late", noon)
	require.NoError(t, s.InsertCalls(t.Context(), []*call.Record{kept}))
	var journal []*call.Record
	for _, id := range []string{"kept", "late", "lost"} {
		r := record("ada", "t1", id, noon)
		r.ID = call.RestoredID("t1", id)
		journal = append(journal, r)
	}
	n, err := s.RestoreCalls(t.Context(), journal)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = s.RestoreCalls(t.Context(), journal)
	require.NoError(t, err)
	require.Zero(t, n, "again restores nothing")
	require.NoError(t, s.InsertCalls(t.Context(), []*call.Record{late}), "the door was only slow")
	require.Equal(t, 3, count(t, pool, `select count(*) from calls`))
	require.Equal(t, 1, count(t, pool, `select count(*) from calls where restored`))

	known := record("ada", "t1", "known", noon)
	n, err = s.RestoreCalls(t.Context(), []*call.Record{known})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, s.InsertCalls(t.Context(), []*call.Record{known}), "the journal knew the row's own id")
	require.Equal(t, 4, count(t, pool, `select count(*) from calls`))
}

func TestOldCallsAreForgottenInPortions(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	var all []*call.Record
	for i := range 5 {
		all = append(all, record("ada", "t1", string(rune('a'+i)), noon.AddDate(0, 0, -i)))
	}
	require.NoError(t, s.InsertCalls(t.Context(), all))
	n, err := s.DeleteCalls(t.Context(), noon.AddDate(0, 0, -1), 2)
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
	n, err = s.DeleteCalls(t.Context(), noon.AddDate(0, 0, -1), 2)
	require.NoError(t, err)
	require.Equal(t, int64(1), n)
	require.Equal(t, 2, count(t, pool, `select count(*) from calls`))
}

func TestAPageOfLongCallsIsShorter(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for i := range 4 {
		r := record("ada", "t1", string(rune('a'+i)), noon.Add(time.Duration(i)*time.Second))
		r.Result = strings.Repeat("whole", 1<<20)
		require.NoError(t, s.InsertCalls(t.Context(), []*call.Record{r}))
	}
	page, more, err := s.ListCalls(t.Context(), store.Filter{}, store.After{}, 10)
	require.NoError(t, err)
	require.True(t, more)
	require.Len(t, page, 2)
	rest, more, err := s.ListCalls(t.Context(), store.Filter{}, store.After{StartedAt: page[1].StartedAt, ID: page[1].ID}, 10)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, rest, 2)
}
