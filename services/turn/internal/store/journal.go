package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

const (
	// answered keeps a round and its calls if the turn is still the writer's. The lease is looked at by the clock, not by
	// the transaction's start, and the turn's row stays locked until the commit.
	answered = `
with fence as (
    update turns set round_count = $3, call_count = call_count + cardinality($15::text[]),
        input_tokens = input_tokens + $9, output_tokens = output_tokens + $11, scripted = scripted or $21
    where turn_id = $1 and epoch = $2 and state = 'running' and exists (
        select from seats where seats.seat = turns.seat and seats.epoch = $2 and seats.expires_at > clock_timestamp())
    returning turn_id),
kept as (
    insert into payloads (digest, body)
    select p.digest, p.body from fence, unnest($22::bytea[], $23::bytea[]) as p (digest, body) on conflict do nothing),
round as (
    insert into rounds (turn_id, number, provider, model, dialect, text, text_digest, raw, raw_digest, stop, input_tokens,
        cached_tokens, output_tokens, start_at, end_at)
    select turn_id, $3, $4, $5, $6, $24, $25, $26, $27, $8, $9, $10, $11, $12, $13 from fence),
planned as (
    insert into calls (turn_id, round, ordinal, call_id, tool, source, args, args_digest, operation_id, state, start_at)
    select fence.turn_id, $3, c.place - 1, c.id, c.tool, c.source, c.args, c.digest, c.operation,
        case when $7 and c.place = 1 then 'dispatched' else 'planned' end, case when $7 and c.place = 1 then $14::timestamptz end
    from fence, unnest($15::text[], $16::text[], $17::text[], $18::bytea[], $19::bytea[], $20::text[])
        with ordinality as c (id, tool, source, args, digest, operation, place))
select count(*) from fence`

	settled = `
with fence as (
    select turn_id from turns
    where turn_id = $1 and epoch = $2 and state = 'running' and exists (
        select from seats where seats.seat = turns.seat and seats.epoch = $2 and seats.expires_at > clock_timestamp())
    for no key update),
kept as (
    insert into payloads (digest, body)
    select p.digest, p.body from fence, unnest($12::bytea[], $13::bytea[]) as p (digest, body) on conflict do nothing),
ended as (
    update calls set state = $5, result = $6, result_digest = $7, refusal_class = $8, outcome = $9, delivered = $10, end_at = $11,
        audit_id = $15
    from fence where calls.turn_id = fence.turn_id and round = $3 and ordinal = $4 and calls.state in ('planned', 'dispatched')
    returning 1),
sent as (
    update calls set state = 'dispatched', start_at = $11
    from fence where calls.turn_id = fence.turn_id and round = $3 and ordinal = $4 + 1 and calls.state = 'planned' and $14)
select count(*) from fence, ended`

	sentCall = `
with fence as (
    select turn_id from turns
    where turn_id = $1 and epoch = $2 and state = 'running' and exists (
        select from seats where seats.seat = turns.seat and seats.epoch = $2 and seats.expires_at > clock_timestamp())
    for no key update),
sent as (
    update calls set state = 'dispatched', start_at = $5
    from fence where calls.turn_id = fence.turn_id and round = $3 and ordinal = $4 and calls.state = 'planned' returning 1)
select count(*) from fence, sent`

	selectRounds = `
select number, provider, model, dialect, coalesce(text, words.body), coalesce(rounds.raw, answer.body), stop, input_tokens,
    cached_tokens, output_tokens, start_at, end_at
from rounds
left join payloads words on words.digest = text_digest
left join payloads answer on answer.digest = raw_digest
where turn_id = $1 order by number`

	selectCalls = `
select round, call_id, tool, source, coalesce(args, arguments.body), operation_id, state, coalesce(result, answer.body, ''),
    refusal_class, outcome, delivered, audit_id, start_at, end_at, shown.turn_id is not null,
    coalesce(shown.text, condensed.body)
from calls
left join payloads arguments on arguments.digest = args_digest
left join payloads answer on answer.digest = result_digest
left join shown using (turn_id, round, ordinal)
left join payloads condensed on condensed.digest = shown.text_digest
where turn_id = $1 order by round, ordinal`
)

