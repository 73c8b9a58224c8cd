package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

const (
	countWakes = `
select seat, conversation_key, count(*) from deliveries
where conversation_key = any($1) and machine and created_at > $2 group by seat, conversation_key`

	insertChange = `
insert into work_changes (epoch, sequence, item_id, kind, state, decisions) values ($1, $2, $3, $4, $5, $6)
on conflict do nothing returning fact`

	insertNotice = `
insert into notices (notice_id, person, epoch, sequence, item_id, item_key, title, reasons, kind, actor, actor_kind, excerpt, comment_id,
    occurred_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict do nothing`
)

// Wakes counts, in the caller's transaction, the deliveries that no person sent to conversations since then.
func (s *Store) Wakes(ctx context.Context, tx pgx.Tx, conversations []string, since time.Time) (work.Wakes, error) {
	rows, err := tx.Query(ctx, countWakes, conversations, since)
	if err != nil {
		return nil, fmt.Errorf("count wakes: %w", err)
	}
	wakes := work.Wakes{}
	var lane work.Lane
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&lane.Seat, &lane.Conversation, &n}, func() error {
		wakes[lane] = n
		return nil
	}); err != nil {
		return nil, fmt.Errorf("count wakes: %w", err)
	}
	return wakes, nil
}

// SettleWork writes what was decided about a change, in the caller's transaction: the decisions, the notices, the deliveries, and the
// events that tell of them. A change that was settled before stays as it was.
func (s *Store) SettleWork(ctx context.Context, tx pgx.Tx, c *work.Change, o *work.Outcome, at time.Time) error {
	decisions := o.Decisions
	if decisions == nil {
		decisions = []work.Decision{}
	}
	var fact int64
	err := tx.QueryRow(ctx, insertChange, c.Epoch, c.Sequence, c.Subject().ID, c.Kind, o.State, decisions).Scan(&fact)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("insert change: %w", err)
	}
	fresh, err := s.deliver(ctx, tx, c, o)
	if err != nil {
		return err
	}
	events := &pgx.Batch{}
	for _, d := range fresh {
		event, err := s.encode(d)
		if err == nil {
			_, err = outbox.Queue(ctx, events, event)
		}
		if err != nil {
			return err
		}
	}
	event, err := s.encodeWork(c, o, fact, at)
	if err == nil {
		_, err = outbox.Queue(ctx, events, event)
	}
	if err != nil {
		return err
	}
	if err := tx.SendBatch(ctx, events).Close(); err != nil {
		return fmt.Errorf("queue events: %w", err)
	}
	return nil
}

// deliver inserts notices and deliveries in one round trip and answers the deliveries that are new, with their sequence.
func (s *Store) deliver(ctx context.Context, tx pgx.Tx, c *work.Change, o *work.Outcome) (fresh []*delivery.Delivery, err error) {
	if len(o.Notices)+len(o.Deliveries) == 0 {
		return nil, nil
	}
	batch := &pgx.Batch{}
	comment := ""
	if c.Comment != nil {
		comment = c.Comment.ID
	}
	for _, n := range o.Notices {
		batch.Queue(insertNotice, n.ID, n.Person, c.Epoch, c.Sequence, n.Item.ID, n.Item.Key, n.Item.Title, n.Reasons, c.Kind, c.Doer(),
			c.ActorKind, c.Excerpt, comment, c.At)
	}
	for _, d := range o.Deliveries {
		batch.Queue(insertDelivery, columnsOf(d, nil)...).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&d.Sequence}, func() error {
				fresh = append(fresh, d)
				return nil
			})
			return err
		})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("insert notices and deliveries: %w", err)
	}
	return fresh, nil
}

const (
	selectChange = `select state, decisions from work_changes where epoch = $1 and sequence = $2`

	selectSwept = `select exists (select from work_swept where epoch = $1 and sequence >= $2)`
)

// States of a change that is not there.
const (
	Swept        = "swept"
	NeverSettled = "unknown"
)

// ChangeState answers what was decided about a change: one of the states of package work, [Swept], or [NeverSettled].
func (s *Store) ChangeState(ctx context.Context, epoch int32, sequence int64) (state string, decisions []work.Decision, err error) {
	var encoded []byte
	err = s.pool.QueryRow(ctx, selectChange, epoch, sequence).Scan(&state, &encoded)
	if err == nil {
		err = json.Unmarshal(encoded, &decisions)
		return state, decisions, err
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return "", nil, fmt.Errorf("read a change: %w", err)
	}
	var swept bool
	if err := s.pool.QueryRow(ctx, selectSwept, epoch, sequence).Scan(&swept); err != nil {
		return "", nil, fmt.Errorf("read a change: %w", err)
	}
	if swept {
		return Swept, nil, nil
	}
	return NeverSettled, nil, nil
}

const (
	sweepChanges = `
with gone as (
    delete from work_changes where (epoch, sequence) in (
        select epoch, sequence from work_changes where settled_at < now() - $1::interval limit 1000)
    returning epoch, sequence),
marked as (
    insert into work_swept select epoch, max(sequence) from gone group by epoch
    on conflict (epoch) do update set sequence = greatest(work_swept.sequence, excluded.sequence))
select count(*) from gone`

	sweepNotices = `
with gone as (
    delete from notices where notice_id in (select notice_id from notices where created_at < now() - $1::interval limit 1000) returning 1)
select count(*) from gone`
)

// SweepWork deletes notices and decisions older than keep, and answers how many.
func (s *Store) SweepWork(ctx context.Context, keep time.Duration) (int64, error) {
	var total int64
	for _, statement := range []string{sweepChanges, sweepNotices} {
		for n := int64(1); n > 0; total += n {
			if err := s.pool.QueryRow(ctx, statement, keep).Scan(&n); err != nil {
				return total, fmt.Errorf("sweep what was told of work: %w", err)
			}
		}
	}
	return total, nil
}

// ListDeadEvents answers events that could not be taken in, those that wait first, newest first.
func (s *Store) ListDeadEvents(ctx context.Context, limit int) ([]inbox.Dead, error) {
	return inbox.ListDead(ctx, s.pool, limit)
}
