package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
)

// States of an outbound message.
const (
	Queued  = "queued"
	Sending = "sending" // a worker is sending it, or died while it was
	Unknown = "unknown" // it was sent and may stand
	Posted  = "posted"
	Failed  = "failed"
)

// Outbound is an answer on its way to a vendor.
type Outbound struct {
	Sequence        int64
	ID              uuid.UUID
	Seat            string
	Surface         string
	ConversationKey string
	Body            string
	State           string
	Attempts        int
	Lookups         int
	Detail          string
	Failure         fault.Class
	URL             string
	TurnID          string
	CreatedAt       time.Time
	PostedAt        *time.Time
}

const (
	selectConversed = `select exists (select 1 from deliveries where conversation_key = $1 and seat = $2)`

	insertOutbound = `
insert into outbound (message_id, seat, surface, conversation_key, body, turn_id) values ($1, $2, $3, $4, $5, $6)
returning sequence`

	insertOutboundLane = `insert into outbound_lanes (surface, seat) values ($1, $2) on conflict do nothing`

	outboundColumns = `sequence, message_id, seat, surface, conversation_key, body, state, attempts, lookups, detail, failure, url,
    turn_id, created_at, posted_at`
)

// Enqueue makes an answer durable, once per operation. receipt fills result
// from the message's sequence before it is kept in the ledger. It refuses a
// conversation that was never delivered to the seat.
func (s *Store) Enqueue(ctx context.Context, op ops.Operation, result proto.Message, m Outbound, receipt func(sequence int64)) error {
	_, err := ops.Do(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) error {
		var conversed bool
		if err := tx.QueryRow(ctx, selectConversed, m.ConversationKey, m.Seat).Scan(&conversed); err != nil {
			return fmt.Errorf("look up the conversation: %w", err)
		}
		if !conversed {
			return fault.New(fault.Forbidden, "You were never addressed in the conversation %.200q, so you cannot answer in it. "+
				"Leave `conversation` out to answer where you were asked.", m.ConversationKey).WithField("conversation")
		}
		if _, err := tx.Exec(ctx, insertOutboundLane, m.Surface, m.Seat); err != nil {
			return fmt.Errorf("insert outbound lane: %w", err)
		}
		var sequence int64
		if err := tx.QueryRow(ctx, insertOutbound, m.ID, m.Seat, m.Surface, m.ConversationKey, m.Body, m.TurnID).Scan(&sequence); err != nil {
			return fmt.Errorf("insert outbound message: %w", err)
		}
		receipt(sequence)
		return nil
	})
	return err
}

const selectOutbound = `select ` + outboundColumns + ` from outbound where message_id = $1`

// OutboundByID answers a message, or a fault of class not_found.
func (s *Store) OutboundByID(ctx context.Context, id uuid.UUID) (*Outbound, error) {
	rows, err := s.pool.Query(ctx, selectOutbound, id)
	if err != nil {
		return nil, fmt.Errorf("read outbound message: %w", err)
	}
	m, err := pgx.CollectExactlyOneRow(rows, scanOutbound)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "There is no outbound message %s.", id)
	}
	if err != nil {
		return nil, fmt.Errorf("read outbound message: %w", err)
	}
	return m, nil
}

func scanOutbound(row pgx.CollectableRow) (*Outbound, error) {
	var m Outbound
	err := row.Scan(&m.Sequence, &m.ID, &m.Seat, &m.Surface, &m.ConversationKey, &m.Body, &m.State, &m.Attempts, &m.Lookups,
		&m.Detail, &m.Failure, &m.URL, &m.TurnID, &m.CreatedAt, &m.PostedAt)
	return &m, err
}

const listOutbound = `
select ` + outboundColumns + ` from outbound
where ($1 = '' or seat = $1) and ($2 = '' or state = $2) and ($3 = 0 or sequence < $3)
order by sequence desc limit $4`

// ListOutbound answers messages, newest first, those before a sequence unless
// that is 0.
func (s *Store) ListOutbound(ctx context.Context, seat, state string, before int64, limit int) ([]*Outbound, error) {
	rows, err := s.pool.Query(ctx, listOutbound, seat, state, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list outbound messages: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanOutbound)
	if err != nil {
		return nil, fmt.Errorf("list outbound messages: %w", err)
	}
	return found, nil
}
