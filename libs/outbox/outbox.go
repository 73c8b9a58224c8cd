// Package outbox publishes what a transaction says happened, if and only if the transaction commits.
//
// [Append] writes an event beside the rows that it is about. Later a [Relay] publishes it. Between the two stands the
// idea to hold on to: ids are drawn in one order and become visible in another, so there is no watermark. The relay
// selects what is unsent, in the order of ids, publishes it, and marks exactly what it has published. A row that commits
// late is unsent like any other and is found in the next round.
//
//	Append(id 7) ─────────────── commit            order of one key: id is drawn after the aggregate's
//	   Append(id 8) ── commit                      row lock, so ids and commits agree within it
//	                     relay: 8 … then 7         other keys: no order is promised
//
// One relay works a schema at a time, under an advisory lock that dies with its connection; the others stand by. What it
// published but could not mark is published again: at least once on the wire, and package inbox makes it once in effect.
// Rows stay for a while after they are sent, because a broker can be lost: a relay that starts and finds a topic empty that it
// had published to sends them again, and [Republish] does so on demand.
//
// The table belongs to the service, whose own migration creates it:
//
//	create table outbox (
//	    id bigint generated always as identity primary key,
//	    topic text not null,
//	    key text not null,
//	    event_id uuid not null,
//	    type text not null,
//	    payload bytea compression lz4 not null,
//	    headers jsonb not null default '{}',
//	    created_at timestamptz not null default now(),
//	    sent_at timestamptz
//	);
//	create index outbox_unsent_idx on outbox (id) where sent_at is null;
package outbox

import (
	"context"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/propagation"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
)

const (
	// MaxHeadersBytes is what keys and values of a message's own headers may take together; the relay adds about half a
	// kilobyte of its own.
	MaxHeadersBytes = 8 << 10
	// MaxKeyBytes is the longest key.
	MaxKeyBytes = 1 << 10

	insertMessage = `
insert into outbox (topic, key, event_id, type, payload, headers) values ($1, $2, $3, $4, $5, $6) returning id`

	// insertMessages draws ids in the order of the arrays.
	insertMessages = `
insert into outbox (topic, key, event_id, type, payload, headers)
select topic, key, event_id, type, payload, headers
from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::bytea[], $6::jsonb[]) with ordinality
     as m (topic, key, event_id, type, payload, headers, place)
order by place`

	republish = `update outbox set sent_at = null where sent_at is not null and created_at >= $1`
)

// Message is one event on its way out.
type Message struct {
	Topic string
	// Key is what order is kept for, normally the aggregate's id. At most [MaxKeyBytes] long.
	Key string
	// EventID is how consumers recognise a repetition. The zero value is replaced by a new UUIDv7.
	EventID uuid.UUID
	// Type is the CloudEvents type, such as "bullpen.tracker.item.v1".
	Type string
	// Payload is at most [bus.MaxValueBytes] long.
	Payload []byte
	// Headers travel beside the CloudEvents attributes and may not use their names; at most [MaxHeadersBytes].
	Headers map[string]string
}

// Append writes a message in the caller's transaction and answers its id, which is larger for a later message of the
// same key. Call it after the row lock of the aggregate that Key names: only then do ids and commits agree, and order
// per key is kept. The trace of ctx travels with the message.
//
// After the commit the caller may [Relay.Wake] the relay; without that the message leaves with the next poll.
//
// Faults: invalid, for a message that no broker would take, so that it cannot block the ones behind it.
func Append(ctx context.Context, tx pgx.Tx, m Message) (int64, error) {
	args, err := m.arguments(ctx)
	if err != nil {
		return 0, err
	}
	var id int64
	if err := tx.QueryRow(ctx, insertMessage, args...).Scan(&id); err != nil {
		return 0, fmt.Errorf("append to the outbox: %w", err)
	}
	return id, nil
}

// Queue is [Append] as one statement of a batch, for writes that go to the server in one round trip. The id can be read
// with a callback on the answered query.
func Queue(ctx context.Context, batch *pgx.Batch, m Message) (*pgx.QueuedQuery, error) {
	args, err := m.arguments(ctx)
	if err != nil {
		return nil, err
	}
	return batch.Queue(insertMessage, args...), nil
}

