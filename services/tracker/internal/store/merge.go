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

// ReasonMerged is why an item that was merged takes no other merge.
const ReasonMerged = "ITEM_MERGED"

// Merge closes a duplicate in favour of another item.
type Merge struct {
	// Name names the duplicate, Into what survives.
	Name, Into string
	// Subtasks says whether what is directly part of the duplicate moves to the survivor.
	Subtasks bool
	Act
}

// Merged is what a merge did.
type Merged struct {
	// Item is the duplicate.
	Item *item.Item
	// Into is the survivor's key.
	Into     string
	Subtasks int
	Position ops.Position
}

// MergeItem closes a duplicate once per operation. answer fills result; its position is zero when the item was merged into the same one
// already.
func (s *Store) MergeItem(ctx context.Context, op ops.Operation, result proto.Message, m Merge, answer func(Merged)) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		g, err := s.merging(ctx, tx, m)
		if err != nil {
			return nil, err
		}
		held, err := lockAll(ctx, tx, g.rows())
		if err != nil {
			return nil, err
		}
		duplicate, survivor := held[g.tree[0].id], held[g.into.id]
		batch := &pgx.Batch{}
		if duplicate.MergedInto != nil && *duplicate.MergedInto == survivor.ID {
			answer(Merged{Item: duplicate.Item, Into: survivor.Key()})
			return batch, nil
		}
		if err := g.allowed(ctx, tx, duplicate, survivor); err != nil {
			return nil, err
		}
		w := newSweep(m.Act)
		finishing := duplicate.Open()
		w.change(duplicate, duplicate.Merge(survivor.ID, m.By, m.At))
		for _, n := range g.moving {
			h := held[n.id]
			if h == nil { // it keeps its depth, and what it hangs on
				continue
			}
			h.Depth += g.shift
			if *h.Parent == duplicate.ID {
				w.change(h, h.Hang(item.Place{Parent: &survivor.ID, Depth: h.Depth}, m.By, m.At))
			} else if g.shift != 0 {
				w.shifted = append(w.shifted, h.Item)
			}
		}
		if finishing {
			if w.events[0].Facts.Unblocked, err = freed(ctx, tx, duplicate.ID); err != nil {
				return nil, err
			}
		}
		queueUpdate(batch, duplicate.Item)
		now, err := edgesOf(ctx, tx, duplicate.ID)
		if err != nil {
			return nil, err
		}
		for _, e := range now {
			if e.kind == "duplicates" && e.from == duplicate.ID && e.to != survivor.ID {
				queueCleared(batch, []relation{e}, m.Act)
			}
		}
		queueEdges(batch, []relation{{from: duplicate.ID, to: survivor.ID, kind: "duplicates"}}, "", m.Act)
		answer(Merged{Item: duplicate.Item, Into: survivor.Key(), Subtasks: len(w.events) - 1, Position: w.latest()})
		return batch, w.queue(ctx, batch, s)
	})
	return s.written(replayed, err)
}

// merging is a merge whose trees are held.
type merging struct {
	tree []node // the duplicate's
	into node
	// moving is what moves below the survivor, with everything below that, and shift by how much deeper it then is.
	moving []node
	shift  int16
}

func (g *merging) rows() []uuid.UUID {
	rows := []uuid.UUID{g.tree[0].id, g.into.id}
	for _, n := range g.moving {
		if g.shift != 0 || *n.parent == g.tree[0].id {
			rows = append(rows, n.id)
		}
	}
	return rows
}

// merging looks at both trees and keeps them as they are.
func (s *Store) merging(ctx context.Context, tx pgx.Tx, m Merge) (*merging, error) {
	into, err := named(ctx, tx, "into", m.Into)
	if err != nil {
		return nil, err
	}
	up, err := ancestry(ctx, tx, into)
	if err != nil {
		return nil, err
	}
	if len(up) == 0 {
		return nil, nothing("into", m.Into)
	}
	project := up[0].project
	tree, err := rooted(ctx, tx, m.Name, project)
	if err != nil {
		return nil, err
	}
	if up, err = ancestry(ctx, tx, into); err != nil {
		return nil, err
	}
	switch {
	case len(up) == 0:
		return nil, nothing("into", m.Into)
	case up[0].project != project:
		return nil, moved(up[0].key())
	case up[0].id == tree[0].id:
		return nil, fault.New(fault.Invalid, "into is %s itself: an item is merged into another one", up[0].key()).WithField("into")
	}
	g := &merging{tree: tree, into: up[0], shift: up[0].depth - tree[0].depth}
	if m.Subtasks {
		g.moving = liveBelow(tree)
	}
	if len(g.moving) == 0 {
		return g, nil
	}
	return g, g.fit(ctx, tx, up)
}

// liveBelow answers the subtasks of a tree's root that are not in the trash, with everything below each.
func liveBelow(tree []node) []node {
	var live []node
	taken := map[uuid.UUID]bool{}
	for _, n := range tree[1:] {
		if taken[*n.parent] || *n.parent == tree[0].id && !n.removed {
			live, taken[n.id] = append(live, n), true
		}
	}
	return live
}

// fit proves that the subtasks may go below the survivor.
func (g *merging) fit(ctx context.Context, tx pgx.Tx, up []node) error {
	if g.into.project != g.tree[0].project {
		return fault.New(fault.Invalid, "%s is in project %s and the subtasks of %s in %s: move %s there first, or leave its subtasks with move_subtasks false",
			g.into.key(), g.into.project, g.tree[0].key(), g.tree[0].project, g.tree[0].key()).WithField("move_subtasks")
	}
	size := len(g.moving)
	for _, n := range up {
		if n.id == g.tree[0].id {
			if len(g.moving) > 0 && hasNode(g.moving, g.into.id) {
				return fault.New(fault.Invalid, "into is part of %s: put it elsewhere first, or leave the subtasks where they are with move_subtasks false", g.tree[0].key()).
					WithField("into")
			}
		}
	}
	top, err := ancestry(ctx, tx, g.tree[0].id)
	if err != nil {
		return err
	}
	if top[len(top)-1].id == up[len(up)-1].id {
		size = 0
	}
	deepest := g.tree[0].depth
	for _, n := range g.moving {
		deepest = max(deepest, n.depth)
	}
	return fitsBelow(ctx, tx, "into", up, int(deepest-g.tree[0].depth), size)
}

func hasNode(nodes []node, id uuid.UUID) bool {
	for _, n := range nodes {
		if n.id == id {
			return true
		}
	}
	return false
}

// allowed refuses a merge that would lead nowhere.
func (g *merging) allowed(ctx context.Context, tx pgx.Tx, duplicate, survivor *held) error {
	if err := duplicate.Frozen(); err != nil {
		return err
	}
	if survivor.Removal != nil {
		return fault.New(fault.Invalid, "into is %s, which is in the trash: restore it first", survivor.Key()).WithField("into").WithReason(item.ReasonRemoved)
	}
	for _, one := range []struct {
		*held
		argument string
	}{{duplicate, "item"}, {survivor, "into"}} {
		if one.MergedInto == nil {
			continue
		}
		up, err := ancestry(ctx, tx, *one.MergedInto)
		if err != nil {
			return err
		}
		if len(up) > 0 {
			return fault.New(fault.Conflict, "%s was merged into %s already: read that one", one.Key(), up[0].key()).
				WithField(one.argument).WithReason(ReasonMerged).WithFact("merged_into", up[0].key())
		}
	}
	return nil
}
