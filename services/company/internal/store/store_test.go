package store_test

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/company/internal/events"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

func setup(t *testing.T) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t, "company", store.Migrations())
	return store.New(pool, events.Activated), pool
}

func put(t *testing.T, s *store.Store, document string, parent uuid.UUID) revision.Revision {
	t.Helper()
	var r revision.Revision
	require.NoError(t, s.InTx(t.Context(), func(tx *store.Tx) error {
		var err error
		r, _, err = tx.Put(t.Context(), revision.Put{Document: document, By: "service:test", Summary: "x", Parent: parent, At: time.Now()})
		return err
	}))
	return r
}

func TestMigrationsGoUpDownAndUpAgain(t *testing.T) {
	t.Parallel()
	s, pool := setup(t)
	require.NoError(t, s.Check(t.Context()))
	names, err := fs.Glob(store.Migrations(), "*.sql")
	require.NoError(t, err)
	script := func(ending string) {
		for _, name := range names {
			if strings.HasSuffix(name, ending) {
				text, err := fs.ReadFile(store.Migrations(), name)
				require.NoError(t, err)
				_, err = pool.Exec(t.Context(), string(text))
				require.NoError(t, err)
			}
		}
	}
	script(".down.sql")
	var left []string
	rows, err := pool.Query(t.Context(), "select tablename from pg_tables where schemaname = 'company' and tablename <> 'schema_migrations'")
	require.NoError(t, err)
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		left = append(left, name)
	}
	require.NoError(t, rows.Err())
	require.Empty(t, left)
	script(".up.sql")
	require.NoError(t, s.Check(t.Context()))
	put(t, s, "a", uuid.Nil)
}

func TestPut(t *testing.T) {
	t.Parallel()

	t.Run("a transaction that is rolled back activates and announces nothing", func(t *testing.T) {
		t.Parallel()
		s, pool := setup(t)
		err := s.InTx(t.Context(), func(tx *store.Tx) error {
			if _, _, err := tx.Put(t.Context(), revision.Put{Document: "a", At: time.Now()}); err != nil {
				return err
			}
			return fault.New(fault.Conflict, "changed my mind")
		})
		require.Equal(t, fault.Conflict, fault.ClassOf(err))
		_, ok, err := s.Active(t.Context())
		require.NoError(t, err)
		require.False(t, ok)
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), "select (select count(*) from outbox) + (select count(*) from revisions)").Scan(&n))
		require.Zero(t, n)
	})

	t.Run("what is read is what was put", func(t *testing.T) {
		t.Parallel()
		s, _ := setup(t)
		first := put(t, s, "a", uuid.Nil)
		second := put(t, s, "b", first.ID)
		got, ok, err := s.Revision(t.Context(), first.ID)
		require.NoError(t, err)
		require.True(t, ok)
		require.False(t, got.Active)
		require.Equal(t, []any{first.ID, uuid.Nil, int32(1), "service:test", "x"}, []any{got.ID, got.ParentID, got.Epoch, got.By, got.Summary})
		active, ok, err := s.Active(t.Context())
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, second.ID, active.ID)
		require.Equal(t, first.ID, active.ParentID)
		require.WithinDuration(t, second.ActivatedAt, active.ActivatedAt, time.Microsecond)
		text, err := s.Document(t.Context(), first.ID)
		require.NoError(t, err)
		require.Equal(t, "a", text)
	})

	t.Run("a revision's row cannot share its epoch", func(t *testing.T) {
		t.Parallel()
		s, pool := setup(t)
		put(t, s, "a", uuid.Nil)
		_, err := pool.Exec(t.Context(), `insert into revisions (revision_id, document, digest, created_by, summary, created_at, epoch)
			values (gen_random_uuid(), 'b', 'b', 'x', 'x', now(), 1)`)
		require.ErrorContains(t, err, "revisions_epoch_idx")
	})

	t.Run("the loser of the very first race is kept without a parent", func(t *testing.T) {
		t.Parallel()
		s, _ := setup(t)
		put(t, s, "a", uuid.Nil)
		lost := revision.Put{Document: "b", By: "x", Summary: "x", IfMatch: true, At: time.Now()}
		first, err := s.KeepInert(t.Context(), lost)
		require.NoError(t, err)
		second, err := s.KeepInert(t.Context(), lost)
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
}
