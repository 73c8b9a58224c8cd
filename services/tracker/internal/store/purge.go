package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// ReasonConfirm is why a purge whose key was not typed again as it is was refused.
const ReasonConfirm = "KEY_NOT_CONFIRMED"

// Purge destroys an item.
type Purge struct {
	Name string
	// Confirm is the item's key, typed again.
	Confirm string
	Reason  string
	Act
}

// PurgeItem destroys an item for ever, once per operation: what it said, its thread and its history. What is part of it moves up. What
// waits for it keeps its edge, which blocks no more. answer fills result.
func (s *Store) PurgeItem(ctx context.Context, op ops.Operation, result proto.Message, p Purge, answer func(key string, movedUp int, at ops.Position)) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		tree, err := rooted(ctx, tx, p.Name)
		if err != nil {
			return nil, err
		}
		root := tree[0]
		if p.Confirm != root.key() {
			return nil, fault.New(fault.Invalid, "confirm_key must be %s, the item's key as it is now, and is %q", root.key(), p.Confirm).
				WithField("confirm_key").WithReason(ReasonConfirm)
		}
		heirs, err := heirs(ctx, tx, root)
		if err != nil {
			return nil, err
		}
		lock, err := mergedInto(ctx, tx, root.id)
		if err != nil {
			return nil, err
		}
		lock = append(lock, nodeIDs(tree)...)
		for id := range heirs {
			lock = append(lock, id)
		}
		held, err := lockAll(ctx, tx, lock)
		if err != nil {
			return nil, err
		}
		batch := &pgx.Batch{}
		h := held[root.id]
		w := newSweep(p.Act)
		w.events = append(w.events, h.event(p.Act, h.Purged(p.By, p.Reason, p.At)))
		w.tally.move(h.Before, nil)
		w.ends.move(h.Before, nil)
		above := item.Place{Parent: root.parent, Depth: root.depth}
		movedUp := 0
		for id, h := range held {
			if id == root.id {
				continue
			}
			if with, ok := heirs[id]; ok {
				removal := *h.Removal
				removal.With = with
				h.Removal = &removal
			}
			child := h.Parent != nil && *h.Parent == root.id
			if hasNode(tree, id) {
				h.Depth--
			}
			if child {
				w.change(h, h.Hang(item.Place{Parent: above.Parent, Depth: h.Depth}, p.By, p.At))
				movedUp++
			} else {
				w.shifted = append(w.shifted, h.Item)
			}
		}
		answer(root.key(), movedUp, w.events[0].Position)
		return batch, s.queuePurge(ctx, batch, w, root, p)
	})
	return s.written(replayed, err)
}

func (s *Store) queuePurge(ctx context.Context, batch *pgx.Batch, w *sweep, root node, p Purge) error {
	items := w.shifted
	for _, e := range w.events[1:] {
		items = append(items, e.Item)
	}
	queueStructure(batch, items)
	w.ends.queue(batch)
	// What refers to the item elsewhere goes with its row, or names an id that nothing has any more.
	for _, statement := range []string{
		`delete from notices where item_id = $1`,
		`delete from comments where item_id = $1`,
		`delete from history where item_id = $1`,
		`delete from former_keys where item_id = $1`,
		`delete from relations where to_id = $1 and kind <> 'waiting_on'`,
		`delete from items where id = $1`,
	} {
		batch.Queue(statement, root.id)
	}
	batch.Queue(`insert into purged_items (id, key, purged_at) values ($1, $2, $3)`, root.id, root.key(), p.At)
	if err := s.recordMany(ctx, batch, w.events); err != nil {
		return err
	}
	w.tally.queue(batch)
	return nil
}

// heirs answers, of what went into the trash with an item, which of them each one is restored with when that item is gone: the topmost of
// its branch.
func heirs(ctx context.Context, q querier, root node) (map[uuid.UUID]uuid.UUID, error) {
	rows, err := q.Query(ctx, `with recursive branch (id, top) as (
			select i.id, i.id from items i left join items up on up.id = i.parent
				where i.removed_with = $1 and i.id <> $1 and (up.id is null or up.id = $1 or up.removed_with is distinct from $1)
			union all select i.id, branch.top from branch join items i on i.parent = branch.id where i.removed_with = $1)
		select id, top from branch`, root.id)
	if err != nil {
		return nil, err
	}
	heirs := map[uuid.UUID]uuid.UUID{}
	var id, top uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&id, &top}, func() error {
		heirs[id] = top
		return nil
	})
	return heirs, err
}

// mergedInto answers the items that were merged into one: their rows change with its end, so they are locked with it.
func mergedInto(ctx context.Context, q querier, id uuid.UUID) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, `select id from items where merged_into = $1`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}
