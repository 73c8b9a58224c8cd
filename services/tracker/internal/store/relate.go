package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// RelationUpdate says what to change in what an item is connected with; a nil part stays. Items are named by key, former key or id.
type RelationUpdate struct {
	// WaitingOn are items that must be finished first, Blocking those that wait for this one.
	WaitingOn, Blocking *item.SetChange
	// Linked are items that have to do with it, Pages pages by id.
	Linked, Pages *item.SetChange
	// DuplicateOf names the item that it is a duplicate of; empty for none.
	DuplicateOf *string
	// Parent names the item that it is part of; empty for the top.
	Parent *string
	// Note is kept with each new edge of waiting.
	Note string
}

func (u RelationUpdate) empty() bool {
	return u.WaitingOn == nil && u.Blocking == nil && u.Linked == nil && u.Pages == nil && u.DuplicateOf == nil && u.Parent == nil
}

// neighbour is another item that a change of relations names or has to do with, its row held by the write.
type neighbour struct {
	id         uuid.UUID
	key, title string
	assignee   string
	project    string
	removed    bool
	version    int32
	handed     int32
	position   ops.Position
}

// related is a change of relations whose items are found and locked.
type related struct {
	update RelationUpdate
	// ids of every name that the update holds.
	ids        map[string]uuid.UUID
	neighbours map[uuid.UUID]*neighbour
	// tree is the item and what is below it, and above what is above its new parent; both only with a new parent.
	tree, above []node
}

// lockRelated finds every item that the update names and locks them together with the item itself, in the order of their ids. name is
// empty for an item that is being filed. Call it before [lock] and after whatever locks a project.
func lockRelated(ctx context.Context, tx pgx.Tx, name string, u RelationUpdate) (*related, error) {
	r := &related{update: u, neighbours: map[uuid.UUID]*neighbour{}}
	if u.empty() {
		return r, nil
	}
	var lock []uuid.UUID
	var self uuid.UUID
	var err error
	if name != "" {
		if self, err = resolve(ctx, tx, name); err != nil {
			return nil, err
		}
		lock = append(lock, self)
	}
	if r.ids, err = resolveNames(ctx, tx, u); err != nil {
		return nil, err
	}
	for _, id := range r.ids {
		lock = append(lock, id)
	}
	if u.Parent != nil {
		below, err := r.hang(ctx, tx, name, self)
		if err != nil {
			return nil, err
		}
		lock = append(lock, below...)
	}
	if name != "" {
		ends, err := r.replaced(ctx, tx, self)
		if err != nil {
			return nil, err
		}
		lock = append(lock, ends...)
	}
	return r, r.lock(ctx, tx, lock, "")
}

// lock holds the rows of some items; wait is what to do about a row that somebody else holds.
func (r *related) lock(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, wait string) error {
	rows, err := tx.Query(ctx, `with i as materialized (select id, project, number, title, assignee, removed_at, version, reassignments from items
			where id = any($1) order by id for no key update `+wait+`)
		select id, project, number, title, assignee, removed_at is not null, version, reassignments, nextval('positions') from i`, ids)
	if err != nil {
		return err
	}
	var n neighbour
	var number int32
	var sequence int64
	_, err = pgx.ForEachRow(rows, []any{&n.id, &n.project, &number, &n.title, &n.assignee, &n.removed, &n.version, &n.handed, &sequence}, func() error {
		found := n
		found.key, found.position = item.Key(n.project, number), position(sequence)
		r.neighbours[n.id] = &found
		return nil
	})
	return err
}

