// Package store is the knowledge base's Postgres: the only package that knows its tables.
package store

import (
	"context"
	"embed"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/org"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/page"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations are the schema's files.
func Migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// epoch advances when the history is restored from a backup.
const epoch = 1

// Event is what a write tells the world.
type Event struct {
	Page     *page.Page
	By       page.Author
	Mentions []string
	Position ops.Position
}

// Encoder makes the outbox message of an event. It is given to Open, so that SQL and the wire never meet.
type Encoder func(Event) (outbox.Message, error)

// Store reads and writes the tables. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	encode Encoder
	wake   func()
}

// Open proves that the schema fits this build. wake is called after each commit that appended an event.
func Open(ctx context.Context, pool *pgxpool.Pool, encode Encoder, wake func()) (*Store, error) {
	if err := ops.Check(ctx, pool); err != nil {
		return nil, err
	}
	if err := outbox.Check(ctx, pool); err != nil {
		return nil, err
	}
	return &Store{pool: pool, encode: encode, wake: wake}, nil
}

func position(sequence int64) ops.Position {
	return ops.Position{Service: "knowledge", Epoch: epoch, Sequence: sequence}
}

// SyncContainers brings the org chart's containers up to a revision. An older revision than the one written changes nothing; a
// container that the chart no longer names keeps its pages.
func (s *Store) SyncContainers(ctx context.Context, o *org.Org) error {
	batch := &pgx.Batch{}
	for _, c := range o.Containers {
		batch.Queue(`insert into containers as c (key, name, purpose, unit, epoch) values ($1, $2, $3, $4, $5)
			on conflict (key) do update set name = excluded.name, purpose = excluded.purpose, unit = excluded.unit, epoch = excluded.epoch, updated_at = now()
			where c.epoch < excluded.epoch`, c.Key, c.Name, c.Purpose, c.Unit, o.Epoch)
	}
	return s.pool.SendBatch(ctx, batch).Close()
}
