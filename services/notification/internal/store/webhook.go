package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lanes is how many webhooks can be routed at a time at the most. A lane is
// chosen by what is known before a body is read: the hook or app.
const Lanes = 8

// Webhook is a request as it came in, verified but not yet read.
type Webhook struct {
	ID       int64
	Source   string
	Endpoint string
	Delivery string
	Event    string
	Form     bool
	Body     []byte
	// Reason, when not empty, is why the webhook is a dead letter from the start.
	Reason     string
	ReceivedAt time.Time
}

// Lane is the webhook's.
func (w *Webhook) Lane() int {
	h := fnv.New32a()
	h.Write([]byte(w.Source + "\x00" + w.Endpoint))
	return int(h.Sum32() % Lanes)
}

// The dedupe row and the work to do are the same row, so neither can be there
// without the other. Many webhooks may come in one statement; two of them that
// are the same delivery are one row.
const insertWebhooks = `
insert into webhooks (source, endpoint, delivery, event, form, body, received_at, lane, state, reason, settled_at)
select source, endpoint, delivery, event, form, body, received_at, lane,
       case when reason = '' then 'received' else 'dead' end, reason,
       case when reason = '' then null else received_at end
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::bytea[], $7::timestamptz[],
            $8::smallint[], $9::text[])
     with ordinality as w (source, endpoint, delivery, event, form, body, received_at, lane, reason, place)
order by place
on conflict on constraint webhooks_delivery_key do nothing
returning source, endpoint, delivery`

// InsertWebhooks makes webhooks durable in one commit and answers, for each,
// whether it is new. A false one was acknowledged before.
func (s *Store) InsertWebhooks(ctx context.Context, webhooks []Webhook) ([]bool, error) {
	n := len(webhooks)
	var (
		sources, endpoints, deliveries = make([]string, n), make([]string, n), make([]string, n)
		events, reasons                = make([]string, n), make([]string, n)
		forms, bodies                  = make([]bool, n), make([][]byte, n)
		times, lanes                   = make([]time.Time, n), make([]int16, n)
	)
	for i := range webhooks {
		w := &webhooks[i]
		sources[i], endpoints[i], deliveries[i], events[i] = w.Source, w.Endpoint, w.Delivery, w.Event
		forms[i], bodies[i], times[i], lanes[i], reasons[i] = w.Form, w.Body, w.ReceivedAt, int16(w.Lane()), w.Reason
	}
	rows, err := s.pool.Query(ctx, insertWebhooks, sources, endpoints, deliveries, events, forms, bodies, times, lanes, reasons)
	if err != nil {
		return nil, fmt.Errorf("insert webhooks: %w", err)
	}
	type identity struct{ source, endpoint, delivery string }
	inserted := make(map[identity]bool, n)
	var id identity
	if _, err := pgx.ForEachRow(rows, []any{&id.source, &id.endpoint, &id.delivery}, func() error {
		inserted[id] = true
		return nil
	}); err != nil {
		return nil, fmt.Errorf("insert webhooks: %w", err)
	}
	fresh := make([]bool, n)
	for i := range webhooks {
		key := identity{webhooks[i].Source, webhooks[i].Endpoint, webhooks[i].Delivery}
		fresh[i] = inserted[key]
		delete(inserted, key) // of two in one statement, the first is the new one
	}
	return fresh, nil
}

const waitingLanes = `select distinct lane from webhooks where state = 'received'`

// WaitingLanes answers the lanes that have something to route.
func (s *Store) WaitingLanes(ctx context.Context) ([]int, error) {
	rows, err := s.pool.Query(ctx, waitingLanes)
	if err != nil {
		return nil, fmt.Errorf("look for waiting lanes: %w", err)
	}
	lanes, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("look for waiting lanes: %w", err)
	}
	return lanes, nil
}

const sweepWebhooks = `
delete from webhooks where id in (
    select id from webhooks where received_at < now() - $1::interval and state in ('routed', 'ignored') limit 1000)`

// SweepWebhooks deletes settled webhooks older than keep and answers how many.
// After that a repetition is no longer recognised as one by its delivery id;
// messages stay recognised by their deliveries.
func (s *Store) SweepWebhooks(ctx context.Context, keep time.Duration) (int64, error) {
	var total int64
	for {
		tag, err := s.pool.Exec(ctx, sweepWebhooks, keep)
		if err != nil {
			return total, fmt.Errorf("sweep webhooks: %w", err)
		}
		total += tag.RowsAffected()
		if tag.RowsAffected() < 1000 {
			return total, nil
		}
	}
}
