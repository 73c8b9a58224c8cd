package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Claim says what somebody wants to work on.
type Claim struct {
	// Name names the item; empty for the next one that is ready in Project.
	Name, Project string
	// Until is when the claim lapses.
	Until time.Time
	// Release gives Name back instead.
	Release bool
	Act
}

// Claimed is what came of a claim.
type Claimed struct {
	// Item is as the claim leaves it; nil when nothing is ready.
	Item *item.Item
	// Blocked says that it waits for something that is not finished.
	Blocked bool
	// At is the claim's place in the order of writes; zero when nothing had to be written.
	At ops.Position
}

// ClaimItem lets exactly one of all who want an item work on it, once per operation. answer fills result.
func (s *Store) ClaimItem(ctx context.Context, op ops.Operation, result proto.Message, c Claim, answer func(Claimed) error) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		i, err := c.lock(ctx, tx)
		if err != nil {
			return nil, err
		}
		if i == nil {
			return nil, answer(Claimed{})
		}
		decide := func() (item.Change, bool, error) { return i.Claimed(c.By, c.Until, c.At) }
		if c.Release {
			decide = func() (item.Change, bool, error) { return i.Released(c.By, c.At) }
		}
		change, changed, err := decide()
		if err != nil {
			return nil, err
		}
		done := Claimed{Item: i.Item}
		if done.Blocked, err = blocked(ctx, tx, i.ID); err != nil {
			return nil, err
		}
		if !changed {
			return nil, answer(done)
		}
		done.At = i.Position
		batch := &pgx.Batch{}
		queueClaim(batch, i.Item)
		if err := answer(done); err != nil {
			return nil, err
		}
		return batch, s.record(ctx, batch, i.event(c.Act, change))
	})
	return s.written(replayed, err)
}

// lock locks the item that is wanted; nil when none is ready.
func (c Claim) lock(ctx context.Context, tx pgx.Tx) (*held, error) {
	if c.Name != "" {
		return lock(ctx, tx, c.Name)
	}
	id, err := c.next(ctx, tx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return lock(ctx, tx, id.String())
}

// next locks the first item that is ready and that nobody claimed, the caller neither: who asks for the next one wants another. Those that somebody else is changing at this moment are passed over, so that many callers find
// many items without waiting; only when there are no others are they waited for, as one of them may be ready still.
func (c Claim) next(ctx context.Context, tx pgx.Tx) (uuid.UUID, error) {
	next := `select i.id from items i where i.project = $1 and ` + readyFor(2) + ` and (i.claim_until is null or i.claim_until <= $5) order by ` + readyOrder + ` limit 1 for no key update of i`
	args := append([]any{c.Project}, readyArgs(c.Act)...)
	var id uuid.UUID
	err := tx.QueryRow(ctx, next+` skip locked`, args...).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = tx.QueryRow(ctx, next, args...).Scan(&id)
	}
	return id, err
}

func blocked(ctx context.Context, q querier, id uuid.UUID) (waits bool, err error) {
	err = q.QueryRow(ctx, `select exists (select from relations r join items b on b.id = r.to_id and b.status_group < 2 and b.removed_at is null
		where r.from_id = $1 and r.kind = 'waiting_on' and r.cleared_at is null)`, id).Scan(&waits)
	return waits, err
}

// queueClaim writes the claim of an item and nothing else of it.
func queueClaim(batch *pgx.Batch, i *item.Item) {
	var holder, kind string
	if i.Claim != nil {
		holder, kind = i.Claim.Holder, i.Claim.Kind
	}
	batch.Queue(`update items set claim_holder = $2, claim_kind = $3, claim_until = $4 where id = $1`, i.ID, holder, kind, claimedUntil(i))
}

func claimedUntil(i *item.Item) *time.Time {
	if i.Claim == nil {
		return nil
	}
	return &i.Claim.Until
}
