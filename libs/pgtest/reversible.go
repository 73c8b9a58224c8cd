package pgtest

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/pg"
)

// UpDownUp proves that every migration can be undone: all of them up, all down again, after which the schema must be empty,
// and up once more.
func UpDownUp(t testing.TB, migrations fs.FS) {
	t.Helper()
	const schema = "reversible"
	dsn := DSN(t)
	if err := pg.EnsureSchemas(t.Context(), dsn, schema); err != nil {
		t.Fatalf("create the schema: %v", err)
	}
	pool, err := pg.Open(t.Context(), dsn, schema)
	if err != nil {
		t.Fatalf("open the schema: %v", err)
	}
	t.Cleanup(pool.Close)
	up, down := files(t, migrations, ".up.sql"), files(t, migrations, ".down.sql")
	slices.Reverse(down)
	if len(up) == 0 || len(up) != len(down) {
		t.Fatalf("%d migrations go up and %d down", len(up), len(down))
	}
	apply(t, pool, migrations, up)
	apply(t, pool, migrations, down)
	var left []string
	const relations = `select coalesce(array_agg(relname::text), '{}') from pg_class where relnamespace = 'reversible'::regnamespace`
	if err := pool.QueryRow(t.Context(), relations).Scan(&left); err != nil {
		t.Fatalf("look at the schema: %v", err)
	}
	if len(left) > 0 {
		t.Fatalf("going down leaves %s", strings.Join(left, ", "))
	}
	apply(t, pool, migrations, up)
}

// files answers the migrations of one direction in order.
func files(t testing.TB, migrations fs.FS, suffix string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(migrations, ".", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path.Base(name), suffix) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatalf("read the migrations: %v", err)
	}
	slices.Sort(names)
	return names
}

func apply(t testing.TB, pool *pgxpool.Pool, migrations fs.FS, names []string) {
	t.Helper()
	for _, name := range names {
		sql, err := fs.ReadFile(migrations, name)
		if err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		if _, err := pool.Exec(t.Context(), string(sql)); err != nil {
			t.Fatalf("apply %s: %v", name, err)
		}
	}
}
