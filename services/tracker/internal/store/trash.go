package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Reasons of refused removals and restorations.
const (
	ReasonOpenSubtasks = "OPEN_SUBTASKS"
	ReasonNotRemoved   = "ITEM_NOT_REMOVED"
)

// Gesture names the item that a gesture is about.
type Gesture struct {
	Name string
	Act
}

// RemoveItem puts an item into the trash, with subtree everything below it too, once per operation. answer fills result; nothing was
// removed when the item was in the trash already.
func (s *Store) RemoveItem(
	ctx context.Context, op ops.Operation, result proto.Message, g Gesture, below bool, answer func(i *item.Item, at ops.Position, removed int),
) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		tree, err := rooted(ctx, tx, g.Name)
		if err != nil {
			return nil, err
		}
		root := tree[0]
		going := []uuid.UUID{root.id}
		open := 0
		for _, n := range tree[1:] {
			if n.removed {
				continue
			}
			if n.group < item.Done {
				open++
			}
			if below {
				going = append(going, n.id)
			}
		}
		if open > 0 && !below && !root.removed {
			return nil, fault.New(fault.Invalid, "%s has %s: remove them with it by subtree, finish them, or put them elsewhere first", root.key(), counted(open, "open subtask")).
				WithField("subtree").WithReason(ReasonOpenSubtasks)
		}
		if root.removed {
			going = going[:1]
		}
		held, err := lockAll(ctx, tx, going)
		if err != nil {
			return nil, err
		}
		batch := &pgx.Batch{}
		if root.removed {
			answer(held[root.id].Item, ops.Position{}, 0)
			return batch, nil
		}
		w := newSweep(g.Act)
		for _, id := range going {
			w.change(held[id], held[id].Remove(root.id, g.By, g.At))
		}
		if w.events[0].Facts.Unblocked, err = freed(ctx, tx, going...); err != nil {
			return nil, err
		}
		answer(held[root.id].Item, w.latest(), len(going))
		return batch, w.queue(ctx, batch, s)
	})
	return s.written(replayed, err)
}

// RestoreItem takes an item out of the trash with exactly what its removal took along, once per operation. It comes back where it was,
// or at the top when what it was part of is in the trash itself; answer is then told so.
func (s *Store) RestoreItem(
	ctx context.Context, op ops.Operation, result proto.Message, g Gesture, answer func(i *item.Item, at ops.Position, restored int, warnings []string),
) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		tree, err := rooted(ctx, tx, g.Name)
		if err != nil {
			return nil, err
		}
		root := tree[0]
		if err := restorable(ctx, tx, root); err != nil {
			return nil, err
		}
		place, warnings, err := backTo(ctx, tx, root)
		if err != nil {
			return nil, err
		}
		coming, err := takenAlong(ctx, tx, root.id)
		if err != nil {
			return nil, err
		}
		lock := coming
		shift := place.Depth - root.depth
		if shift != 0 {
			lock = append(lock, nodeIDs(tree)...)
		}
		held, err := lockAll(ctx, tx, lock)
		if err != nil {
			return nil, err
		}
		w := newSweep(g.Act)
		for _, n := range tree[1:] {
			if h := held[n.id]; shift != 0 && h != nil {
				h.Depth += shift
			}
		}
		w.change(held[root.id], held[root.id].Restore(place, g.By, g.At))
		for _, id := range coming {
			if h := held[id]; id != root.id {
				w.change(h, h.Restore(item.Place{Parent: h.Parent, Depth: h.Depth}, g.By, g.At))
			}
		}
		for id, h := range held {
			if h.Removal != nil && h.Depth != h.Before.Depth && id != root.id {
				w.shifted = append(w.shifted, h.Item)
			}
		}
		batch := &pgx.Batch{}
		answer(held[root.id].Item, w.latest(), len(coming), warnings)
		return batch, w.queue(ctx, batch, s)
	})
	return s.written(replayed, err)
}

// restorable refuses what is not in the trash by a removal of its own.
func restorable(ctx context.Context, q querier, root node) error {
	switch {
	case !root.removed:
		return fault.New(fault.Invalid, "%s is not in the trash, so there is nothing to restore", root.key()).WithField("item").WithReason(ReasonNotRemoved)
	case *root.with != root.id:
		up, err := ancestry(ctx, q, *root.with)
		if err != nil {
			return err
		}
		with := "another item"
		if len(up) > 0 {
			with = up[0].key()
		}
		return fault.New(fault.Invalid, "%s went into the trash with %s: restore that, and everything that went with it comes back", root.key(), with).
			WithField("item").WithReason(ReasonNotRemoved).WithFact("removed_with", with)
	}
	return nil
}

// backTo answers where an item comes back to.
func backTo(ctx context.Context, q querier, root node) (item.Place, []string, error) {
	if root.parent == nil {
		return item.Place{Depth: 1}, nil, nil
	}
	up, err := ancestry(ctx, q, *root.parent)
	if err != nil {
		return item.Place{}, nil, err
	}
	if above := up[0]; above.removed {
		warning := fmt.Sprintf("%s was part of %s, which is in the trash, so it comes back at the top", root.key(), above.key())
		return item.Place{Depth: 1}, []string{warning}, nil
	}
	return item.Place{Parent: root.parent, Depth: up[0].depth + 1}, nil, nil
}

// takenAlong answers the items that went into the trash with one, that one among them.
func takenAlong(ctx context.Context, q querier, root uuid.UUID) ([]uuid.UUID, error) {
	rows, err := q.Query(ctx, `select id from items where removed_with = $1`, root)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}
