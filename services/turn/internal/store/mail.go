package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
)

const (
	insertMail = `
insert into mail (delivery_id, seat, conversation_key, source, surface, obligation, addressed, wake_reason,
    sender_id, sender_name, sender_seat, sender_bot, subject, body, url, message_id, depth, occur_at, receive_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
on conflict do nothing`

	mailColumns = `delivery_id::text, seat, conversation_key, source, surface, obligation, addressed, wake_reason,
    sender_id, sender_name, sender_seat, sender_bot, subject, body, url, message_id, depth, occur_at, receive_at,
    state, reason, attempts, available_at, coalesce(turn_id::text, '')`

	selectWaiting = `select ` + mailColumns + ` from mail
where seat = $1 and state in ('ready', 'held') and available_at <= $2 order by receive_at, delivery_id limit $3`

	selectNextDue = `select min(available_at) from mail where seat = $1 and state in ('ready', 'held') and available_at > $2`

	selectMailByID = `select ` + mailColumns + ` from mail where delivery_id = any($1) order by receive_at, delivery_id`

	listMail = `select ` + mailColumns + ` from mail
where ($1 = '' or seat = $1) and ($2 = '' or state = $2) and ($2 <> '' or state in ('ready', 'held', 'running'))
order by receive_at, delivery_id limit $3`

	listDeadMail = `select ` + mailColumns + ` from mail where state = 'dead' order by receive_at desc limit $1`

	// updateMail writes what the mailbox decided; the caller holds the seat.
	updateMail = `
update mail set state = $2, reason = $3, attempts = $4, available_at = $5, turn_id = nullif($6, '')::uuid
where delivery_id = $1`

	holdSeat = `update mail set state = 'held', reason = $2 where seat = $1 and state in ('ready', 'held') and reason <> $2`

	holdAll = `update mail set state = 'held', reason = $1 where state in ('ready', 'held') and reason <> $1`

	holdStrangers = `
update mail set state = 'held', reason = $2
where state in ('ready', 'held') and reason <> $2 and not seat = any($1::text[])`

	selectDueSeats = `
select distinct seat from mail where seat = any($1) and state = 'ready' and available_at <= clock_timestamp()`

	redriveMail = `
update mail set state = 'ready', reason = '', attempts = 0, available_at = now()
where state = 'dead' and (cardinality($1::uuid[]) = 0 or delivery_id = any($1)) returning seat`
)

// AcceptMail puts a delivery into the mailbox, in the caller's transaction. One that is there already stays as it is.
func AcceptMail(ctx context.Context, tx pgx.Tx, m mailbox.Mail) error {
	_, err := tx.Exec(ctx, insertMail, m.DeliveryID, m.Seat, m.ConversationKey, m.Source, m.Surface, m.Obligation, m.Addressed,
		m.WakeReason, m.Sender.ID, m.Sender.Name, m.Sender.Seat, m.Sender.Bot, m.Subject, m.Body, m.URL, m.MessageID, m.Depth,
		m.OccurAt, m.ReceiveAt)
	if err != nil {
		return fmt.Errorf("accept mail: %w", err)
	}
	return nil
}

// maxWaiting bounds what one look at a mailbox reads.
const maxWaiting = 500

// Waiting answers what a seat may claim now, oldest first. next is when the first of the rest becomes due; zero when
// nothing else waits.
func (s *Store) Waiting(ctx context.Context, seat string, now time.Time) (mail []mailbox.Mail, next time.Time, err error) {
	batch := &pgx.Batch{}
	batch.Queue(selectWaiting, seat, now, maxWaiting).Query(func(rows pgx.Rows) error {
		mail, err = pgx.CollectRows(rows, scanMail)
		return err
	})
	batch.Queue(selectNextDue, seat, now).QueryRow(func(row pgx.Row) error {
		var due *time.Time
		if err := row.Scan(&due); err != nil {
			return err
		}
		if due != nil {
			next = *due
		}
		return nil
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, next, fmt.Errorf("read the mailbox: %w", err)
	}
	return mail, next, nil
}

func scanMail(row pgx.CollectableRow) (m mailbox.Mail, err error) {
	err = row.Scan(&m.DeliveryID, &m.Seat, &m.ConversationKey, &m.Source, &m.Surface, &m.Obligation, &m.Addressed, &m.WakeReason,
		&m.Sender.ID, &m.Sender.Name, &m.Sender.Seat, &m.Sender.Bot, &m.Subject, &m.Body, &m.URL, &m.MessageID, &m.Depth,
		&m.OccurAt, &m.ReceiveAt, &m.State, &m.Reason, &m.Attempts, &m.AvailableAt, &m.TurnID)
	return m, err
}

func queueMail(batch *pgx.Batch, mail []mailbox.Mail) {
	for _, m := range mail {
		batch.Queue(updateMail, m.DeliveryID, m.State, m.Reason, m.Attempts, m.AvailableAt, m.TurnID)
	}
}

// Mail answers deliveries by id, oldest first.
func (s *Store) Mail(ctx context.Context, ids []string) ([]mailbox.Mail, error) {
	rows, err := s.pool.Query(ctx, selectMailByID, ids)
	if err != nil {
		return nil, fmt.Errorf("read mail: %w", err)
	}
	return pgx.CollectRows(rows, scanMail)
}

// ListMail answers mail, oldest first; without a state what is not done or dead.
func (s *Store) ListMail(ctx context.Context, seat, state string, limit int) ([]mailbox.Mail, error) {
	rows, err := s.pool.Query(ctx, listMail, seat, state, limit)
	if err != nil {
		return nil, fmt.Errorf("list mail: %w", err)
	}
	return pgx.CollectRows(rows, scanMail)
}

// ListDeadMail answers dead mail, newest first.
func (s *Store) ListDeadMail(ctx context.Context, limit int) ([]mailbox.Mail, error) {
	rows, err := s.pool.Query(ctx, listDeadMail, limit)
	if err != nil {
		return nil, fmt.Errorf("list dead mail: %w", err)
	}
	return pgx.CollectRows(rows, scanMail)
}

// HoldSeat keeps a seat's waiting mail, with the reason in words.
func (s *Store) HoldSeat(ctx context.Context, f Fence, reason string) error {
	return s.fenced(ctx, f, func(tx pgx.Tx, _ int64) error {
		_, err := tx.Exec(ctx, holdSeat, f.Seat, reason)
		return err
	})
}

// HoldAll keeps everybody's waiting mail. Who holds a seat and can run it claims held mail all the same.
func (s *Store) HoldAll(ctx context.Context, reason string) error {
	_, err := s.pool.Exec(ctx, holdAll, reason)
	return err
}

// HoldStrangers keeps mail of seats that are not among the known ones.
func (s *Store) HoldStrangers(ctx context.Context, known []string, reason string) error {
	_, err := s.pool.Exec(ctx, holdStrangers, known, reason)
	return err
}

// RedriveMail makes dead mail ready, all of it when ids is empty, and answers the seats it belongs to, one a delivery.
func (s *Store) RedriveMail(ctx context.Context, ids []string) ([]string, error) {
	if ids == nil {
		ids = []string{}
	}
	rows, err := s.pool.Query(ctx, redriveMail, ids)
	if err != nil {
		return nil, fmt.Errorf("redrive mail: %w", err)
	}
	seats, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return seats, err
}

// DueSeats answers those of the seats that have mail to claim.
func (s *Store) DueSeats(ctx context.Context, seats []string) ([]string, error) {
	rows, err := s.pool.Query(ctx, selectDueSeats, seats)
	if err != nil {
		return nil, fmt.Errorf("look for mail: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
