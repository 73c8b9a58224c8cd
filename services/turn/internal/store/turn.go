package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
)

const (
	insertTurn = `
insert into turns (turn_id, work_key, seat, epoch, conversation_key, obligation, surface, revision_id, title, mail_ids,
    base_digest, opening, opening_digest, receive_at, start_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

	turnColumns = `turn_id::text, work_key, turns.seat, conversation_key, obligation, surface, revision_id, title, mail_ids::text[],
    state = 'running', outcome, error_kind, summary, resumes, round_count, call_count, input_tokens, output_tokens, scripted,
    receive_at, start_at, coalesce(end_at, '0001-01-01Z'::timestamptz)`

	takeUp = `
update turns set epoch = $2, resumes = resumes + 1 where seat = $1 and state = 'running' and epoch < $2
returning ` + turnColumns

	selectFrozen = `
select base.body, coalesce(opening, long.body) from turns
join payloads base on base.digest = base_digest
left join payloads long on long.digest = opening_digest
where turn_id = $1`

	endTurn = `
update turns set state = 'done', outcome = $3, error_kind = $4, summary = $5, end_at = $6
where turn_id = $1 and epoch = $2 and state = 'running'
returning ` + turnColumns

	selectTurn = `select ` + turnColumns + ` from turns where turn_id between $1 and $2 order by turn_id limit 2`

	turnsSince = `select ` + turnColumns + ` from turns where state = 'running' or end_at >= $1 order by turn_id`

	listTurns = `select ` + turnColumns + ` from turns
where ($1 = '' or seat = $1) and ($2 = '' or conversation_key = $2) and ($3 = '' or state = $3)
  and ($4 = '' or turn_id < nullif($4, '')::uuid)
order by turn_id desc limit $5`
)

// Begin starts a turn on claimed mail, and says so, in one transaction.
func (s *Store) Begin(ctx context.Context, f Fence, t journal.Turn, mail []mailbox.Mail) error {
	var p payloads
	base := sha256.Sum256(t.Base)
	p.digests, p.bodies = [][]byte{base[:]}, [][]byte{t.Base}
	opening, openingDigest := p.blob([]byte(t.Opening))
	err := s.fenced(ctx, f, func(tx pgx.Tx, sequence int64) error {
		event, err := s.encode.Started(t, sequence, t.StartAt)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(insertPayloads, p.digests, p.bodies)
		batch.Queue(insertTurn, t.ID, t.WorkKey, t.Seat, f.Epoch, t.ConversationKey, t.Obligation, t.Surface, t.RevisionID,
			t.Title, t.MailIDs, base[:], opening, openingDigest, t.ReceiveAt, t.StartAt)
		queueMail(batch, mail)
		if _, err := outbox.Queue(ctx, batch, event); err != nil {
			return err
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return fmt.Errorf("begin the turn: %w", err)
	}
	s.appended()
	return nil
}

// TakeUp gives the seat's running turn, if it has one, to the new holder and counts the resumption.
func (s *Store) TakeUp(ctx context.Context, f Fence, now time.Time) (t journal.Turn, found bool, err error) {
	err = s.fenced(ctx, f, func(tx pgx.Tx, sequence int64) error {
		rows, err := tx.Query(ctx, takeUp, f.Seat, f.Epoch)
		if err != nil {
			return err
		}
		t, err = pgx.CollectExactlyOneRow(rows, scanTurn)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		found = true
		var opening []byte
		if err := tx.QueryRow(ctx, selectFrozen, t.ID).Scan(&t.Base, &opening); err != nil {
			return err
		}
		t.Opening = string(opening)
		event, err := s.encode.Resumed(t, sequence, now)
		if err != nil {
			return err
		}
		_, err = outbox.Append(ctx, tx, event)
		return err
	})
	if err != nil {
		return t, false, fmt.Errorf("take up the turn: %w", err)
	}
	if found {
		s.appended()
	}
	return t, found, nil
}

// Ending is how a turn ends.
type Ending struct {
	Outcome   string
	ErrorKind string
	Summary   string
	At        time.Time
	// Mail is written with it.
	Mail []mailbox.Mail
	// Settle ends the call that ended the turn; nil when none did.
	Settle *Settle
}

// End ends a turn, settles its mail and says so, in one transaction.
func (s *Store) End(ctx context.Context, f Fence, turnID string, e Ending) (t journal.Turn, err error) {
	err = s.fenced(ctx, f, func(tx pgx.Tx, sequence int64) error {
		if e.Settle != nil {
			if err := settle(ctx, tx, f, turnID, *e.Settle, false); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, endTurn, turnID, f.Epoch, e.Outcome, e.ErrorKind, e.Summary, e.At)
		if err != nil {
			return err
		}
		t, err = pgx.CollectExactlyOneRow(rows, scanTurn)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrFenced
		}
		if err != nil {
			return err
		}
		event, err := s.encode.Completed(t, sequence, e.At)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		queueMail(batch, e.Mail)
		if _, err := outbox.Queue(ctx, batch, event); err != nil {
			return err
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return t, fmt.Errorf("end the turn: %w", err)
	}
	s.appended()
	return t, nil
}

func scanTurn(row pgx.CollectableRow) (t journal.Turn, err error) {
	err = row.Scan(&t.ID, &t.WorkKey, &t.Seat, &t.ConversationKey, &t.Obligation, &t.Surface, &t.RevisionID, &t.Title, &t.MailIDs,
		&t.Running, &t.Outcome, &t.ErrorKind, &t.Summary, &t.Resumes, &t.Rounds, &t.Calls, &t.InputTokens, &t.OutputTokens,
		&t.Scripted, &t.ReceiveAt, &t.StartAt, &t.EndAt)
	if t.EndAt.Year() <= 1 {
		t.EndAt = time.Time{}
	}
	return t, err
}

// Turn answers the one turn whose id begins with prefix. It refuses an ambiguous one.
func (s *Store) Turn(ctx context.Context, prefix string) (journal.Turn, error) {
	low, high, ok := idRange(prefix)
	if !ok {
		return journal.Turn{}, notFound("turn", prefix).WithField("turn_id")
	}
	rows, err := s.pool.Query(ctx, selectTurn, low, high)
	if err != nil {
		return journal.Turn{}, fmt.Errorf("read the turn: %w", err)
	}
	turns, err := pgx.CollectRows(rows, scanTurn)
	switch {
	case err != nil:
		return journal.Turn{}, fmt.Errorf("read the turn: %w", err)
	case len(turns) == 0:
		return journal.Turn{}, notFound("turn", prefix).WithField("turn_id")
	case len(turns) > 1:
		return journal.Turn{}, fault.New(fault.Invalid, "More than one turn begins with %q; give more of its id.", prefix).
			WithField("turn_id")
	default:
		return turns[0], nil
	}
}

// idRange answers the first and last id that begin with prefix; hyphens do not count.
func idRange(prefix string) (low, high string, ok bool) {
	const digits = 32
	hex := strings.ToLower(strings.ReplaceAll(prefix, "-", ""))
	if len(hex) > digits || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", "", false
	}
	rest := digits - len(hex)
	return hex + strings.Repeat("0", rest), hex + strings.Repeat("f", rest), true
}

// TurnFilter narrows a list of turns; empty fields do not.
type TurnFilter struct {
	Seat, ConversationKey, State string
	// Before is the id of the last turn of the page before.
	Before string
	Limit  int
}

// TurnsSince answers the turns that run, and those that have ended since then, oldest first.
func (s *Store) TurnsSince(ctx context.Context, since time.Time) ([]journal.Turn, error) {
	rows, err := s.pool.Query(ctx, turnsSince, since)
	if err != nil {
		return nil, fmt.Errorf("read the turns of late: %w", err)
	}
	return pgx.CollectRows(rows, scanTurn)
}

// ListTurns answers turns, newest first.
func (s *Store) ListTurns(ctx context.Context, f TurnFilter) ([]journal.Turn, error) {
	rows, err := s.pool.Query(ctx, listTurns, f.Seat, f.ConversationKey, f.State, f.Before, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("list turns: %w", err)
	}
	return pgx.CollectRows(rows, scanTurn)
}
