package pg_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

func TestOpen(t *testing.T) {
	t.Parallel()

	t.Run("a pool works in its schema and names itself", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		require.NoError(t, pg.EnsureSchemas(t.Context(), dsn, `odd "name`))
		pool, err := pg.Open(t.Context(), dsn, `odd "name`)
		require.NoError(t, err)
		defer pool.Close()
		require.EqualValues(t, 8, pool.Config().MaxConns)
		var schema, application string
		require.NoError(t, pool.QueryRow(t.Context(), "select current_schema(), current_setting('application_name')").
			Scan(&schema, &application))
		require.Equal(t, `odd "name`, schema)
		require.Equal(t, `bullpen-odd "name`, application)
	})

	t.Run("the address may size the pool and name the application", func(t *testing.T) {
		t.Parallel()
		pool, err := pg.Open(t.Context(), pgtest.DSN(t)+"&pool_max_conns=3&application_name=doctor", "public")
		require.NoError(t, err)
		defer pool.Close()
		require.EqualValues(t, 3, pool.Config().MaxConns)
		var application string
		require.NoError(t, pool.QueryRow(t.Context(), "select current_setting('application_name')").Scan(&application))
		require.Equal(t, "doctor", application)
	})

	t.Run("an address that cannot be read is the caller's mistake and is not repeated", func(t *testing.T) {
		t.Parallel()
		_, err := pg.Open(t.Context(), "postgres://user:hunter2@host:port/db", "tracker")
		f, ok := fault.As(err)
		require.True(t, ok)
		require.Equal(t, fault.Invalid, f.Class)
		require.NotContains(t, err.Error(), "hunter2")
	})

	t.Run("a database that is away is unavailable", func(t *testing.T) {
		t.Parallel()
		_, err := pg.Open(t.Context(), "postgres://user:hunter2@/db?host=/nonexistent", "tracker")
		require.Equal(t, fault.Unavailable, fault.ClassOf(err))
		require.True(t, pg.Transient(err))
		require.NotContains(t, err.Error(), "hunter2")
	})
}

func TestInTx(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	pool, err := pg.Open(t.Context(), dsn, "public")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), "create table notes (id int constraint notes_id_key unique)")
	require.NoError(t, err)
	insert := func(id int, end func() error) error {
		return pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "insert into notes values ($1)", id)
			return errors.Join(err, end())
		})
	}
	require.NoError(t, insert(1, func() error { return nil }))
	require.ErrorIs(t, insert(2, func() error { return io.EOF }), io.EOF)
	require.Panics(t, func() { _ = insert(3, func() error { panic("a bug") }) })

	var ids int
	require.NoError(t, pool.QueryRow(t.Context(), "select sum(id) from notes").Scan(&ids))
	require.Equal(t, 1, ids)

	err = insert(1, func() error { return nil })
	require.True(t, pg.IsUnique(err, "notes_id_key"))
	require.False(t, pg.IsUnique(err, "notes_body_key"))
	require.False(t, pg.Transient(err))
}

func TestTransient(t *testing.T) {
	t.Parallel()

	t.Run("a connection that the server ended may be tried again", func(t *testing.T) {
		t.Parallel()
		pool, err := pg.Open(t.Context(), pgtest.DSN(t), "public")
		require.NoError(t, err)
		defer pool.Close()
		err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := pool.Exec(t.Context(), "select pg_terminate_backend($1)", tx.Conn().PgConn().PID())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), "select 1")
			require.True(t, pg.Transient(err), "%v", err)
			_, err = tx.Exec(t.Context(), "select 1")
			require.True(t, pg.Transient(err), "%v", err)
			return err
		})
		require.True(t, pg.Transient(err), "%v", err)
	})

	t.Run("two transactions that wait for each other may be tried again", func(t *testing.T) {
		t.Parallel()
		pool, err := pg.Open(t.Context(), pgtest.DSN(t), "public")
		require.NoError(t, err)
		defer pool.Close()
		first, err := pool.Begin(t.Context())
		require.NoError(t, err)
		second, err := pool.Begin(t.Context())
		require.NoError(t, err)
		lock := func(tx pgx.Tx, key int) error {
			_, err := tx.Exec(t.Context(), "select pg_advisory_xact_lock($1)", key)
			return err
		}
		require.NoError(t, lock(first, 1))
		require.NoError(t, lock(second, 2))
		ended := make(chan error, 2)
		go func() { ended <- errors.Join(lock(first, 2), first.Rollback(context.WithoutCancel(t.Context()))) }()
		go func() { ended <- errors.Join(lock(second, 1), second.Rollback(context.WithoutCancel(t.Context()))) }()
		err = errors.Join(<-ended, <-ended)
		require.Error(t, err)
		require.True(t, pg.Transient(err), "%v", err)
	})

	for code, want := range map[string]bool{
		"40001": true, "40P01": true, "53300": true, "57P01": true, "57P02": true, "57P03": true, "08006": true,
		"23505": false, "42601": false, "57014": false, "": false,
	} {
		require.Equal(t, want, pg.Transient(&pgconn.PgError{Code: code}), code)
	}
	require.False(t, pg.Transient(nil))
	require.False(t, pg.Transient(errors.New("a bug")))
	require.False(t, pg.Transient(context.Canceled))
	require.False(t, pg.Transient(context.DeadlineExceeded))
	require.True(t, pg.Transient(fault.New(fault.Unavailable, "no").WithCause(&pgconn.PgError{Code: "57P03"})))
}

func TestRequireColumns(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pgtest.DSN(t), "public")
	require.NoError(t, err)
	defer pool.Close()
	_, err = pool.Exec(t.Context(), "create table notes (id bigint, body text, extra int)")
	require.NoError(t, err)
	require.NoError(t, pg.RequireColumns(t.Context(), pool, "notes", map[string]string{"id": "bigint", "body": "text"}))

	err = pg.RequireColumns(t.Context(), pool, "notes", map[string]string{"id": "integer", "at": "date"})
	require.ErrorContains(t, err, "at is missing; id is bigint, not integer")
	err = pg.RequireColumns(t.Context(), pool, "letters", map[string]string{"id": "bigint"})
	require.ErrorContains(t, err, "letters is missing")
}
