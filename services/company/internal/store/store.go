// Package store keeps revisions, sealed secrets and hashed tokens in Postgres. It is the only package of this service that
// knows SQL.
//
// Reads go through the pool. Writes go through [Store.Write], which makes an operation happen once and hands a [Tx] to
// whoever decides; what a write announces goes into the outbox in the same transaction, encoded by a function that the
// store is given, so that SQL and contracts do not meet.
package store

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are the files of the schema.
func Migrations() fs.FS {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return files
}

// Store is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	encode func(revision.Revision) (outbox.Message, error)
}

// New answers a store on a migrated schema. encode makes the event that announces an activation.
func New(pool *pgxpool.Pool, encode func(revision.Revision) (outbox.Message, error)) *Store {
	return &Store{pool: pool, encode: encode}
}

// Check proves that the tables the kit works on fit this build.
func (s *Store) Check(ctx context.Context) error {
	if err := ops.Check(ctx, s.pool); err != nil {
		return err
	}
	return outbox.Check(ctx, s.pool)
}

// Tx is a write in progress.
type Tx struct {
	tx     pgx.Tx
	encode func(revision.Revision) (outbox.Message, error)
}

// Write runs fn once for an operation, in one transaction with the ledger's row, and fills result; see [ops.Do].
func (s *Store) Write(
	ctx context.Context, op ops.Operation, result proto.Message, fn func(ctx context.Context, tx *Tx) error,
) (replayed bool, err error) {
	return ops.Do(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) error {
		return fn(ctx, &Tx{tx: tx, encode: s.encode})
	})
}

// InTx runs fn in a transaction that is no operation of a caller's.
func (s *Store) InTx(ctx context.Context, fn func(tx *Tx) error) error {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error { return fn(&Tx{tx: tx, encode: s.encode}) })
}

// Retain forgets operations that nobody may repeat any more, until ctx ends.
func (s *Store) Retain(ctx context.Context, log *slog.Logger) error {
	return ops.Retain(ctx, s.pool, log)
}
