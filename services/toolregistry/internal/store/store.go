// Package store keeps the audit in Postgres: the only package of this service that knows SQL.
//
// A call and the event that tells of it are written in one transaction. The event is made by a function the store is given, so
// that contracts and queries do not meet.
package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// Migrations are the schema's files.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// EncodeFunc makes the event of a call; sequence is the fact's place in this service's order.
type EncodeFunc func(r *call.Record, sequence int64) (outbox.Message, error)

// Store keeps calls. Safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	encode EncodeFunc
	wake   func()
}

// New makes a store on a migrated pool. wake is told after each commit that left events behind.
func New(pool *pgxpool.Pool, encode EncodeFunc, wake func()) *Store {
	return &Store{pool: pool, encode: encode, wake: wake}
}

const (
	// drawFacts is called by RestoreCalls: one number for each event.
	drawFacts = `select nextval('call_facts') from generate_series(1, $1)`

	// byIndex is called by InsertCalls: a plan is kept for as long as its connection, and one from when the table was small would read
	// all of it for ever.
	byIndex = `set local enable_seqscan = off`

	// deleteRestored is called by InsertCalls: the door's own rows replace what was restored for them meanwhile, and each of their
	// events has a number.
	deleteRestored = `
with replaced as (
    delete from calls c using unnest($1::text[], $2::text[]) as own (turn_id, call_id)
    where c.restored and c.turn_id <> '' and c.turn_id = own.turn_id and c.call_id = own.call_id
)
select nextval('call_facts') from generate_series(1, $3::int)`

	// insertCalls is called by InsertCalls with a column an argument. A row that is there stays: a batch whose commit was not
	// heard of is written again.
	insertCalls = `
insert into calls (audit_id, call_id, principal, seat, turn_id, tool, source, arguments, result, status, refusal_class, outcome,
                   operation_id, decision, rule, approval_id, started_at, duration_micros)
select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                     $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::timestamptz[],
                     $18::bigint[])
on conflict (audit_id) do nothing`
)

// InsertCalls writes calls and their events, all or none. Writing the same calls again adds no row, and events that consumers
// recognise by their id. Faults: invalid, when a call holds what no row can.
func (s *Store) InsertCalls(ctx context.Context, records []*call.Record) error {
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		columns := columnsOf(records)
		facts, err := replaceRestored(ctx, tx, columns[4], columns[1], len(records))
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(insertCalls, columns...)
		if err := s.queueEvents(ctx, batch, records, facts); err != nil {
			return err
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return refused(fmt.Errorf("insert %d calls: %w", len(records), err))
	}
	s.wake()
	return nil
}

// refused tells what Postgres will never take from what it could not take now.
func refused(err error) error {
	const dataException, constraintViolation, limitExceeded = "22", "23", "54"
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && len(pgErr.Code) > 2 {
		switch pgErr.Code[:2] {
		case dataException, constraintViolation, limitExceeded:
			return fault.New(fault.Invalid, "The call cannot be stored.").WithCause(err)
		}
	}
	return err
}

// replaceRestored makes room for the rows of calls, and answers a number for each of their events.
func replaceRestored(ctx context.Context, tx pgx.Tx, turns, calls any, n int) (facts []int64, err error) {
	batch := &pgx.Batch{}
	batch.Queue(byIndex)
	batch.Queue(deleteRestored, turns, calls, n).Query(func(rows pgx.Rows) (err error) {
		facts, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	err = tx.SendBatch(ctx, batch).Close()
	return facts, err
}

func (s *Store) drawFacts(ctx context.Context, tx pgx.Tx, n int) ([]int64, error) {
	rows, err := tx.Query(ctx, drawFacts, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func (s *Store) queueEvents(ctx context.Context, batch *pgx.Batch, records []*call.Record, facts []int64) error {
	messages := make([]outbox.Message, len(records))
	for i, r := range records {
		var err error
		if messages[i], err = s.encode(r, facts[i]); err != nil {
			return err
		}
	}
	return outbox.QueueAll(ctx, batch, messages)
}

// columnsOf turns rows into the arguments of insertCalls.
func columnsOf(records []*call.Record) []any {
	const texts = 15
	n := len(records)
	ids, starts, durations := make([][16]byte, n), make([]time.Time, n), make([]int64, n)
	text := make([][]string, texts)
	for j := range text {
		text[j] = make([]string, n)
	}
	for i, r := range records {
		ids[i], starts[i], durations[i] = r.ID, r.StartedAt, r.Duration.Microseconds()
		for j, value := range []string{
			r.CallID, r.Principal, r.Seat, r.TurnID, r.Tool, r.Source, r.Arguments, r.Result, r.Status, r.RefusalClass, r.Outcome, r.OperationID,
			r.Decision, r.Rule, r.ApprovalID,
		} {
			text[j][i] = value
		}
	}
	columns := []any{ids}
	for _, column := range text {
		columns = append(columns, column)
	}
	return append(columns, starts, durations)
}
