package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// A gesture changes many items at once: an item with what is part of it goes into the trash, to another project, below another item. It
// keeps the trees that it changes, locks every row that it writes in one statement, decides, and writes in a few statements however many
// rows there are. All of it is one transaction, so nothing is ever half done: the same operation again is answered from the ledger.

// rooted finds an item with what is below it, and keeps its project's trees and those of some other projects as they are.
func rooted(ctx context.Context, tx pgx.Tx, name string, also ...string) ([]node, error) {
	id, err := resolve(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	up, err := ancestry(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if len(up) == 0 {
		return nil, noItem(name)
	}
	if err := lockTrees(ctx, tx, append(also, up[0].project)...); err != nil {
		return nil, err
	}
	tree, err := subtree(ctx, tx, id)
	switch {
	case err != nil:
		return nil, err
	case len(tree) == 0: // destroyed while this waited
		return nil, noItem(name)
	case tree[0].project != up[0].project:
		return nil, moved(tree[0].key())
	}
	return tree, nil
}

const lockItems = `with i as materialized (select * from items where id = any($1) order by id for no key update)
	select ` + columns + `, p.lead, p.archived, coalesce((select assignee from items where id = i.parent), ''), nextval('positions')
	from i join projects p on p.key = i.project`

// lockAll locks items in the order of their ids. Their bodies stay where they are.
func lockAll(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) (map[uuid.UUID]*held, error) {
	rows, err := tx.Query(ctx, lockItems, ids)
	if err != nil {
		return nil, err
	}
	all := make(map[uuid.UUID]*held, len(ids))
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		h := &held{}
		var sequence int64
		i, err := scan(row, &h.Lead, &h.Archived, &h.ParentAssignee, &sequence)
		if err != nil {
			return struct{}{}, err
		}
		before := *i
		h.Item, h.Before, h.Position = i, &before, position(sequence)
		all[i.ID] = h
		return struct{}{}, nil
	})
	return all, err
}

// sweep is what a gesture writes.
type sweep struct {
	act Act
	// events are of the items that the gesture changes, its own subject first.
	events []Event
	// shifted are items of which nothing but the depth changes, as it follows from what is above them.
	shifted []*item.Item
	tally   tally
	ends    ends
}

func newSweep(a Act) *sweep { return &sweep{act: a, tally: tally{}} }

// change notes what the gesture did to an item.
func (s *sweep) change(h *held, c item.Change) {
	s.events = append(s.events, h.event(s.act, c))
	s.tally.move(h.Before, h.Item)
	s.ends.move(h.Before, h.Item)
}

// latest is the last place in the order of writes that the gesture has.
func (s *sweep) latest() (at ops.Position) {
	for _, e := range s.events {
		if e.Position.Sequence > at.Sequence {
			at = e.Position
		}
	}
	return at
}

// queue writes the rows of all items, their history, their events, and the counts at last.
func (s *sweep) queue(ctx context.Context, batch *pgx.Batch, store *Store) error {
	items := s.shifted
	for _, e := range s.events {
		items = append(items, e.Item)
	}
	queueStructure(batch, items)
	if err := store.recordMany(ctx, batch, s.events); err != nil {
		return err
	}
	s.ends.queue(batch)
	s.tally.queue(batch)
	return nil
}

const updateStructure = `update items i set project = v.project, number = v.number, parent = v.parent, depth = v.depth, rank = v.rank,
		routing_unit = v.routing_unit, version = v.version, updated_at = v.updated_at, reassignments = v.reassignments,
		claim_holder = case when v.claim_until is null then '' else i.claim_holder end, claim_until = v.claim_until,
		removed_at = v.removed_at, removed_by = v.removed_by, removed_kind = v.removed_kind, removed_with = v.removed_with
	from unnest($1::uuid[], $2::text[], $3::int[], $4::uuid[], $5::smallint[], $6::text[], $7::text[], $8::int[], $9::timestamptz[], $10::int[], $11::timestamptz[],
			$12::timestamptz[], $13::text[], $14::text[], $15::uuid[])
		as v (id, project, number, parent, depth, rank, routing_unit, version, updated_at, reassignments, claim_until, removed_at, removed_by, removed_kind, removed_with)
	where i.id = v.id`

// queueStructure writes what gestures change of items, in one statement.
func queueStructure(batch *pgx.Batch, items []*item.Item) {
	n := len(items)
	if n == 0 {
		return
	}
	ids, projects, numbers, parents, depths := make([]uuid.UUID, n), make([]string, n), make([]int32, n), make([]*uuid.UUID, n), make([]int16, n)
	ranks, units, versions, updated, handed := make([]string, n), make([]string, n), make([]int32, n), make([]time.Time, n), make([]int32, n)
	claims, removedAt, removedBy, removedKind, removedWith := make([]*time.Time, n), make([]*time.Time, n), make([]string, n), make([]string, n), make([]*uuid.UUID, n)
	for at, i := range items {
		ids[at], projects[at], numbers[at], parents[at], depths[at] = i.ID, i.Project, i.Number, i.Parent, i.Depth
		ranks[at], units[at], versions[at], updated[at], handed[at] = i.Rank, i.RoutingUnit, i.Version, i.UpdatedAt, i.Reassignments
		claims[at] = claimedUntil(i)
		if i.Removal != nil {
			removedAt[at], removedBy[at], removedKind[at], removedWith[at] = &i.Removal.At, i.Removal.By, i.Removal.Kind, &i.Removal.With
		}
	}
	batch.Queue(updateStructure, ids, projects, numbers, parents, depths, ranks, units, versions, updated, handed, claims, removedAt, removedBy, removedKind, removedWith)
}

func nodeIDs(nodes []node) []uuid.UUID {
	out := make([]uuid.UUID, len(nodes))
	for n, one := range nodes {
		out[n] = one.id
	}
	return out
}
