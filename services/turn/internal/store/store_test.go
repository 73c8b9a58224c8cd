package store_test

import (
	"testing"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/turn/internal/events"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

func TestMigrationsGoUpDownAndUp(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "turn", store.Migrations())
	require.NoError(t, store.New(pool, events.Encoders(), nil).Check(t.Context()))
	source, err := iofs.New(store.Migrations(), "migrations")
	require.NoError(t, err)
	driver, err := migratepgx.WithInstance(stdlib.OpenDBFromPool(pool), &migratepgx.Config{MigrationsTable: "schema_migrations"})
	require.NoError(t, err)
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", driver)
	require.NoError(t, err)
	t.Cleanup(func() {
		sourceErr, databaseErr := m.Close()
		require.NoError(t, sourceErr)
		require.NoError(t, databaseErr)
	})
	require.NoError(t, m.Down())
	var left int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace
		where nspname = 'turn' and relkind in ('r', 'S') and relname <> 'schema_migrations'`).Scan(&left))
	require.Zero(t, left)
	require.NoError(t, m.Up())
	require.NoError(t, store.New(pool, events.Encoders(), nil).Check(t.Context()))
}
