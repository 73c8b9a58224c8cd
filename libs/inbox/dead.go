package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
)

const (
	// DeadSuffix makes the name of a topic's twin for dead letters.
	DeadSuffix = ".dead"

	// HeaderReason stands on a message of a dead topic, beside the headers it came with: the last failure.
	HeaderReason = "bullpen-dead-reason"
	// HeaderAttempts stands beside it: how often the event was tried.
	HeaderAttempts = "bullpen-dead-attempts"

	// maxReasonBytes bounds what a failure may write into a header; the log has the whole of it.
	maxReasonBytes = 4 << 10

	insertDead = `
insert into dead_letters (topic, key, event_id, payload, headers, reason, attempts)
values ($1, $2, $3, $4, $5, $6, $7)`

	selectDead = `
select id, topic, key, event_id, payload, headers, reason, attempts, created_at, redriven_at
from dead_letters order by redriven_at is null desc, id desc limit $1`

	// lockDead makes a second redrive of the same letter wait, and then find it done.
	lockDead = `
select id, topic, key, event_id, payload, headers, reason, attempts, created_at, redriven_at
from dead_letters where id = $1 for update`

	markRedriven = `update dead_letters set redriven_at = now(), attempts = attempts + 1 where id = $1`

	markFailed = `update dead_letters set attempts = attempts + 1, reason = $2 where id = $1 and redriven_at is null`
)

// Dead is an event that could not be taken in.
type Dead struct {
	ID      int64
	Topic   string
	Key     string
	EventID uuid.UUID
	Payload []byte
	Headers map[string]string
	// Reason is the last failure, for a person who looks after the system.
	Reason    string
	Attempts  int
	CreatedAt time.Time
	// RedrivenAt is when it was taken in after all; nil for one that waits.
	RedrivenAt *time.Time
}

// bury makes a message a dead letter: the row, the event's id and the message on the dead topic. It publishes before it
// commits, so a crash in between leaves a second message rather than none.
func (c *Consumer) bury(ctx context.Context, m bus.Message, cause error, attempts int) error {
	id, _ := eventID(m)
	reason := clip(cause.Error())
	headers := maps.Clone(m.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	letter := bus.Message{Topic: m.Topic + DeadSuffix, Key: m.Key, Value: m.Value, Headers: maps.Clone(headers)}
	letter.Headers[HeaderReason] = reason
	letter.Headers[HeaderAttempts] = strconv.Itoa(attempts)
	value := m.Value
	if value == nil {
		value = []byte{}
	}
	buried := false
	err := pg.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		fresh, err := receive(ctx, tx, c.opts.Group, []uuid.UUID{id})
		if err != nil || !fresh[id] {
			return err
		}
		if _, err := tx.Exec(ctx, insertDead, m.Topic, m.Key, id, value, headers, reason, attempts); err != nil {
			return fmt.Errorf("write the dead letter: %w", err)
		}
		buried = true
		return c.bus.Publish(ctx, letter)
	})
	if err == nil && buried {
		c.metrics.dead.Inc()
		c.opts.Log.Error("an event is a dead letter", "event_id", id, "key", m.Key, "partition", m.Partition,
			"offset", m.Offset, "attempts", attempts, "error", cause)
	}
	return err
}

// clip makes a failure fit for a row and a header. Postgres text takes no NUL and nothing that is not UTF-8; what is too
// long is shortened, and says so.
func clip(reason string) string {
	reason = strings.ReplaceAll(strings.ToValidUTF8(reason, "\uFFFD"), "\x00", "\uFFFD")
	if len(reason) <= maxReasonBytes {
		return reason
	}
	cut := strings.ToValidUTF8(reason[:maxReasonBytes], "")
	return fmt.Sprintf("%s … (%d more bytes are in the log)", cut, len(reason)-len(cut))
}

// ListDead answers at most limit dead letters, those that wait before those that were redriven, newest first.
func ListDead(ctx context.Context, pool *pgxpool.Pool, limit int) ([]Dead, error) {
	rows, err := pool.Query(ctx, selectDead, limit)
	if err != nil {
		return nil, fmt.Errorf("list the dead letters: %w", err)
	}
	dead, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Dead])
	if err != nil {
		return nil, fmt.Errorf("list the dead letters: %w", err)
	}
	return dead, nil
}

// Redrive runs the handlers, by topic, over dead letters once more, each in a transaction of its own, and answers how
// many were taken in. One that was redriven before is passed over. One that fails again stays a dead letter with the new
// reason; the others go on, and the failures are joined in the error. Without ids nothing is done.
func Redrive(ctx context.Context, pool *pgxpool.Pool, handlers map[string]Handler, ids ...int64) (int, error) {
	var (
		n        int
		failures []error
	)
	for _, id := range ids {
		done, err := redrive(ctx, pool, handlers, id)
		if done {
			n++
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return n, errors.Join(failures...)
}

func redrive(ctx context.Context, pool *pgxpool.Pool, handlers map[string]Handler, id int64) (done bool, err error) {
	var failed error
	err = pg.InTx(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, lockDead, id)
		if err != nil {
			return fmt.Errorf("read dead letter %d: %w", id, err)
		}
		dead, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Dead])
		if errors.Is(err, pgx.ErrNoRows) {
			return fault.New(fault.NotFound, "There is no dead letter %d.", id)
		}
		if err != nil {
			return fmt.Errorf("read dead letter %d: %w", id, err)
		}
		if dead.RedrivenAt != nil {
			return nil
		}
		handler := handlers[dead.Topic]
		if handler == nil {
			return fault.New(fault.Invalid, "Nothing here takes in the topic %s of dead letter %d.", dead.Topic, id)
		}
		m := bus.Message{Topic: dead.Topic, Key: dead.Key, Value: dead.Payload, Headers: dead.Headers, Time: dead.CreatedAt}
		if failed = handler(bus.Extract(ctx, m), tx, m); failed != nil {
			return failed
		}
		done = true
		_, err = tx.Exec(ctx, markRedriven, id)
		return err
	})
	if err != nil {
		done = false
	}
	if failed != nil && ctx.Err() == nil {
		if _, marked := pool.Exec(ctx, markFailed, id, clip(failed.Error())); marked != nil {
			err = errors.Join(err, fmt.Errorf("keep the reason of dead letter %d: %w", id, marked))
		}
	}
	return done, err
}
