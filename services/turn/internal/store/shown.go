package store

import (
	"context"
	"time"

	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

// insertShown charges the turn for what was asked, in the same statement.
const insertShown = `
with fence as (
    update turns set input_tokens = input_tokens + $9, output_tokens = output_tokens + $10, scripted = scripted or $12
    where turn_id = $1 and epoch = $2 and state = 'running' and exists (
        select from seats where seats.seat = turns.seat and seats.epoch = $2 and seats.expires_at > clock_timestamp())
    returning turn_id),
kept as (
    insert into payloads (digest, body)
    select p.digest, p.body from fence, unnest($13::bytea[], $14::bytea[]) as p (digest, body) on conflict do nothing),
condensed as (
    insert into shown (turn_id, round, ordinal, text, text_digest, provider, model, input_tokens, output_tokens, shown_at)
    select turn_id, $3, $4, $5, $6, $7, $8, $9, $10, $11 from fence)
select count(*) from fence`

// Show is how a call's result is shown, and what that cost.
type Show struct {
	Round, Ordinal int
	Shown          journal.Shown
	// Provider and Model are empty where no model was asked.
	Provider, Model           string
	InputTokens, OutputTokens int64
	Scripted                  bool
	At                        time.Time
}

// Shown keeps how a result is shown, and charges the turn. The same result twice violates shown_pkey.
func (s *Store) Shown(ctx context.Context, f Fence, turnID string, e Show) error {
	var (
		p            payloads
		text, digest []byte
	)
	if !e.Shown.Whole {
		text, digest = p.blob([]byte(e.Shown.Text))
	}
	return fencedRow(s.pool.QueryRow(ctx, insertShown, turnID, f.Epoch, e.Round, e.Ordinal, text, digest, e.Provider, e.Model,
		e.InputTokens, e.OutputTokens, e.At, e.Scripted, p.digests, p.bodies), "keep how the result is shown")
}
