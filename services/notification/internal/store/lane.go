package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

const (
	// The lock is the transaction's: it ends with it, however it ends, so a lane
	// is never left to a process that has died.
	lockLane = `select pg_advisory_xact_lock(hashtext('bullpen.notification.lane.' || current_schema()), $1)`

	selectReceived = `
select id, source, endpoint, delivery, event, form, body, received_at
from webhooks where lane = $1 and state = 'received' order by id limit $2`

	settleWebhook = `
update webhooks set state = $2, reason = $3, decisions = $4, attempts = attempts + 1, settled_at = now() where id = $1`
)

// Settlement is what became of a webhook.
type Settlement struct {
	// Webhook is its id.
	Webhook int64
	// State is routed, ignored or dead.
	State     string
	Reason    string
	Decisions []delivery.Decision
}

// States of a webhook that is settled.
const (
	Routed  = "routed"
	Ignored = "ignored"
	Dead    = "dead"
)

// RouteLane hands the oldest waiting webhooks of a lane, at most limit, to
// route, and commits together all that it writes through the lane. It waits
// while another process routes the same lane, and answers how many there were.
// After an error nothing is settled.
func (s *Store) RouteLane(ctx context.Context, lane, limit int, route func(ctx context.Context, l *Lane, webhooks []Webhook) error) (int, error) {
	n := 0
	err := pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockLane, lane); err != nil {
			return fmt.Errorf("lock lane: %w", err)
		}
		rows, err := tx.Query(ctx, selectReceived, lane, limit)
		if err != nil {
			return fmt.Errorf("read lane: %w", err)
		}
		webhooks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Webhook, error) {
			var w Webhook
			err := row.Scan(&w.ID, &w.Source, &w.Endpoint, &w.Delivery, &w.Event, &w.Form, &w.Body, &w.ReceivedAt)
			return w, err
		})
		if err != nil {
			return fmt.Errorf("read lane: %w", err)
		}
		n = len(webhooks)
		if n == 0 {
			return nil
		}
		return route(ctx, &Lane{tx: tx, encode: s.encode}, webhooks)
	})
	return n, err
}

// Lane is a lane while it is being routed, for one goroutine.
type Lane struct {
	tx     pgx.Tx
	encode Encode
}

// Settle records what became of webhooks, in one round trip.
func (l *Lane) Settle(ctx context.Context, settlements ...Settlement) error {
	batch := &pgx.Batch{}
	for _, s := range settlements {
		decisions := s.Decisions
		if decisions == nil {
			decisions = []delivery.Decision{}
		}
		encoded, err := json.Marshal(decisions)
		if err != nil {
			return fmt.Errorf("encode decisions: %w", err)
		}
		batch.Queue(settleWebhook, s.Webhook, s.State, s.Reason, encoded)
	}
	if err := l.tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("settle webhooks: %w", err)
	}
	return nil
}

// Known is what earlier deliveries say about a notice.
type Known struct {
	// Author is the seat that wrote the message through us; empty for others.
	Author string
	// Following are the seats that are part of the conversation.
	Following map[string]bool
	// Told are the seats that this message has addressed, in any revision.
	Told map[string]bool
	// MachineWakes counts, by seat, what programs sent to the conversation since the asked time.
	MachineWakes map[string]int
}

const (
	knownSeats = `
select seat,
       coalesce(bool_or(addressed and message_id = $2), false),
       count(*) filter (where machine and created_at > $3)
from deliveries where conversation_key = $1 group by seat`

	// A marker that names a message which stands elsewhere is a copy, not our post.
	knownAuthor = `
select seat from outbound
where surface = $1 and (vendor_id = $2 and $2 <> '' or message_id = $3 and vendor_id in ('', $2))
limit 1`
)

// Known looks up what is known about a notice; since bounds MachineWakes.
func (l *Lane) Known(ctx context.Context, n *delivery.Notice, since time.Time) (Known, error) {
	marker, err := uuid.Parse(n.Marker)
	if err != nil {
		marker = uuid.Nil
	}
	k := Known{Following: map[string]bool{}, Told: map[string]bool{}, MachineWakes: map[string]int{}}
	batch := &pgx.Batch{}
	batch.Queue(knownAuthor, n.Source, n.OutboundID, marker).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&k.Author}, func() error { return nil })
		return err
	})
	batch.Queue(knownSeats, n.ConversationKey, n.MessageID, since).Query(func(rows pgx.Rows) error {
		var (
			seat  string
			told  bool
			wakes int
		)
		_, err := pgx.ForEachRow(rows, []any{&seat, &told, &wakes}, func() error {
			k.Following[seat], k.Told[seat], k.MachineWakes[seat] = true, told, wakes
			return nil
		})
		return err
	})
	if err := l.tx.SendBatch(ctx, batch).Close(); err != nil {
		return Known{}, fmt.Errorf("look up a conversation: %w", err)
	}
	return k, nil
}

const insertDelivery = `
insert into deliveries (delivery_id, seat, conversation_key, message_id, message_revision, source, obligation, addressed,
    reason, sender_vendor_id, sender_name, sender_seat, sender_bot, machine, subject, body, url, occurred_at, received_at,
    webhook_id, surface, position)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
on conflict do nothing
returning sequence`

// columnsOf answers what insertDelivery stores; webhook is nil for what came by
// none.
func columnsOf(d *delivery.Delivery, webhook *int64) []any {
	return []any{
		d.ID, d.Seat, d.ConversationKey, d.MessageID, d.MessageRevision, d.Source, d.Obligation, d.Addressed, d.Reason,
		d.Sender.VendorID, d.Sender.Name, d.Sender.Seat, d.Sender.Bot, d.Sender.Machine(), d.Subject, d.Body, d.URL,
		d.OccurredAt, d.ReceivedAt, webhook, d.Surface, d.Position,
	}
}

// Deliver makes a delivery and the event that tells of it, and answers false
// when the seat has this revision of the message already. It fills in the
// sequence.
func (l *Lane) Deliver(ctx context.Context, webhook int64, d *delivery.Delivery) (bool, error) {
	rows, err := l.tx.Query(ctx, insertDelivery, columnsOf(d, &webhook)...)
	if err != nil {
		return false, fmt.Errorf("insert delivery: %w", err)
	}
	sequences, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return false, fmt.Errorf("insert delivery: %w", err)
	}
	if len(sequences) == 0 {
		return false, nil
	}
	d.Sequence = sequences[0]
	event, err := l.encode(d)
	if err != nil {
		return false, err
	}
	_, err = outbox.Append(ctx, l.tx, event)
	return true, err
}