// queryer is a pool or a transaction.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Answered keeps a model answer with its calls, and in the same commit dispatches the first call when sendFirst is set.
func (s *Store) Answered(ctx context.Context, f Fence, turnID string, r journal.Round, sendFirst, scripted bool) error {
	var (
		p                               payloads
		ids, tools, sources, operations []string
		args, digests                   [][]byte
		text, textDigest                = p.blob([]byte(r.Text))
		raw, rawDigest                  = p.blob(r.Raw)
	)
	for _, call := range r.Calls {
		inline, digest := p.blob([]byte(call.Args))
		ids, tools, sources = append(ids, call.ID), append(tools, call.Tool), append(sources, call.Source)
		args, digests, operations = append(args, inline), append(digests, digest), append(operations, call.OperationID)
	}
	if ids == nil {
		ids = []string{}
	}
	return fencedRow(s.pool.QueryRow(ctx, answered, turnID, f.Epoch, r.Number, r.Provider, r.Model, r.Dialect, sendFirst, r.Stop,
		r.InputTokens, r.CachedTokens, r.OutputTokens, r.StartAt, r.EndAt, r.EndAt, ids, tools, sources, args, digests, operations,
		scripted, p.digests, p.bodies, text, textDigest, raw, rawDigest), "keep the answer")
}

// Settle is how a call ended.
type Settle struct {
	Round   int
	Ordinal int
	State   journal.State
	Result  journal.Result
	At      time.Time
}

// Settled keeps how a call ended, and in the same commit dispatches the next one when sendNext is set.
func (s *Store) Settled(ctx context.Context, f Fence, turnID string, e Settle, sendNext bool) error {
	return settle(ctx, s.pool, f, turnID, e, sendNext)
}

func settle(ctx context.Context, q queryer, f Fence, turnID string, e Settle, sendNext bool) error {
	var p payloads
	result, digest := p.blob([]byte(e.Result.Text))
	return fencedRow(q.QueryRow(ctx, settled, turnID, f.Epoch, e.Round, e.Ordinal, e.State, result, digest, string(e.Result.Class),
		e.Result.Outcome, e.Result.Delivered, e.At, p.digests, p.bodies, sendNext, e.Result.AuditID), "keep the result")
}

// Sent dispatches a planned call.
func (s *Store) Sent(ctx context.Context, f Fence, turnID string, round, ordinal int, at time.Time) error {
	return fencedRow(s.pool.QueryRow(ctx, sentCall, turnID, f.Epoch, round, ordinal, at), "dispatch the call")
}

func fencedRow(row pgx.Row, verb string) error {
	var written int
	if err := row.Scan(&written); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if written == 0 {
		return fmt.Errorf("%s: %w", verb, ErrFenced)
	}
	return nil
}

// Journal reads a turn's journal back.
func (s *Store) Journal(ctx context.Context, turnID string) (journal.Journal, error) {
	var j journal.Journal
	batch := &pgx.Batch{}
	batch.Queue(selectRounds, turnID).Query(func(rows pgx.Rows) error {
		var err error
		j.Rounds, err = pgx.CollectRows(rows, scanRound)
		return err
	})
	batch.Queue(selectCalls, turnID).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			round, call, err := scanCall(rows)
			if err != nil {
				return err
			}
			if round < 1 || round > len(j.Rounds) {
				return fmt.Errorf("a call belongs to round %d of %d", round, len(j.Rounds))
			}
			j.Rounds[round-1].Calls = append(j.Rounds[round-1].Calls, call)
		}
		return rows.Err()
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return j, fmt.Errorf("read the journal: %w", err)
	}
	return j, nil
}

func scanRound(row pgx.CollectableRow) (r journal.Round, err error) {
	var text []byte
	err = row.Scan(&r.Number, &r.Provider, &r.Model, &r.Dialect, &text, &r.Raw, &r.Stop, &r.InputTokens, &r.CachedTokens,
		&r.OutputTokens, &r.StartAt, &r.EndAt)
	r.Text = string(text)
	return r, err
}

func scanCall(row pgx.CollectableRow) (round int, c journal.Call, err error) {
	var (
		args, result, text []byte
		start, end         *time.Time
		shown              bool
	)
	err = row.Scan(&round, &c.ID, &c.Tool, &c.Source, &args, &c.OperationID, &c.State, &result, &c.Result.Class,
		&c.Result.Outcome, &c.Result.Delivered, &c.Result.AuditID, &start, &end, &shown, &text)
	c.Args, c.Result.Text = string(args), string(result)
	if shown {
		c.Shown = &journal.Shown{Whole: text == nil, Text: string(text)}
	}
	if start != nil {
		c.StartAt = *start
	}
	if end != nil {
		c.EndAt = *end
	}
	return round, c, err
}
