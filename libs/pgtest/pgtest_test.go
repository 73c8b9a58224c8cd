package pgtest_test

import (
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/pgtest"
)

func TestPool(t *testing.T) {
	t.Parallel()
	migrations := fstest.MapFS{
		"migrations/000001_notes.up.sql":   {Data: []byte("create table notes (id int primary key, body text)")},
		"migrations/000001_notes.down.sql": {Data: []byte("drop table notes")},
	}

	for _, name := range []string{"one test", "another test"} {
		t.Run(name+" has the schema to itself", func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t, "notes", migrations)
			tag, err := pool.Exec(t.Context(), "insert into notes values (1, 'mine')")
			require.NoError(t, err)
			require.EqualValues(t, 1, tag.RowsAffected())
			var schema string
			require.NoError(t, pool.QueryRow(t.Context(), "select current_schema()").Scan(&schema))
			require.Equal(t, "notes", schema)
		})
	}
}

func TestDSN(t *testing.T) {
	t.Parallel()
	var gone string
	t.Run("the database is empty", func(t *testing.T) {
		gone = pgtest.DSN(t)
		conn, err := pgx.Connect(t.Context(), gone)
		require.NoError(t, err)
		defer conn.Close(t.Context())
		var tables int
		require.NoError(t, conn.QueryRow(t.Context(),
			"select count(*) from pg_class where relnamespace = 'public'::regnamespace").Scan(&tables))
		require.Zero(t, tables)
	})
	_, err := pgx.Connect(t.Context(), gone)
	require.ErrorContains(t, err, "does not exist", "the database outlived its test")
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Server(t)
	conn, err := pgx.Connect(t.Context(), s.DSN())
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}
