// Package inbox takes events in once.
//
// The wire delivers at least once. A [Consumer] writes each event's id in the same transaction as the effect of its
// [Handler], and commits the offset only after that transaction: a crash anywhere in between means that the event comes
// again, finds its id, and changes nothing.
//
//	Fetch ──► begin ─ insert ids ─ handler for each new one ─ commit ──► commit offsets
//	                     │ known: dropped        │ fails
//	                     ▼                       ▼
//	                                    roll back, then one by one:
//	                     the database was away ──► again, for ever
//	                     any other failure     ──► again, MaxAttempts times
//	                     invalid, or the last  ──► dead letter, and the partition goes on
//
// The idea to hold on to: a handler only writes to its own schema, through the transaction it is given. What it does
// elsewhere is not undone by a rollback and is done again by a repetition.
//
// A dead letter is a row, and a message on the topic's twin with the suffix [DeadSuffix]. [ListDead] shows them, and
// [Redrive] runs the handler again once the cause is gone.
//
// The tables belong to the service, whose own migration creates them:
//
//	create table inbox (
//	    consumer text not null,
//	    event_id uuid not null,
//	    received_at timestamptz not null default now(),
//	    primary key (consumer, event_id)
//	);
//	create index inbox_received_at_idx on inbox (received_at);
//	create table dead_letters (
//	    id bigint generated always as identity primary key,
//	    topic text not null,
//	    key text not null,
//	    event_id uuid not null,
//	    payload bytea compression lz4 not null,
//	    headers jsonb not null default '{}',
//	    reason text not null,
//	    attempts int not null,
//	    created_at timestamptz not null default now(),
//	    redriven_at timestamptz
//	);
package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
)

const (
	insertReceived = `
insert into inbox (consumer, event_id) select $1, unnest($2::uuid[]) on conflict do nothing returning event_id`

	sweepReceived = `
delete from inbox where (consumer, event_id) in (
    select consumer, event_id from inbox where received_at < now() - $1::interval order by received_at limit $2)`

	sweepRows = 5000
)

// Handler takes one event in. It runs in the transaction that records the event's id, once per event id and consumer
// whose transaction commits. Events of one key arrive in the order they were published in, several of them perhaps in
// one transaction. The trace of ctx continues the publisher's.
//
// A fault of class invalid says that this event can never be taken in: it goes to the dead letters at once. Any other
// error is tried again. A message must not be kept after the call.
type Handler func(ctx context.Context, tx pgx.Tx, m bus.Message) error

// headerEventID is CloudEvents' id, as package outbox writes it.
const headerEventID = "ce_id"

// eventID answers the id that a message is known by. A message without a readable one came from elsewhere: it gets an
// id from its place in the topic, so that it is still taken in once, and ok is false.
func eventID(m bus.Message) (id uuid.UUID, ok bool) {
	if id, err := uuid.Parse(m.Headers[headerEventID]); err == nil {
		return id, true
	}
	place := fmt.Sprintf("%s/%d/%d", m.Topic, m.Partition, m.Offset)
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(place)), false
}

// receive records ids and answers those that are new to the consumer. An id that another transaction is recording at
// this moment is waited for.
func receive(ctx context.Context, tx pgx.Tx, consumer string, ids []uuid.UUID) (map[uuid.UUID]bool, error) {
	rows, err := tx.Query(ctx, insertReceived, consumer, ids)
	if err != nil {
		return nil, fmt.Errorf("record the events: %w", err)
	}
	fresh := make(map[uuid.UUID]bool, len(ids))
	var id uuid.UUID
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		fresh[id] = true
		return nil
	}); err != nil {
		return nil, fmt.Errorf("record the events: %w", err)
	}
	return fresh, nil
}

// Sweep forgets events that were received longer than keep ago, and answers how many. A repetition that comes later is
// taken for a new event: keep must be longer than any outbox or topic that feeds this inbox keeps its events.
func Sweep(ctx context.Context, pool *pgxpool.Pool, keep time.Duration) (int64, error) {
	if keep <= 0 {
		return 0, fault.New(fault.Invalid, "Received events must be remembered for some time; %s is none.", keep)
	}
	var total int64
	for {
		tag, err := pool.Exec(ctx, sweepReceived, keep, sweepRows)
		if err != nil {
			return total, fmt.Errorf("sweep the inbox: %w", err)
		}
		total += tag.RowsAffected()
		if tag.RowsAffected() < sweepRows {
			return total, nil
		}
	}
}

// Check proves that the schema's inbox and dead_letters tables fit this build.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	if err := pg.RequireColumns(ctx, pool, "inbox", map[string]string{
		"consumer": "text", "event_id": "uuid", "received_at": "timestamp with time zone",
	}); err != nil {
		return err
	}
	return pg.RequireColumns(ctx, pool, "dead_letters", map[string]string{
		"id": "bigint", "topic": "text", "key": "text", "event_id": "uuid", "payload": "bytea", "headers": "jsonb",
		"reason": "text", "attempts": "integer", "created_at": "timestamp with time zone",
		"redriven_at": "timestamp with time zone",
	})
}
