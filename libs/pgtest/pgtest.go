// Package pgtest gives tests a real Postgres, and each test a database of its own.
//
// It needs no preparation and no TestMain: the first test of a process that asks starts a throwaway server, and the
// server and its files are gone when the process is, however it ends. With BULLPEN_TEST_DATABASE_URL set, databases are
// made on that server instead, by a user who may create them.
//
// Two copies make it fast. A cluster is initialised once a machine and then copied for each process; migrations run once
// a process and schema into a template, which is then copied for each test.
//
// When there is no Postgres and none can be had, tests are skipped, and with BULLPEN_TEST_REQUIRE=1 they fail.
//
// Only _test.go files may import this package.
package pgtest

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
)

const (
	databaseURLEnv = "BULLPEN_TEST_DATABASE_URL"
	requireEnv     = "BULLPEN_TEST_REQUIRE"

	// setupTimeout bounds what a test waits for its database, a first start on a busy machine included.
	setupTimeout = 2 * time.Minute
)

// Pool answers a pool on a schema in a database of this test's own, migrated to the newest version. Pool and database
// are gone when the test ends. Tests may run in parallel.
func Pool(t testing.TB, schema string, migrations fs.FS) *pgxpool.Pool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), setupTimeout)
	defer cancel()
	s := provide(t)
	template, err := s.template(ctx, schema, migrations)
	if err != nil {
		t.Fatalf("migrate schema %s: %v", schema, err)
	}
	pool, err := pg.Open(ctx, s.database(ctx, t, template), schema)
	if err != nil {
		t.Fatalf("open schema %s: %v", schema, err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// DSN answers the address of an empty database of this test's own.
func DSN(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), setupTimeout)
	defer cancel()
	return provide(t).database(ctx, t, "")
}

// Server answers a throwaway server of this test's own, for tests that stop it or kill it. It is stopped when the test
// ends. It keeps what was committed when it is killed, as long as the machine lives.
func Server(t testing.TB) *pgserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), setupTimeout)
	defer cancel()
	dir := Cluster(t)
	s, err := pgserver.Start(ctx, pgserver.Options{DataDir: dir, Throwaway: true, Log: testLog(t)})
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("stop the database: %v", err)
		}
	})
	return s
}

// Cluster is [Dir] with a database cluster in it that was never used, which is much faster to start than an empty one.
func Cluster(t testing.TB) string {
	t.Helper()
	dir := Dir(t)
	if err := copyCluster(t.Context(), dir); err != nil {
		unavailable(t, err)
	}
	return dir
}

// Dir answers a new folder that a server of package pgserver can be started in, also by root, for which t.TempDir is
// closed. It is removed when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	parent, err := pgserver.TempDir("bullpen-test-")
	if err != nil {
		t.Fatalf("make a folder: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			t.Errorf("remove the folder: %v", err)
		}
	})
	return filepath.Join(parent, "data")
}

// provide answers the server that this process's tests share.
func provide(t testing.TB) *server {
	t.Helper()
	s, err := shared()
	if err != nil {
		unavailable(t, err)
	}
	return s
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(requireEnv) == "1" {
		t.Fatalf("%s=1 and there is no Postgres: %v", requireEnv, err)
	}
	t.Skipf("there is no Postgres: %v", err)
}

// testLog writes to the test's own output.
func testLog(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}
