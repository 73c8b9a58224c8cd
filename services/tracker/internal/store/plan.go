package store

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/rank"
)

// plan is what a placement does to the order of a project. It is made while the order is held, before any row is locked.
type plan struct {
	neighbour uuid.UUID
	// key is the item's new rank; empty when it stands there already.
	key string
	// spread are new ranks of neighbours, when the gap had become too narrow for a short key.
	spread map[uuid.UUID]string
}

func (p plan) rows() []uuid.UUID {
	var rows []uuid.UUID
	if p.neighbour != uuid.Nil {
		rows = append(rows, p.neighbour)
	}
	for id := range p.spread {
		rows = append(rows, id)
	}
	return rows
}

// queueSpread writes the new ranks of neighbours that are still in the project.
func (p plan) queueSpread(batch *pgx.Batch, in map[uuid.UUID]bool) {
	var ids []uuid.UUID
	var keys []string
	for id, key := range p.spread {
		if in[id] {
			ids, keys = append(ids, id), append(keys, key)
		}
	}
	if len(ids) > 0 {
		batch.Queue(`update items i set rank = v.rank from unnest($1::uuid[], $2::text[]) v (id, rank) where i.id = v.id`, ids, keys)
	}
}

// ranked is an item in the order.
type ranked struct {
	id  uuid.UUID
	key string
}

const (
	// pastAll comes after every key.
	pastAll     = "~"
	rankedBelow = `select id, rank from items where project = $1 and rank < $2 and id <> $3 order by rank desc limit $4`
	rankedAbove = `select id, rank from items where project = $1 and rank > $2 and id <> $3 order by rank limit $4`
)

// plan finds the gap beside the neighbour and a key in it. Items in the trash keep their place, so they count.
func (s *Store) plan(ctx context.Context, tx pgx.Tx, self uuid.UUID, project string, p Placement) (plan, error) {
	argument, name := p.neighbour()
	if name == "" {
		return plan{}, nil
	}
	id, err := named(ctx, tx, argument, name)
	if err != nil {
		return plan{}, err
	}
	if id == self {
		return plan{}, fault.New(fault.Invalid, "%s names the item itself: name the one that it goes beside", argument).WithField(argument)
	}
	var key, now, in string
	var next int32
	var removed bool
	err = tx.QueryRow(ctx, `select n.rank, n.project, n.removed_at is not null, i.rank, coalesce(pg_sequence_last_value(numbers_of(i.project)), 0)::int + 1 from items n, items i
		where n.id = $1 and i.id = $2`, id, self).Scan(&key, &in, &removed, &now, &next)
	if errors.Is(err, pgx.ErrNoRows) { // one of the two was destroyed since it was found
		return plan{}, nothing(argument, name)
	}
	if err != nil {
		return plan{}, err
	}
	if in != project || removed {
		return plan{}, gone(p)
	}
	out := plan{neighbour: id}
	// The neighbour is the nearest on its side; one more than the widest spread reaches bounds it.
	var lower, upper []ranked
	reach := rank.MaxNeighbours/2 + 1
	if argument == "after" {
		lower = append(lower, ranked{id, key})
		upper, err = neighbours(ctx, tx, rankedAbove, project, key, self, 1)
	} else {
		upper = append(upper, ranked{id, key})
		lower, err = neighbours(ctx, tx, rankedBelow, project, key, self, 1)
	}
	if err != nil {
		return plan{}, err
	}
	low, high := bounds(lower, upper, 1, next)
	if low < now && now < high {
		return out, nil
	}
	if out.key = rank.Between(low, high); len(out.key) <= rank.MaxLength {
		return out, nil
	}
	if lower, err = neighbours(ctx, tx, rankedBelow, project, cmp.Or(high, pastAll), self, reach); err != nil {
		return plan{}, err
	}
	if upper, err = neighbours(ctx, tx, rankedAbove, project, low, self, reach); err != nil {
		return plan{}, err
	}
	low, high = bounds(lower, upper, reach, next)
	lower, upper = lower[:min(len(lower), reach-1)], upper[:min(len(upper), reach-1)]
	slices.Reverse(lower)
	keys := rank.Spread(low, high, len(lower)+1+len(upper))
	out.key, out.spread = keys[len(lower)], map[uuid.UUID]string{}
	for n, r := range lower {
		out.spread[r.id] = keys[n]
	}
	for n, r := range upper {
		out.spread[r.id] = keys[len(lower)+1+n]
	}
	return out, nil
}

// bounds answers the keys between which there is room: those at some distance, or the ends of the order. The end lies before whatever is
// filed next.
func bounds(lower, upper []ranked, distance int, next int32) (low, high string) {
	if len(lower) >= distance {
		low = lower[distance-1].key
	}
	if len(upper) >= distance {
		return low, upper[distance-1].key
	}
	if end := rank.Of(next); low < end {
		high = end
	}
	return low, high
}

func neighbours(ctx context.Context, q querier, sql, project, key string, self uuid.UUID, n int) ([]ranked, error) {
	rows, err := q.Query(ctx, sql, project, key, self, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ranked, error) {
		var r ranked
		return r, row.Scan(&r.id, &r.key)
	})
}
