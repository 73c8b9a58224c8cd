// Package store is the tracker's Postgres: the only package that knows its tables.
//
// A write locks its item, draws its place in the order of writes after the lock, lets the item decide, and sends row, history, event
// and ledger to the server in one round trip with the commit.
//
// The order of locks is the same everywhere, so that no two writes wait for each other: the ledger's operation, trees by project (see
// [lockTrees]), a project's order (see [Store.PlaceItem]), rows of projects by key, then items by id, then the items that a finish frees
// (see [freed]), then tallies. A new item locks its project, as it draws the number from there.
package store

import (
	"context"
	"embed"
	"io/fs"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
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
	// Item is as the change leaves it, Before as it was; Before is nil for a new item, and both are for a change of a project alone.
	Item, Before *item.Item
	// Project is the key of the item's project, or of the one that changed.
	Project  string
	Change   item.Change
	Comment  *Comment // for a comment
	Mentions []string
	// Concerns are whom it concerns, as [wake.Resolve] says.
	Concerns []wake.Concern
	// Lead leads the project's unit, RoutingLead the one that the item is routed to.
	Lead, RoutingLead string
	// ParentAssignee has the item that this one is part of.
	ParentAssignee string
	// Facts are what else decides whom the change concerns: who spoke, was asked or answered, and the other items that it reaches. What
	// stands in other fields of the event is filled in from there.
	Facts    wake.Facts
	Position ops.Position
}

// Encoder makes the outbox message of an event. It is given to Open, so that SQL and the wire never meet.
type Encoder func(Event) (outbox.Message, error)

// Entry is a row of history.
type Entry struct {
	Position ops.Position
	// ItemID is nil for a change of a project alone.
	ItemID    *uuid.UUID
	Project   string
	Change    item.Change
	CommentID *uuid.UUID
	// Excerpt is the beginning of what was said.
	Excerpt string
	// Notified reports whether it concerned somebody else.
	Notified bool
}

// Store reads and writes the tracker's tables. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	encode Encoder
	// relay is called after each commit that appended an event.
	relay func()
	// newest is a place in the order of writes that was drawn.
	newest atomic.Int64
}

// Open proves that the schema fits this build. relay is called after each commit that appended an event.
func Open(ctx context.Context, pool *pgxpool.Pool, encode Encoder, relay func()) (*Store, error) {
	if err := ops.Check(ctx, pool); err != nil {
		return nil, err
	}
	if err := outbox.Check(ctx, pool); err != nil {
		return nil, err
	}
	return &Store{pool: pool, encode: encode, relay: relay}, nil
}

func position(sequence int64) ops.Position {
	return ops.Position{Service: "tracker", Epoch: epoch, Sequence: sequence}
}

// written wakes the relay after a commit that may have appended.
func (s *Store) written(replayed bool, err error) error {
	if err == nil && !replayed {
		s.relay()
	}
	return err
}