// QueueAll is [Append] of many messages, in their order, as one statement of a batch; without messages it queues nothing.
func QueueAll(ctx context.Context, batch *pgx.Batch, messages []Message) error {
	if len(messages) == 0 {
		return nil
	}
	n := len(messages)
	topics, keys, types := make([]string, n), make([]string, n), make([]string, n)
	ids, payloads, headers := make([][16]byte, n), make([][]byte, n), make([]map[string]string, n)
	for i, m := range messages {
		m, own, err := m.prepare(ctx)
		if err != nil {
			return err
		}
		topics[i], keys[i], ids[i], types[i], payloads[i], headers[i] = m.Topic, m.Key, m.EventID, m.Type, m.Payload, own
	}
	batch.Queue(insertMessages, topics, keys, ids, types, payloads, headers)
	return nil
}

// arguments checks the message and answers it as arguments of insertMessage.
func (m Message) arguments(ctx context.Context) ([]any, error) {
	m, headers, err := m.prepare(ctx)
	if err != nil {
		return nil, err
	}
	return []any{m.Topic, m.Key, m.EventID, m.Type, m.Payload, headers}, nil
}

// prepare checks the message and answers it complete, with the headers that it is stored with.
func (m Message) prepare(ctx context.Context) (Message, map[string]string, error) {
	if err := m.check(); err != nil {
		return m, nil, err
	}
	if m.EventID == uuid.Nil {
		id, err := uuid.NewV7()
		if err != nil {
			return m, nil, fmt.Errorf("draw an event id: %w", err)
		}
		m.EventID = id
	}
	if m.Payload == nil {
		m.Payload = []byte{}
	}
	headers := propagation.MapCarrier{}
	maps.Copy(headers, m.Headers)
	propagation.TraceContext{}.Inject(ctx, headers)
	return m, headers, nil
}

func (m Message) check() error {
	switch {
	case m.Topic == "":
		return fault.New(fault.Invalid, "An event needs a topic.").WithField("topic")
	case m.Type == "":
		return fault.New(fault.Invalid, "An event needs a type.").WithField("type")
	case len(m.Key) > MaxKeyBytes:
		return fault.New(fault.Invalid, "The key of an event is %d bytes long; at most %d are allowed.",
			len(m.Key), MaxKeyBytes).WithField("key")
	case !utf8.ValidString(m.Key):
		return fault.New(fault.Invalid, "The key of an event must be UTF-8 text.").WithField("key")
	case len(m.Payload) > bus.MaxValueBytes:
		return fault.New(fault.Invalid, "The event is %d bytes long; at most %d fit in a message. Keep the body in the "+
			"database and send its id.", len(m.Payload), bus.MaxValueBytes).WithField("payload")
	}
	size := 0
	for name, value := range m.Headers {
		if reserved(name) {
			return fault.New(fault.Invalid, "The header %q is the relay's own.", name).WithField("headers")
		}
		size += len(name) + len(value)
	}
	if size > MaxHeadersBytes {
		return fault.New(fault.Invalid, "The headers of the event take %d bytes; at most %d are allowed.",
			size, MaxHeadersBytes).WithField("headers")
	}
	return nil
}

// Republish marks everything appended since then as unsent and answers how many messages that were. It is for a broker
// that has lost what it had acknowledged: the running relay then sends them again, in their old order and under their
// old event ids, and consumers drop what they have already taken in. Reach back further than the loss, but no further
// than the relay's Keep.
func Republish(ctx context.Context, pool *pgxpool.Pool, since time.Time) (int64, error) {
	tag, err := pool.Exec(ctx, republish, since)
	if err != nil {
		return 0, fmt.Errorf("mark the outbox for publishing: %w", err)
	}
	return tag.RowsAffected(), nil
}

// Check proves that the schema's outbox table fits this build.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	return pg.RequireColumns(ctx, pool, "outbox", map[string]string{
		"id": "bigint", "topic": "text", "key": "text", "event_id": "uuid", "type": "text", "payload": "bytea",
		"headers": "jsonb", "created_at": "timestamp with time zone", "sent_at": "timestamp with time zone",
	})
}
