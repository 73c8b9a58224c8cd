package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	versionTable = "schema_migrations"
	// migrateLockTimeout is how long a replica waits for another one that is migrating the same schema.
	migrateLockTimeout = 5 * time.Minute
	// migrateParallel bounds the connections of a cold start; each schema takes two.
	migrateParallel = 8
)

// Migrate brings every schema to the newest version among its migrations, creating schemas that are missing. sources
// maps a schema to a file system with NNNNNN_what.up.sql and .down.sql files, all in one folder of it.
//
// One query compares all versions first, so a start with nothing to do costs a round trip; what is behind is migrated
// in parallel. Processes that start at the same time wait for each other. Each file is one transaction together with the
// note that it was made, so after a failure or a kill the next call goes on where this one came to; a statement that
// Postgres runs outside of transactions only has no place in it. It refuses, with a sentence, a schema that a newer build
// has migrated, and one that another tool has marked as half done.
func Migrate(ctx context.Context, dsn string, sources map[string]fs.FS) error {
	conn, err := connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	wanted := make(map[string]uint, len(sources))
	for schema, files := range sources {
		if wanted[schema], err = newest(files); err != nil {
			return fmt.Errorf("read the migrations of %s: %w", schema, err)
		}
	}
	present, err := versions(ctx, conn, sortedKeys(sources))
	if err != nil {
		return err
	}
	var behind []string
	for _, schema := range sortedKeys(sources) {
		switch at := present[schema]; {
		case at.number > wanted[schema]:
			return newerSchema(schema, at.number, wanted[schema])
		case at.number < wanted[schema], at.dirty:
			// Dirty may mean that another tool is migrating at this moment: only its lock tells.
			behind = append(behind, schema)
		}
	}
	if len(behind) == 0 {
		return nil
	}
	if err := ensureSchemas(ctx, conn, behind); err != nil {
		return err
	}
	translate, err := portable(ctx, conn)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(migrateParallel)
	for _, schema := range behind {
		group.Go(func() error { return migrateUp(ctx, dsn, schema, translate(sources[schema])) })
	}
	return group.Wait()
}

func migrateUp(ctx context.Context, dsn, schema string, files fs.FS) error {
	m, err := openMigrate(dsn, schema, files)
	if err != nil {
		return err
	}
	defer m.Close()
	stop := context.AfterFunc(ctx, func() { m.GracefulStop <- true })
	defer stop()

	err = m.Up()
	if dirty, ok := errors.AsType[migrate.ErrDirty](err); ok {
		return fault.New(fault.Conflict, "Another tool has marked the migration %d of schema %s as broken off half way. Look "+
			"at what it did, finish or undo it by hand, and then set dirty to false in %s.%s.",
			dirty.Version, schema, schema, versionTable)
	}
	if err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("migrate schema %s: %w", schema, err)
	}
	return ctx.Err()
}

func openMigrate(dsn, schema string, files fs.FS) (*migrate.Migrate, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, invalidDSN(err)
	}
	delete(cfg.RuntimeParams, poolSizeParam)
	onSchema(cfg, schema)
	dir, err := folder(files)
	if err != nil {
		return nil, err
	}
	src, err := iofs.New(files, dir)
	if err != nil {
		return nil, fmt.Errorf("read the migrations of %s: %w", schema, err)
	}
	db := stdlib.OpenDB(*cfg)
	driver, err := migratepgx.WithInstance(db, &migratepgx.Config{MigrationsTable: versionTable})
	if err != nil {
		return nil, errors.Join(unreachable(err), src.Close(), db.Close())
	}
	m, err := migrate.NewWithInstance("iofs", src, "pgx5", &atomicDriver{Driver: driver, db: db})
	if err != nil {
		return nil, errors.Join(err, src.Close(), driver.Close())
	}
	m.LockTimeout = migrateLockTimeout
	return m, nil
}

type version struct {
	number uint
	dirty  bool
}

// versions answers where each schema stands; a schema that was never migrated is left out.
func versions(ctx context.Context, conn *pgx.Conn, schemas []string) (map[string]version, error) {
	found, err := selectVersions(ctx, conn, schemas)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != undefinedTable {
		return found, err
	}
	// A cold start: ask only those that have the table.
	const migrated = `
select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relname = $1 and n.nspname = any($2)`
	rows, err := conn.Query(ctx, migrated, versionTable, schemas)
	if err != nil {
		return nil, fmt.Errorf("list the migrated schemas: %w", err)
	}
	schemas, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list the migrated schemas: %w", err)
	}
	return selectVersions(ctx, conn, schemas)
}

func selectVersions(ctx context.Context, conn *pgx.Conn, schemas []string) (map[string]version, error) {
	found := make(map[string]version, len(schemas))
	if len(schemas) == 0 {
		return found, nil
	}
	parts := make([]string, len(schemas))
	for i, schema := range schemas {
		parts[i] = fmt.Sprintf("select $%d::text, version, dirty from %s", i+1,
			pgx.Identifier{schema, versionTable}.Sanitize())
	}
	args := make([]any, len(schemas))
	for i, schema := range schemas {
		args[i] = schema
	}
	rows, err := conn.Query(ctx, strings.Join(parts, " union all "), args...)
	if err != nil {
		return nil, fmt.Errorf("compare schema versions: %w", err)
	}
	var (
		schema string
		number int64
		dirty  bool
	)
	if _, err := pgx.ForEachRow(rows, []any{&schema, &number, &dirty}, func() error {
		// golang-migrate writes -1 for a schema that was taken back to nothing.
		found[schema] = version{number: uint(max(number, 0)), dirty: dirty}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("compare schema versions: %w", err)
	}
	return found, nil
}

// newest answers the highest version among the files.
func newest(files fs.FS) (uint, error) {
	dir, err := folder(files)
	if err != nil {
		return 0, err
	}
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return 0, err
	}
	var top uint
	for _, entry := range entries {
		if m, err := source.Parse(entry.Name()); err == nil {
			top = max(top, m.Version)
		}
	}
	return top, nil
}

// folder answers the one folder that holds the migrations, so that both an embedded "migrations" folder and its
// contents may be given.
func folder(files fs.FS) (string, error) {
	found := map[string]bool{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, ".up.sql") {
			found[path.Dir(name)] = true
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("migrations must lie in exactly one folder, not in %d", len(found))
	}
	return sortedKeys(found)[0], nil
}

func newerSchema(schema string, at, wanted uint) error {
	return fault.New(fault.Conflict, "Schema %s is at version %d and this build knows only %d: a newer build has "+
		"migrated it. Run that build, or a newer one.", schema, at, wanted)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
