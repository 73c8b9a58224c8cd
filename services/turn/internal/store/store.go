// Package store is the turn service's Postgres: mailbox, leases, turns and their journal.
//
// Every write of a turn is fenced. A seat's lease has an epoch, the turn row carries the epoch of the lease that last took it
// up, and a write happens only where both match and the lease has not run out; otherwise it answers [ErrFenced] and the
// writer has lost the turn. The turn row is locked by each write, so a worker that takes a turn over waits for the write in
// flight and then shuts the old holder out.
//
// The journal is written in one statement a step, because round trips and commits are what a step costs.
package store

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations answers the schema's files.
func Migrations() fs.FS { return migrations }

// ErrFenced says that the writer no longer holds the seat.
var ErrFenced = errors.New("the seat is held by somebody else")

// Encode makes an event of a turn; sequence numbers the fact.
type Encode func(t journal.Turn, sequence int64, at time.Time) (outbox.Message, error)

// Encoders make the events that are written beside what they tell.
type Encoders struct{ Started, Resumed, Completed Encode }

// Store is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	encode Encoders
	// appended is told after a commit that wrote an event.
	appended func()
}

// New makes a store on a migrated schema. appended may be nil.
func New(pool *pgxpool.Pool, encode Encoders, appended func()) *Store {
	if appended == nil {
		appended = func() {}
	}
	return &Store{pool: pool, encode: encode, appended: appended}
}

// Check proves that the tables of the kit fit this build.
func (s *Store) Check(ctx context.Context) error {
	return errors.Join(outbox.Check(ctx, s.pool), inbox.Check(ctx, s.pool))
}

// Fence is what a writer must hold.
type Fence struct {
	Seat  string
	Epoch int64
}

const lockSeat = `
select nextval('facts') from seats where seat = $1 and epoch = $2 and expires_at > clock_timestamp() for share`

// fenced runs fn in a transaction that holds the lease still; sequence is a fresh fact number.
func (s *Store) fenced(ctx context.Context, f Fence, fn func(tx pgx.Tx, sequence int64) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var sequence int64
		err := tx.QueryRow(ctx, lockSeat, f.Seat, f.Epoch).Scan(&sequence)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrFenced
		}
		if err != nil {
			return fmt.Errorf("lock the seat: %w", err)
		}
		return fn(tx, sequence)
	})
}

// inlineBytes is the longest text kept in its row.
const inlineBytes = 8 << 10

// payloads collects the long texts of one write.
type payloads struct{ digests, bodies [][]byte }

// blob answers a text as its row keeps it: itself, or the digest under which it stands in payloads.
func (p *payloads) blob(text []byte) (inline, digest []byte) {
	if len(text) <= inlineBytes {
		if text == nil {
			text = []byte{}
		}
		return text, nil
	}
	sum := sha256.Sum256(text)
	p.digests, p.bodies = append(p.digests, sum[:]), append(p.bodies, text)
	return nil, sum[:]
}

const insertPayloads = `
insert into payloads (digest, body) select * from unnest($1::bytea[], $2::bytea[]) on conflict do nothing`

func notFound(what, id string) *fault.Error {
	return fault.New(fault.NotFound, "There is no %s %q.", what, id)
}
