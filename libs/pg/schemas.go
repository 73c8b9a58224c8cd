package pg

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// missingSchemas answers what EnsureSchemas still has to create; without rows there is nothing to do.
	missingSchemas = `
select wanted from unnest($1::text[]) as wanted
where not exists (select from pg_namespace where nspname = wanted)`

	trigramPresent = `select exists (select from pg_extension where extname = 'pg_trgm')`

	// schemasLock serialises creation: "if not exists" alone fails when two processes create at the same moment.
	schemasLock = `select pg_advisory_xact_lock(hashtextextended('bullpen.schemas', 0))`

	// createTrigram names the schema, because an extension otherwise lands in the first schema of the path.
	createTrigram = `create extension if not exists pg_trgm schema public`
)

// EnsureSchemas creates the schemas that are missing, and the extension pg_trgm in public. It is idempotent, safe to
// run from many processes at once, and needs no rights beyond reading when everything is there.
func EnsureSchemas(ctx context.Context, dsn string, schemas ...string) error {
	conn, err := connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return ensureSchemas(ctx, conn, schemas)
}

func ensureSchemas(ctx context.Context, conn *pgx.Conn, schemas []string) error {
	rows, err := conn.Query(ctx, missingSchemas, schemas)
	if err != nil {
		return fmt.Errorf("list schemas: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list schemas: %w", err)
	}
	var trigram bool
	if err := conn.QueryRow(ctx, trigramPresent).Scan(&trigram); err != nil {
		return fmt.Errorf("list extensions: %w", err)
	}
	if len(missing) == 0 && trigram {
		return nil
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, schemasLock); err != nil {
			return fmt.Errorf("lock the list of schemas: %w", err)
		}
		for _, schema := range missing {
			if _, err := tx.Exec(ctx, "create schema if not exists "+pgx.Identifier{schema}.Sanitize()); err != nil {
				return fmt.Errorf("create schema %s: %w", schema, err)
			}
		}
		if trigram {
			return nil
		}
		if _, err := tx.Exec(ctx, createTrigram); err != nil {
			return fault.New(fault.Unavailable, "The database lacks the extension pg_trgm and this user may not create "+
				"it. Ask its administrator to run: create extension pg_trgm schema public").WithCause(err)
		}
		return nil
	})
}

// RequireColumns proves that the tables a kit package works on are as it expects them: a service's own migration
// creates them, so a mistake there should stop the service at its start and not fail its first write. columns maps each
// column to its type as format_type prints it, such as "timestamp with time zone". Columns beyond those are welcome.
func RequireColumns(ctx context.Context, pool *pgxpool.Pool, table string, columns map[string]string) error {
	const query = `
select attname, format_type(atttypid, atttypmod) from pg_attribute
where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`
	rows, err := pool.Query(ctx, query, table)
	if err != nil {
		return fmt.Errorf("read the columns of %s: %w", table, err)
	}
	found := map[string]string{}
	var name, kind string
	if _, err := pgx.ForEachRow(rows, []any{&name, &kind}, func() error {
		found[name] = kind
		return nil
	}); err != nil {
		return fmt.Errorf("read the columns of %s: %w", table, err)
	}
	if len(found) == 0 {
		return fault.New(fault.Unavailable, "The table %s is missing from this schema; run the migrations.", table)
	}
	var wrong []string
	for _, column := range sortedKeys(columns) {
		switch got, ok := found[column]; {
		case !ok:
			wrong = append(wrong, column+" is missing")
		case got != columns[column]:
			wrong = append(wrong, column+" is "+got+", not "+columns[column])
		}
	}
	if len(wrong) > 0 {
		return fault.New(fault.Unavailable, "The table %s does not fit this build: %s.", table, strings.Join(wrong, "; "))
	}
	return nil
}
