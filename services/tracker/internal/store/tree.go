package store

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// ReasonMoved is why a gesture that lost a race for an item's place is refused.
const ReasonMoved = "ITEM_MOVED"

// treeKey answers the number that stands for the trees of a project; $1 is its key.
const treeKey = `hashtextextended(current_schema() || '/tree/' || $1, 0)`

// lockTrees keeps the trees of some projects as they are until the transaction ends: no item of them gets another parent or depth, comes
// in, or leaves. What hangs an item somewhere else takes it before it locks any row; filing a subtask shares it.
func lockTrees(ctx context.Context, tx pgx.Tx, projects ...string) error {
	projects = slices.Compact(slices.Sorted(slices.Values(projects)))
	for _, project := range projects {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+treeKey+`)`, project); err != nil {
			return err
		}
	}
	return nil
}

func shareTree(ctx context.Context, tx pgx.Tx, project string) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+treeKey+`)`, project)
	return err
}

// moved refuses a gesture whose item went elsewhere while it waited.
func moved(key string) error {
	return fault.New(fault.Conflict, "%s was moved at the same moment: read it again and decide from where it is now", key).
		WithField("item").WithReason(ReasonMoved)
}

// node is an item of a tree, as far as the shape of the tree goes.
type node struct {
	id      uuid.UUID
	parent  *uuid.UUID
	project string
	number  int32
	depth   int16
	group   item.Group
	removed bool
	with    *uuid.UUID
}

func (n node) key() string { return item.Key(n.project, n.number) }

const nodeColumns = `i.id, i.parent, i.project, i.number, i.depth, i.status_group, i.removed_at is not null, i.removed_with`

func scanNode(row pgx.CollectableRow) (node, error) {
	var n node
	return n, row.Scan(&n.id, &n.parent, &n.project, &n.number, &n.depth, &n.group, &n.removed, &n.with)
}

// subtree answers an item and everything below it, the trash included, from the top down. It is bounded by one more than an item and
// its descendants may be.
func subtree(ctx context.Context, q querier, id uuid.UUID) ([]node, error) {
	rows, err := q.Query(ctx, `with recursive tree (id, level) as (
			select $1::uuid, 0 union all select c.id, level + 1 from tree join items c on c.parent = tree.id where level < $3)
		select `+nodeColumns+` from (select * from tree limit $2) t join items i on i.id = t.id order by t.level, i.id`,
		id, 2*(item.MaxDescendants+1), 4*item.MaxDepth)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanNode)
}

// descendants counts what is below an item, the trash included. Counting stops when an item may have no more.
func descendants(ctx context.Context, q querier, id uuid.UUID) (n int, err error) {
	err = q.QueryRow(ctx, `with recursive tree (id, level) as (
			select $1::uuid, 0 union all select c.id, level + 1 from tree join items c on c.parent = tree.id where level < $3)
		select count(*) - 1 from (select from tree limit $2) t`, id, item.MaxDescendants+2, 4*item.MaxDepth).Scan(&n)
	return n, err
}

// ancestry answers an item and what it is part of, up to the top.
func ancestry(ctx context.Context, q querier, id uuid.UUID) ([]node, error) {
	rows, err := q.Query(ctx, `with recursive up (id, parent, level) as (
			select id, parent, 0 from items where id = $1 union all select p.id, p.parent, level + 1 from up join items p on p.id = up.parent where level < $2)
		select `+nodeColumns+` from up join items i on i.id = up.id order by level`, id, 4*item.MaxDepth)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanNode)
}

// parent puts a new item below another one of its project, within what a tree may hold. Call it before any row is locked.
func parent(ctx context.Context, tx pgx.Tx, i *item.Item, name string) error {
	if name == "" {
		return nil
	}
	if err := shareTree(ctx, tx, i.Project); err != nil {
		return err
	}
	id, err := named(ctx, tx, "parent", name)
	if err != nil {
		return err
	}
	up, err := placeBelow(ctx, tx, id, name, i.Project)
	if err != nil {
		return err
	}
	if err := fitsBelow(ctx, tx, "parent", up, 1, 1); err != nil {
		return err
	}
	i.Parent, i.Depth = &id, up[0].depth+1
	return nil
}

// named answers the id of an item that an argument names.
func named(ctx context.Context, q querier, argument, name string) (uuid.UUID, error) {
	id, err := resolve(ctx, q, name)
	if f, ok := fault.As(err); ok && f.Class == fault.NotFound || errors.Is(err, pgx.ErrNoRows) {
		return id, nothing(argument, name)
	}
	return id, err
}

func nothing(argument, name string) error {
	return fault.New(fault.Invalid, "%s names no work item: there is no %q; list_work_items shows those there are", argument, name).WithField(argument)
}

// placeBelow answers what is above a place below some item, that item first, when a subtask of a project may go there.
func placeBelow(ctx context.Context, q querier, id uuid.UUID, name, project string) ([]node, error) {
	up, err := ancestry(ctx, q, id)
	switch {
	case err != nil:
		return nil, err
	case len(up) == 0:
		return nil, nothing("parent", name)
	case up[0].removed:
		return nil, fault.New(fault.Invalid, "parent is %s, which is in the trash: nothing becomes part of it there", up[0].key()).
			WithField("parent").WithReason(item.ReasonRemoved)
	case up[0].project != project:
		return nil, fault.New(fault.Invalid, "parent is in project %s and this item in %s: an item and what it is part of are in one project", up[0].project, project).
			WithField("parent")
	}
	return up, nil
}

// fitsBelow refuses a place where a tree of some height and size does not fit below the item that up begins with. argument is the one that
// names that item.
func fitsBelow(ctx context.Context, q querier, argument string, up []node, height, size int) error {
	above := up[0]
	switch depth := int(above.depth); {
	case depth+height <= item.MaxDepth:
	case height == 1:
		return fault.New(fault.Invalid, "%s is %d levels deep already, and items go %d deep: put it higher up", above.key(), depth, item.MaxDepth).WithField(argument)
	default:
		return fault.New(fault.Invalid, "%s is %d levels deep already, what would come below it has %d levels of its own, and items go %d deep: put it higher up",
			above.key(), depth, height, item.MaxDepth).WithField(argument)
	}
	top := up[len(up)-1]
	now, err := descendants(ctx, q, top.id)
	if err != nil {
		return err
	}
	if now+size > item.MaxDescendants {
		return fault.New(fault.Invalid, "%s has %d items below it already, and an item may have %d: put it elsewhere", top.key(), now, item.MaxDescendants).
			WithField(argument)
	}
	return nil
}

// height is how many levels a subtree has; nodes come from the top down.
func height(tree []node) int {
	if len(tree) == 0 {
		return 0
	}
	return int(tree[len(tree)-1].depth-tree[0].depth) + 1
}
