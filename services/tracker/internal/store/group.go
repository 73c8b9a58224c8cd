package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

const (
	// maxBoard is how many items of the whole company are parted into columns.
	maxBoard = 20_000
	// maxGroups is how many columns are shown.
	maxGroups = 32
)

// Group is one column of a grouped list.
type Group struct {
	// Value is what its items share, empty for those without.
	Value   string
	Count   int32
	AtLeast bool // the counting stopped
	Items   []Row
	Totals  []Number
}

// Board is a grouped list.
type Board struct {
	Groups []Group
	// Overlap: an item may be in more than one group.
	Overlap bool
	// Dropped is how many groups are not shown.
	Dropped int32
	Total   int32
	AtLeast bool
}

// Groups answers the columns of a query, each with its first items. A board over more of the whole company than maxBoard is refused.
func (s *Store) Groups(ctx context.Context, q *query.Query, a Act) (Board, error) {
	all, parted := conditions(q, a), columnOfQuery(q)
	board := Board{Overlap: parted.overlaps}
	var total int32
	enough := int32(MaxCounted)
	if q.Project == "" {
		enough = maxBoard
	}
	err := s.read(ctx, func(batch *pgx.Batch) {
		batch.Queue(all.count(enough+1), all.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
	})
	if err != nil {
		return board, err
	}
	if q.Project == "" && total > maxBoard {
		return board, fault.New(fault.Invalid, "more than %d items of the whole company match, which are too many for a board: name a project, or narrow the list", maxBoard).
			WithField("group_by")
	}
	if board.Total, board.AtLeast = min(total, MaxCounted), total > MaxCounted; parted.closed != nil {
		board.Groups, err = s.countClosed(ctx, all, parted)
	} else {
		board.Groups, board.Dropped, err = s.countOpen(ctx, all, parted)
	}
	if err != nil {
		return board, err
	}
	return board, s.fill(ctx, q, all, parted, board.Groups)
}

// CheckGroup refuses the value of a column that a closed set does not have.
func CheckGroup(q *query.Query) error {
	closed := columnOfQuery(q).closed
	if closed == nil || slices.Contains(closed, *q.Group) || q.GroupBy == "priority" && *q.Group == "" {
		return nil
	}
	return fault.New(fault.Invalid, "%s has no column %q; it has %q", q.GroupBy, *q.Group, closed).WithField("group")
}

// countClosed counts each group of a closed set, those without items too.
func (s *Store) countClosed(ctx context.Context, all *statement, parted column) ([]Group, error) {
	groups := make([]Group, len(parted.closed))
	return groups, s.read(ctx, func(batch *pgx.Batch) {
		for n, value := range parted.closed {
			group := all.fork()
			parted.only(group, value)
			group.ceiling = min(group.ceiling, maxSought)
			batch.Queue(group.count(group.ceiling+1), group.args...).QueryRow(func(row pgx.Row) error {
				var count int32
				err := row.Scan(&count)
				groups[n] = Group{Value: value, Count: min(count, group.ceiling), AtLeast: count > group.ceiling}
				return err
			})
		}
	})
}

// countOpen finds the groups that items are in, the largest first, those without a value last.
func (s *Store) countOpen(ctx context.Context, all *statement, parted column) (groups []Group, dropped int32, err error) {
	group := all.fork()
	from, value := "items i left join lateral "+parted.set+" as value on true", "coalesce(value, '')"
	if parted.set == "" {
		from, value = "items i", parted.value(group)
	}
	order := "2 desc, 1"
	if parted.ordered {
		order = "1"
	}
	sql := fmt.Sprintf(`select value, n, count(*) over () from (select %s as value, count(*) as n from %s where %s group by 1) counted
		order by value = '', %s limit %d`, value, from, group.where(), order, maxGroups)
	var there int32
	err = s.read(ctx, func(batch *pgx.Batch) {
		batch.Queue(sql, group.args...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var g Group
				if err := rows.Scan(&g.Value, &g.Count, &there); err != nil {
					return err
				}
				g.Count, g.AtLeast = min(g.Count, MaxCounted), g.Count > MaxCounted
				groups = append(groups, g)
			}
			return rows.Err()
		})
	})
	return groups, there - int32(len(groups)), err
}

// fill brings the first items and the numbers of each group.
func (s *Store) fill(ctx context.Context, q *query.Query, all *statement, parted column, groups []Group) error {
	walks := make([]*lister, len(groups))
	for n := range groups {
		group := all.fork()
		parted.only(group, groups[n].Value)
		walks[n] = &lister{statement: group, phases: phases(q), want: min(q.GroupLimit, int(groups[n].Count))}
	}
	unfinished := func() bool { return slices.ContainsFunc(walks, (*lister).more) }
	for first := true; unfinished() || first && len(q.Totals) > 0; first = false {
		err := s.read(ctx, func(batch *pgx.Batch) {
			for n, walk := range walks {
				if walk.more() {
					walk.queue(batch)
				}
				if first && len(q.Totals) > 0 && groups[n].Count > 0 {
					walk.total(batch, q.Totals, &groups[n].Totals)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for n, walk := range walks {
		groups[n].Items = walk.items
	}
	return nil
}