// replaced answers the other ends of edges that the update may take away without naming them. Whoever writes an edge holds both of its
// ends, or edges that are written from either end would be waited for in circles.
func (r *related) replaced(ctx context.Context, tx pgx.Tx, self uuid.UUID) ([]uuid.UUID, error) {
	u := r.update
	whole := func(c *item.SetChange) bool { return c != nil && (c.Clear || len(c.Set) > 0) }
	if !whole(u.WaitingOn) && !whole(u.Blocking) && !whole(u.Linked) {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `select to_id from relations where from_id = $1 and cleared_at is null and (kind = 'waiting_on' and $2 or kind = 'linked' and $4)
		union select from_id from relations where to_id = $1 and cleared_at is null and (kind = 'waiting_on' and $3 or kind = 'linked' and $4)`,
		self, whole(u.WaitingOn), whole(u.Blocking), whole(u.Linked))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// hang looks at the place that the item goes to and answers what else has to be locked.
func (r *related) hang(ctx context.Context, tx pgx.Tx, name string, self uuid.UUID) ([]uuid.UUID, error) {
	up, err := ancestry(ctx, tx, self)
	if err != nil {
		return nil, err
	}
	if len(up) == 0 {
		return nil, noItem(name)
	}
	project := up[0].project
	if err := lockTrees(ctx, tx, project); err != nil {
		return nil, err
	}
	if r.tree, err = subtree(ctx, tx, self); err != nil {
		return nil, err
	}
	if len(r.tree) == 0 || r.tree[0].project != project {
		return nil, moved(name)
	}
	depth := int16(1)
	if *r.update.Parent != "" {
		id := r.ids[*r.update.Parent]
		if r.above, err = placeBelow(ctx, tx, id, *r.update.Parent, project); err != nil {
			return nil, err
		}
		if err := r.roomBelow(ctx, tx, self); err != nil {
			return nil, err
		}
		depth = r.above[0].depth + 1
	}
	var below []uuid.UUID
	if depth != r.tree[0].depth {
		for _, n := range r.tree[1:] {
			below = append(below, n.id)
		}
	}
	return below, nil
}

func (r *related) roomBelow(ctx context.Context, tx pgx.Tx, self uuid.UUID) error {
	if r.tree[0].parent != nil && *r.tree[0].parent == r.above[0].id {
		return nil
	}
	if slices.ContainsFunc(r.above, func(n node) bool { return n.id == self }) {
		return fault.New(fault.Invalid, "parent is %s itself or part of it: an item cannot be part of itself", r.tree[0].key()).WithField("parent")
	}
	size := len(r.tree)
	// What stays below the same topmost item is counted there already.
	top := r.above[len(r.above)-1]
	now, err := ancestry(ctx, tx, self)
	if err != nil {
		return err
	}
	if now[len(now)-1].id == top.id {
		size = 0
	}
	return fitsBelow(ctx, tx, "parent", r.above, height(r.tree), size)
}

const selectNames = `select n.name, coalesce(i.id, f.item_id, p.id) from unnest($1::text[], $2::text[], $3::int[], $4::text[]) n (name, project, number, key)
	left join items i on i.project = n.project and i.number = n.number
	left join former_keys f on f.key = n.key
	left join purged_items p on p.key = n.key`

// resolveNames answers the id of every item that the update names. Whether it still is there, the lock finds out.
func resolveNames(ctx context.Context, tx pgx.Tx, u RelationUpdate) (map[string]uuid.UUID, error) {
	ids := map[string]uuid.UUID{}
	arguments := map[string]string{}
	var names, projects, keys []string
	var numbers []int32
	var unknown error
	u.each(func(argument, name string) {
		if id, err := uuid.Parse(name); err == nil {
			ids[name] = id
			return
		}
		project, number, ok := splitKey(name)
		if !ok && unknown == nil {
			unknown = nothing(argument, name)
		}
		if _, twice := arguments[name]; twice || !ok {
			return
		}
		arguments[name] = argument
		names, projects, numbers, keys = append(names, name), append(projects, project), append(numbers, number), append(keys, item.Key(project, number))
	})
	if unknown != nil || len(names) == 0 {
		return ids, unknown
	}
	rows, err := tx.Query(ctx, selectNames, names, projects, numbers, keys)
	if err != nil {
		return nil, err
	}
	var name string
	var id *uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&name, &id}, func() error {
		if id == nil {
			return nothing(arguments[name], name)
		}
		ids[name] = *id
		return nil
	})
	return ids, err
}

// each calls yield for every item that the update names, with the argument that names it.
func (u RelationUpdate) each(yield func(argument, name string)) {
	for _, part := range []struct {
		argument string
		change   *item.SetChange
	}{{"waiting_on", u.WaitingOn}, {"blocking", u.Blocking}, {"linked", u.Linked}} {
		if part.change == nil {
			continue
		}
		for _, name := range slices.Concat(part.change.Add, part.change.Remove, part.change.Set) {
			yield(part.argument, name)
		}
	}
	if u.DuplicateOf != nil && *u.DuplicateOf != "" {
		yield("duplicate_of", *u.DuplicateOf)
	}
	if u.Parent != nil && *u.Parent != "" {
		yield("parent", *u.Parent)
	}
}
