package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

const listDeliveries = `
select delivery_id, seat, conversation_key, message_id, message_revision, source, obligation, addressed, reason,
    sender_vendor_id, sender_name, sender_seat, sender_bot, subject, body, url, occurred_at, received_at, sequence, surface, position
from deliveries
where ($1 = '' or seat = $1) and ($2 = '' or conversation_key = $2) and ($3 = 0 or sequence < $3)
order by sequence desc limit $4`

// ListDeliveries answers deliveries, newest first, those before a sequence
// unless that is 0.
func (s *Store) ListDeliveries(ctx context.Context, seat, conversation string, before int64, limit int) ([]*delivery.Delivery, error) {
	rows, err := s.pool.Query(ctx, listDeliveries, seat, conversation, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*delivery.Delivery, error) {
		var d delivery.Delivery
		err := row.Scan(&d.ID, &d.Seat, &d.ConversationKey, &d.MessageID, &d.MessageRevision, &d.Source, &d.Obligation,
			&d.Addressed, &d.Reason, &d.Sender.VendorID, &d.Sender.Name, &d.Sender.Seat, &d.Sender.Bot, &d.Subject, &d.Body,
			&d.URL, &d.OccurredAt, &d.ReceivedAt, &d.Sequence, &d.Surface, &d.Position)
		return &d, err
	})
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return found, nil
}

// DeadLetter is a webhook that could not be understood.
type DeadLetter struct {
	ID         int64
	Source     string
	Event      string
	Key        string
	Reason     string
	ReceivedAt time.Time
	RedrivenAt *time.Time
}

const listDead = `
select id, source, event, endpoint || '/' || delivery, reason, received_at, redriven_at
from webhooks where state = 'dead' or redriven_at is not null order by id desc limit $1`

// ListDead answers dead letters, newest first, those that were redriven
// included.
func (s *Store) ListDead(ctx context.Context, limit int) ([]DeadLetter, error) {
	rows, err := s.pool.Query(ctx, listDead, limit)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DeadLetter])
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return found, nil
}

const (
	reviveDead = `
update webhooks set state = 'received', reason = '', settled_at = null
where state = 'dead' and (cardinality($1::bigint[]) = 0 or id = any($1))
returning id`

	markRedriven = `
update webhooks set redriven_at = now() where id = any($1::bigint[]) and state in ('routed', 'ignored')`

	countDead = `select count(*) from webhooks where id = any($1::bigint[]) and state = 'dead'`
)

// Revive makes dead letters wait to be routed again, all of them when none is
// named, and answers which they are.
func (s *Store) Revive(ctx context.Context, ids []int64) ([]int64, error) {
	if ids == nil {
		ids = []int64{}
	}
	rows, err := s.pool.Query(ctx, reviveDead, ids)
	if err != nil {
		return nil, fmt.Errorf("revive dead letters: %w", err)
	}
	revived, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("revive dead letters: %w", err)
	}
	return revived, nil
}

// Redriven records which of the revived were routed, and answers how many were
// and how many are dead again.
func (s *Store) Redriven(ctx context.Context, ids []int64) (redriven, failed int, err error) {
	batch := &pgx.Batch{}
	batch.Queue(markRedriven, ids)
	batch.Queue(countDead, ids)
	results := s.pool.SendBatch(ctx, batch)
	tag, err := results.Exec()
	if err == nil {
		err = results.QueryRow().Scan(&failed)
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return 0, 0, fmt.Errorf("settle redriven dead letters: %w", err)
	}
	return int(tag.RowsAffected()), failed, nil
}
