// Package store is the tracker's Postgres: the only package that knows its tables.
//
// A write locks its item (or its project, for a new item), draws its place in the order of writes after the lock, lets the item
// decide, and sends row, history, event and ledger to the server in one round trip with the commit.
package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
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

// epoch advances when the tracker's history is restored from a backup.
const epoch = 1

// Event is what a write tells the world.
type Event struct {
	// Item is as the change leaves it; nil for a change of a project alone.
	Item *item.Item
	// Project is the key, for a change of a project alone.
	Project  string
	Change   item.Change
	Comment  *Comment // for a comment
	Mentions []string
	Lead     string // of the project's unit
	Position ops.Position
}

// Encoder makes the outbox message of an event. It is given to Open, so that SQL and the wire never meet.
type Encoder func(Event) (outbox.Message, error)

// Comment is a remark in an item's thread.
type Comment struct {
	ID        uuid.UUID
	Author    item.Actor
	Body      string
	ReplyTo   *uuid.UUID
	Mentions  []string
	CreatedAt time.Time
}

// Entry is a row of history.
type Entry struct {
	Position  ops.Position
	Change    item.Change
	CommentID *uuid.UUID
}

// Store reads and writes the tracker's tables. It is safe for concurrent use.
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
	return ops.Position{Service: "tracker", Epoch: epoch, Sequence: sequence}
}

// record queues what every write leaves behind: the row of history and the event.
func (s *Store) record(ctx context.Context, batch *pgx.Batch, e Event, commentID *uuid.UUID) error {
	c := e.Change
	batch.Queue(`insert into history (position, item_id, kind, actor, actor_kind, actor_seat, fields, comment_id, turn_id, version, reassignments, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		e.Position.Sequence, e.Item.ID, c.Kind, c.By.Name, c.By.Kind, c.By.Seat, c.Fields, commentID, c.By.Turn, c.Version, c.Reassignments, c.At)
	message, err := s.encode(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	_, err = outbox.Queue(ctx, batch, message)
	return err
}
