package pg_test

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

// steps makes migrations 1 to n, each of which adds a table.
func steps(n int) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 1; i <= n; i++ {
		files[fmt.Sprintf("migrations/%06d_step.up.sql", i)] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "create table t%d (id int); create index t%d_trgm_idx on t%d "+
				"using gin ((id::text) public.gin_trgm_ops);", i, i, i),
		}
		files[fmt.Sprintf("migrations/%06d_step.down.sql", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "drop table t%d", i)}
	}
	return files
}

func tables(t *testing.T, dsn, schema string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(),
		"select count(*) from pg_tables where schemaname = $1 and tablename like 't_'", schema).Scan(&n))
	return n
}

func TestMigrate(t *testing.T) {
	t.Parallel()

	t.Run("every schema comes to its own newest version", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		require.NoError(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(2), "turn": steps(1)}))
		require.Equal(t, 2, tables(t, dsn, "tracker"))
		require.Equal(t, 1, tables(t, dsn, "turn"))
		require.Zero(t, tables(t, dsn, "public"))

		require.NoError(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(3), "turn": steps(1)}))
		require.Equal(t, 3, tables(t, dsn, "tracker"))
		require.NoError(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(3), "turn": steps(1)}))
	})

	t.Run("processes that start together wait for each other", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		var group errgroup.Group
		for range 6 {
			group.Go(func() error {
				return pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(3), "turn": steps(3)})
			})
		}
		require.NoError(t, group.Wait())
		require.Equal(t, 3, tables(t, dsn, "tracker"))
	})

	t.Run("a schema of a newer build is refused", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		require.NoError(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(2)}))
		err := pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(1)})
		require.Equal(t, fault.Conflict, fault.ClassOf(err))
		require.ErrorContains(t, err, "Schema tracker is at version 2 and this build knows only 1")
	})

	t.Run("a migration that failed is made by the next build", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		broken := steps(2)
		broken["migrations/000002_step.up.sql"].Data = []byte("create table t2 (id int);\nselect nothing;")
		err := pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": broken})
		require.ErrorContains(t, err, `migrate schema tracker: migration 2, line 2: ERROR: column "nothing" does not exist`)
		require.Equal(t, 1, tables(t, dsn, "tracker"), "half a migration stayed")

		require.NoError(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(2)}))
		require.Equal(t, 2, tables(t, dsn, "tracker"))
	})

	t.Run("a migration during which the connections die is made by the next start", func(t *testing.T) {
		t.Parallel()
		for _, version := range []int{1, 2} {
			dsn := pgtest.DSN(t)
			fatal := steps(2)
			file := fatal[fmt.Sprintf("migrations/%06d_step.up.sql", version)]
			file.Data = append(file.Data, "; select pg_terminate_backend(pid) from pg_stat_activity "+
				"where datname = current_database() and pid <> pg_backend_pid(); select pg_terminate_backend(pg_backend_pid())"...)
			require.Error(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": fatal}))
			require.Equal(t, version-1, tables(t, dsn, "tracker"))

			require.NoError(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(2)}))
			require.Equal(t, 2, tables(t, dsn, "tracker"))
		}
	})

	t.Run("a migration that commits by itself is refused", func(t *testing.T) {
		t.Parallel()
		files := steps(1)
		files["migrations/000001_step.up.sql"].Data = []byte("create table t1 (id int); commit;")
		err := pg.Migrate(t.Context(), pgtest.DSN(t), map[string]fs.FS{"tracker": files})
		require.ErrorContains(t, err, "migration 1 ends the transaction that it runs in")
	})

	t.Run("what another tool left half done is refused until somebody has looked", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		require.NoError(t, pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(2)}))
		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), "update tracker.schema_migrations set dirty = true")
		require.NoError(t, err)

		err = pg.Migrate(t.Context(), dsn, map[string]fs.FS{"tracker": steps(2)})
		require.Equal(t, fault.Conflict, fault.ClassOf(err))
		require.ErrorContains(t, err, "Another tool has marked the migration 2 of schema tracker as broken off half way")
	})

	t.Run("migrations in two folders are a mistake", func(t *testing.T) {
		t.Parallel()
		files := steps(1)
		files["other/000002_step.up.sql"] = &fstest.MapFile{}
		err := pg.Migrate(t.Context(), pgtest.DSN(t), map[string]fs.FS{"tracker": files})
		require.ErrorContains(t, err, "exactly one folder")
	})
}

func TestEnsureSchemas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	var group errgroup.Group
	for range 6 {
		group.Go(func() error { return pg.EnsureSchemas(t.Context(), dsn, "tracker", "turn") })
	}
	require.NoError(t, group.Wait())
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var schema string
	require.NoError(t, conn.QueryRow(t.Context(), `select nspname from pg_extension e join pg_namespace n
on n.oid = e.extnamespace where extname = 'pg_trgm'`).Scan(&schema))
	require.Equal(t, "public", schema)
}

func BenchmarkMigrateWithNothingToDo(b *testing.B) {
	dsn := pgtest.DSN(b)
	sources := map[string]fs.FS{}
	for i := range 8 {
		sources[fmt.Sprintf("schema%d", i)] = steps(3)
	}
	require.NoError(b, pg.Migrate(b.Context(), dsn, sources))
	for b.Loop() {
		require.NoError(b, pg.Migrate(b.Context(), dsn, sources))
	}
}
