package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

func open(t *testing.T) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t, "tracker", store.Migrations())
	s, err := store.Open(t.Context(), pool, func(store.Event) (outbox.Message, error) { return outbox.Message{}, nil }, func() {})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `insert into projects (key, name, epoch) values ('OPS', 'Operations', 1)`)
	require.NoError(t, err)
	return s, pool
}

// write puts a row of history into a transaction as a write does: it holds a row before it draws its place.
func write(t *testing.T, tx pgx.Tx, item uuid.UUID) int64 {
	t.Helper()
	var at int64
	_, err := tx.Exec(t.Context(), `insert into persons (handle) values ($1)`, uuid.NewString())
	require.NoError(t, err)
	err = tx.QueryRow(t.Context(), `insert into history (position, item_id, project, kind, actor, actor_kind, version, reassignments, created_at)
		values (nextval('positions'), $1, 'OPS', 'fields', 'dev', 'agent', 1, 0, now()) returning position`, item).Scan(&at)
	require.NoError(t, err)
	return at
}

func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

func TestAFollowerNeverSkipsARowThatIsCommittedLate(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	item := uuid.New()
	late, early := begin(t, pool), begin(t, pool)
	first := write(t, late, item)
	second := write(t, early, item)
	require.NoError(t, early.Commit(t.Context()))
	settled, err := s.Settled(t.Context())
	require.NoError(t, err)
	require.Less(t, settled, first, "a later place is there, but an earlier one is still to come")
	follow := func(since int64) []int64 {
		through, err := s.Settled(t.Context())
		require.NoError(t, err)
		a, err := s.Activity(t.Context(), store.ActivityFilter{Item: &item, OldestFirst: true, Since: since, Through: through, Limit: 10})
		require.NoError(t, err)
		var got []int64
		for _, e := range a.Entries {
			got = append(got, e.Position.Sequence)
		}
		return got
	}
	require.Empty(t, follow(0))
	require.NoError(t, late.Commit(t.Context()))
	require.Equal(t, []int64{first, second}, follow(0))
}

func TestWhoWritesAndDrawsNoPlaceHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	other := pgtest.Pool(t, "tracker", store.Migrations())
	for _, elsewhere := range []*pgxpool.Pool{pool, other} {
		_, err := begin(t, elsewhere).Exec(t.Context(), `insert into persons (handle) values ('ines')`)
		require.NoError(t, err)
	}
	write(t, begin(t, other), uuid.New())
	done := begin(t, pool)
	at := write(t, done, uuid.New())
	require.NoError(t, done.Commit(t.Context()))
	settled, err := s.Settled(t.Context())
	require.NoError(t, err)
	require.Equal(t, at, settled)
}

func TestAPlaceThatWasGivenUpHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	gone, kept := begin(t, pool), begin(t, pool)
	write(t, gone, uuid.New())
	require.NoError(t, gone.Rollback(t.Context()))
	at := write(t, kept, uuid.New())
	require.NoError(t, kept.Commit(t.Context()))
	settled, err := s.Settled(t.Context())
	require.NoError(t, err)
	require.Equal(t, at, settled)
}

func through(t *testing.T, s *store.Store) int64 {
	t.Helper()
	in, err := s.Inbox(t.Context(), store.InboxFilter{Handle: "ines", Limit: 1})
	require.NoError(t, err)
	return in.Through
}

func tell(t *testing.T, pool *pgxpool.Pool, at int64, notices ...store.Notice) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return store.TakeTold(t.Context(), tx, store.Told{Position: ops.Position{Service: "tracker", Epoch: 1, Sequence: at}, Notices: notices})
	})
	require.NoError(t, err)
}

func TestNobodyIsSaidToHaveBeenToldOfWhatIsCommittedLater(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	awaitThrough := func(at int64) {
		t.Helper()
		require.Eventually(t, func() bool {
			require.NoError(t, s.AdvanceTold(t.Context()))
			return through(t, s) == at
		}, 60*time.Second, 10*time.Millisecond)
	}
	before := begin(t, pool)
	told := write(t, before, uuid.New())
	require.NoError(t, before.Commit(t.Context()))
	tell(t, pool, told)
	awaitThrough(told)

	late, early := begin(t, pool), begin(t, pool)
	first, second := write(t, late, uuid.New()), write(t, early, uuid.New())
	require.NoError(t, early.Commit(t.Context()))
	tell(t, pool, second)
	for range 3 {
		require.NoError(t, s.AdvanceTold(t.Context()))
		require.Equal(t, told, through(t, s), "an earlier change is still to come")
	}
	require.NoError(t, late.Commit(t.Context()))
	for range 3 {
		require.NoError(t, s.AdvanceTold(t.Context()))
		require.Equal(t, told, through(t, s), "nobody is told of it yet")
	}
	tell(t, pool, first)
	tell(t, pool, first)
	awaitThrough(second)
}

func TestOfADestroyedItemNoticesTellOnlyThatItWas(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	id := uuid.New()
	_, err := pool.Exec(t.Context(), `insert into purged_items (id, key, purged_at) values ($1, 'OPS-1', now())`, id)
	require.NoError(t, err)
	notice := store.Notice{Person: "ines", ItemID: id, ItemKey: "OPS-1", Title: "Secret", Reason: "asked", Kind: "comment", Actor: "dev", ActorKind: "agent", OccurredAt: time.Now()}
	tell(t, pool, 1, notice)
	notice.Kind, notice.Title, notice.Reason = "purged", "", "purged"
	tell(t, pool, 2, notice)
	in, err := s.Inbox(t.Context(), store.InboxFilter{Handle: "ines", Limit: 10})
	require.NoError(t, err)
	require.Len(t, in.Notices, 1)
	require.Equal(t, "purged", in.Notices[0].Kind)
}

func TestNoticesAreForgottenWithTheirMarksWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	now := time.Now()
	for at, occurred := range map[int64]time.Time{1: now.AddDate(0, 0, -366), 2: now.AddDate(0, 0, -366), 3: now.AddDate(0, 0, -364), 4: now} {
		tell(t, pool, at, store.Notice{
			Person: "ines", ItemID: uuid.New(), ItemKey: "OPS-1", Title: "x", Reason: "asked", Kind: "comment", Actor: "dev", ActorKind: "agent", OccurredAt: occurred,
		})
	}
	_, err := pool.Exec(t.Context(), `insert into persons (handle, seen_through, read_after, unread_before, snoozed, snoozed_until)
		values ('ines', 2, '{3,4}', '{1,2}', '{1,4}', array[now(), timestamptz '2100-01-01'])`)
	require.NoError(t, err)
	forgotten, err := s.SweepNotices(t.Context(), now.AddDate(0, 0, -365))
	require.NoError(t, err)
	require.Equal(t, int64(2), forgotten)
	p, err := s.Person(t.Context(), "ines")
	require.NoError(t, err)
	require.Equal(t, []int64{3, 4}, p.Read)
	require.Empty(t, p.Unread)
	require.Len(t, p.Snoozed, 1)
	require.Equal(t, int64(4), p.Snoozed[0].Record)
	require.Equal(t, 2100, p.Snoozed[0].Until.UTC().Year())
	forgotten, err = s.SweepNotices(t.Context(), now.AddDate(0, 0, -365))
	require.NoError(t, err)
	require.Zero(t, forgotten)
}
