// Package sample fills a tracker's schema with the work of a made-up company: in bulk, always the same, and spread as real work is, most of
// it finished, a few projects large and many small, what is rare rare.
//
// It is for measuring and for tests of query plans. It writes rows and not changes: what it files was never announced to anybody. The
// schema must be migrated and empty.
package sample

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Size says how much there is to be.
type Size struct {
	Items int
	// History is how many rows of history each item has, at least 1.
	History int
	// Projects are P1, P2 and so on, the first the largest; Seats are seat-0, seat-1 and so on.
	Projects, Seats int
	// Until is when the last item was filed; the first was three years before.
	Until time.Time
}

// The statements, in their order, parted by lines of dashes. $1 is items, $2 history, $3 projects, $4 seats, $5 until.
//
//go:embed load.sql
var load string

const selectIndexes = `select c.relname, pg_get_indexdef(c.oid) from pg_index x join pg_class c on c.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
	join pg_namespace n on n.oid = t.relnamespace
	where n.nspname = current_schema() and t.relname in ('items', 'history') and not x.indisunique`

// Load fills the schema. Indexes are made after the rows, which takes a third of the time, and statistics are fresh at the end.
func Load(ctx context.Context, pool *pgxpool.Pool, size Size) error {
	rows, err := pool.Query(ctx, selectIndexes)
	if err != nil {
		return err
	}
	type index struct{ Name, Definition string }
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[index])
	if err != nil {
		return err
	}
	for _, i := range indexes {
		if _, err := pool.Exec(ctx, "drop index "+pgx.Identifier{i.Name}.Sanitize()); err != nil {
			return fmt.Errorf("drop index %s: %w", i.Name, err)
		}
	}
	for n, statement := range strings.Split(load, "\n----\n") {
		if _, err := pool.Exec(ctx, fmt.Sprintf("with size (items, history, projects, seats, until) as (values (%d, %d, %d, %d, %s::timestamptz)) %s",
			size.Items, size.History, size.Projects, size.Seats, "'"+size.Until.UTC().Format(time.RFC3339)+"'", statement)); err != nil {
			return fmt.Errorf("statement %d of the load: %w", n+1, err)
		}
	}
	for _, i := range indexes {
		if _, err := pool.Exec(ctx, i.Definition); err != nil {
			return fmt.Errorf("create index %s: %w", i.Name, err)
		}
	}
	for _, table := range []string{"projects", "items", "history", "relations", "comments", "persons", "tallies"} {
		if _, err := pool.Exec(ctx, "vacuum analyze "+table); err != nil {
			return fmt.Errorf("vacuum %s: %w", table, err)
		}
	}
	return nil
}
