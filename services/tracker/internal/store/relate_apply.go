package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

// relation is one edge between two items, or an item and a page.
type relation struct {
	from, to uuid.UUID
	kind     string
	oneSided bool
}

// woven is what a change of relations does to an item. The zero value changes nothing.
type woven struct {
	// Fields are the relations that changed, for [item.Update].Related; there are none when everything was so already.
	Fields map[string]item.Field
	// Parent is where it stands in the tree from now on, for [item.Update].Parent; nil when that stays.
	Parent *item.Place
	// Blocking are those who have something that is waited for since now.
	Blocking []wake.Neighbour
	// Warnings are for the caller.
	Warnings []string

	added, cleared []relation
	// shift is by how much the depth of what is below the item changes, below whom that is.
	shift int16
	below []uuid.UUID
	note  string
	told  []Entry
}

// relate decides what a change of relations does to an item that the caller has locked, after [lockRelated]. The item itself is changed
// by nobody but [item.Item.Apply].
func relate(ctx context.Context, tx pgx.Tx, i *item.Item, r *related, a Act) (*woven, error) {
	w := &woven{Fields: map[string]item.Field{}, note: r.update.Note}
	if r.update.empty() {
		return w, nil
	}
	now, err := edgesOf(ctx, tx, i.ID)
	if err != nil {
		return nil, err
	}
	k := knot{related: r, woven: w, item: i, now: now}
	for _, step := range []func(context.Context, pgx.Tx) error{k.waitingOn, k.blocking, k.linked, k.pages, k.duplicate} {
		if err := step(ctx, tx); err != nil {
			return nil, err
		}
	}
	k.hang()
	k.mirror(a)
	return w, nil
}

// queue writes the change, after the item itself is queued.
func (w *woven) queue(batch *pgx.Batch, a Act) {
	queueEdges(batch, w.added, w.note, a)
	queueCleared(batch, w.cleared, a)
	if w.shift != 0 && len(w.below) > 0 {
		batch.Queue(`update items set depth = depth + $2 where id = any($1)`, w.below, w.shift)
	}
	queueEntries(batch, w.told)
}

func queueEdges(batch *pgx.Batch, edges []relation, note string, a Act) {
	if len(edges) == 0 {
		return
	}
	from, kinds, to, oneSided, notes := make([]uuid.UUID, len(edges)), make([]string, len(edges)), make([]uuid.UUID, len(edges)), make([]bool, len(edges)), make([]string, len(edges))
	for n, e := range edges {
		from[n], kinds[n], to[n], oneSided[n] = e.from, e.kind, e.to, e.oneSided
		if e.kind == "waiting_on" {
			notes[n] = note
		}
	}
	batch.Queue(`insert into relations (from_id, kind, to_id, one_sided, note, author, author_kind, created_at, from_open, to_open)
			select e.from_id, e.kind, e.to_id, e.one_sided, e.note, $6, $7, $8::timestamptz + (place - 1) * interval '1 microsecond',
				e.kind = 'waiting_on' and exists (select from items f where f.id = e.from_id and f.status_group < 2 and f.removed_at is null),
				e.kind = 'waiting_on' and exists (select from items t where t.id = e.to_id and t.status_group < 2 and t.removed_at is null)
			from unnest($1::uuid[], $2::text[], $3::uuid[], $4::bool[], $5::text[]) with ordinality as e (from_id, kind, to_id, one_sided, note, place)
		on conflict (from_id, kind, to_id) do update set one_sided = excluded.one_sided, note = excluded.note, author = excluded.author,
			author_kind = excluded.author_kind, created_at = excluded.created_at, cleared_at = null, from_open = excluded.from_open, to_open = excluded.to_open`,
		from, kinds, to, oneSided, notes, a.By.Name, a.By.Kind, a.At)
}

func queueCleared(batch *pgx.Batch, edges []relation, a Act) {
	if len(edges) == 0 {
		return
	}
	from, kinds, to := make([]uuid.UUID, len(edges)), make([]string, len(edges)), make([]uuid.UUID, len(edges))
	for n, e := range edges {
		from[n], kinds[n], to[n] = e.from, e.kind, e.to
	}
	batch.Queue(`update relations r set cleared_at = $4 from unnest($1::uuid[], $2::text[], $3::uuid[]) e (from_id, kind, to_id)
		where r.from_id = e.from_id and r.kind = e.kind and r.to_id = e.to_id`, from, kinds, to, a.At)
}

// edgesOf answers the edges of an item that count, in both directions, the oldest first.
func edgesOf(ctx context.Context, q querier, id uuid.UUID) ([]relation, error) {
	rows, err := q.Query(ctx, `select from_id, to_id, kind, one_sided from relations
		where cleared_at is null and (from_id = $1 or to_id = $1 and kind <> 'page') order by created_at, from_id, to_id`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (relation, error) {
		var e relation
		return e, row.Scan(&e.from, &e.to, &e.kind, &e.oneSided)
	})
}

// knot is a change of relations being decided.
type knot struct {
	*related
	*woven
	item *item.Item
	now  []relation
}

// ends answers the other ends of the item's edges of a kind: those it points to, those that point to it, or both.
func (k *knot) ends(kind string, out, in bool) []uuid.UUID {
	var ends []uuid.UUID
	for _, e := range k.now {
		switch {
		case e.kind != kind:
		case out && e.from == k.item.ID:
			ends = append(ends, e.to)
		case in && e.to == k.item.ID:
			ends = append(ends, e.from)
		}
	}
	return ends
}

// change answers what a change of a set adds and takes away, and notes it under a field's name.
func (k *knot) change(field string, now []uuid.UUID, c item.SetChange) (next, added, gone []uuid.UUID) {
	texts := func(ids []uuid.UUID) []string {
		out := make([]string, len(ids))
		for n, id := range ids {
			out[n] = id.String()
		}
		return out
	}
	for _, text := range c.Apply(texts(now)) {
		id := uuid.MustParse(text)
		next = append(next, id)
		if !slices.Contains(now, id) {
			added = append(added, id)
		}
	}
	for _, id := range now {
		if !slices.Contains(next, id) {
			gone = append(gone, id)
		}
	}
	if len(added)+len(gone) > 0 {
		k.Fields[field] = item.Field{From: item.Members(texts(now)), To: item.Members(texts(next))}
	}
	return next, added, gone
}

// resolved is a change whose members are ids.
func (k *knot) resolved(c item.SetChange) item.SetChange {
	c, _ = c.Resolve(func(name string) (string, error) { return k.ids[name].String(), nil })
	return c
}

// takes proves that the item may get an edge to some others.
func (k *knot) takes(argument string, others []uuid.UUID) error {
	for _, id := range others {
		n := k.neighbours[id]
		switch {
		case id == k.item.ID:
			return fault.New(fault.Invalid, "%s names %s itself: an item has no relation to itself", argument, k.item.Key()).WithField(argument)
		case n == nil:
			return nothing(argument, id.String())
		case n.removed:
			return fault.New(fault.Invalid, "%s names %s, which is in the trash: restore it first, or leave it out", argument, n.key).
				WithField(argument).WithReason(item.ReasonRemoved)
		}
	}
	return nil
}

func (k *knot) waitingOn(ctx context.Context, tx pgx.Tx) error {
	if k.update.WaitingOn == nil {
		return nil
	}
	next, added, gone := k.change("waiting_on", k.ends("waiting_on", true, false), k.resolved(*k.update.WaitingOn))
	if err := k.takes("waiting_on", added); err != nil {
		return err
	}
	if len(added) > 0 && len(next) > item.MaxWaitingOn {
		return fault.New(fault.Invalid, "waiting_on would hold %d items, and an item may wait for %d", len(next), item.MaxWaitingOn).WithField("waiting_on")
	}
	dependents, err := edgeCounts(ctx, tx, "to_id", added)
	if err != nil {
		return err
	}
	for _, id := range added {
		n := k.neighbours[id]
		e := relation{from: k.item.ID, to: id, kind: "waiting_on", oneSided: dependents[id] >= item.MaxDependents}
		if e.oneSided {
			k.Warnings = append(k.Warnings, fmt.Sprintf("%s has %d items waiting for it already, as many as may be, so it does not show that %s waits too", n.key, dependents[id], k.item.Key()))
		}
		k.added = append(k.added, e)
		k.Blocking = append(k.Blocking, wake.Neighbour{ID: n.id, Key: n.key, Title: n.title, Assignee: n.assignee})
	}
	return k.clear(ctx, tx, "waiting_on", gone, false)
}

func (k *knot) blocking(ctx context.Context, tx pgx.Tx) error {
	if k.update.Blocking == nil {
		return nil
	}
	next, added, gone := k.change("blocking", k.ends("waiting_on", false, true), k.resolved(*k.update.Blocking))
	if err := k.takes("blocking", added); err != nil {
		return err
	}
	if len(added) > 0 && len(next) > item.MaxDependents {
		return fault.New(fault.Invalid, "blocking would hold %d items, and %d may wait for one", len(next), item.MaxDependents).WithField("blocking")
	}
	waits, err := edgeCounts(ctx, tx, "from_id", added)
	if err != nil {
		return err
	}
	for _, id := range added {
		n := k.neighbours[id]
		if waits[id] >= item.MaxWaitingOn {
			return fault.New(fault.Invalid, "blocking names %s, which waits for %d items already, as many as an item may", n.key, waits[id]).WithField("blocking")
		}
		k.added = append(k.added, relation{from: id, to: k.item.ID, kind: "waiting_on"})
		k.Blocking = append(k.Blocking, wake.Neighbour{ID: n.id, Key: n.key, Title: n.title, Assignee: k.item.Assignee})
	}
	return k.clear(ctx, tx, "waiting_on", gone, true)
}

func (k *knot) linked(ctx context.Context, tx pgx.Tx) error {
	if k.update.Linked == nil {
		return nil
	}
	_, added, gone := k.change("linked", k.ends("linked", true, true), k.resolved(*k.update.Linked))
	if err := k.takes("linked", added); err != nil {
		return err
	}
	if err := k.hold(ctx, tx, gone); err != nil {
		return err
	}
	for _, id := range added {
		k.added = append(k.added, relation{from: k.item.ID, to: id, kind: "linked"})
	}
	for _, e := range k.now {
		if e.kind == "linked" && (slices.Contains(gone, e.from) || slices.Contains(gone, e.to)) {
			k.cleared = append(k.cleared, e)
		}
	}
	return k.room("linked")
}

func (k *knot) pages(ctx context.Context, tx pgx.Tx) error {
	if k.update.Pages == nil {
		return nil
	}
	pages, err := k.update.Pages.Resolve(func(text string) (string, error) {
		id, err := uuid.Parse(text)
		if err != nil {
			return "", fault.New(fault.Invalid, "linked_pages must be pages by id, as list_pages shows them, not %q", text).WithField("linked_pages")
		}
		return id.String(), nil
	})
	if err != nil {
		return err
	}
	_, added, gone := k.change("page", k.ends("page", true, false), pages)
	for _, id := range added {
		k.added = append(k.added, relation{from: k.item.ID, to: id, kind: "page"})
	}
	if err := k.clear(ctx, tx, "page", gone, false); err != nil {
		return err
	}
	return k.room("linked_pages")
}

func (k *knot) duplicate(ctx context.Context, tx pgx.Tx) error {
	if k.update.DuplicateOf == nil {
		return nil
	}
	c := item.SetChange{Clear: true}
	if name := *k.update.DuplicateOf; name != "" {
		c = k.resolved(item.SetChange{Set: []string{name}})
	}
	_, added, gone := k.change("duplicates", k.ends("duplicates", true, false), c)
	if err := k.takes("duplicate_of", added); err != nil {
		return err
	}
	for _, id := range added {
		k.added = append(k.added, relation{from: k.item.ID, to: id, kind: "duplicates"})
	}
	if err := k.clear(ctx, tx, "duplicates", gone, false); err != nil {
		return err
	}
	return k.room("duplicate_of")
}

// clear takes edges away.
func (k *knot) clear(ctx context.Context, tx pgx.Tx, kind string, ends []uuid.UUID, in bool) error {
	if kind == "waiting_on" {
		if err := k.hold(ctx, tx, ends); err != nil {
			return err
		}
	}
	for _, id := range ends {
		e := relation{from: k.item.ID, to: id, kind: kind}
		if in {
			e.from, e.to = id, k.item.ID
		}
		at := slices.IndexFunc(k.now, func(now relation) bool { return now.from == e.from && now.to == e.to && now.kind == kind })
		k.cleared = append(k.cleared, k.now[at])
	}
	return nil
}

// hold locks the other ends of edges that came after this write looked which rows to lock. It must not wait for them, as the
// order of locks is over: whoever holds one changes the same edges at this moment.
func (k *knot) hold(ctx context.Context, tx pgx.Tx, ends []uuid.UUID) error {
	missing := slices.DeleteFunc(slices.Clone(ends), func(id uuid.UUID) bool { return k.neighbours[id] != nil })
	if len(missing) == 0 {
		return nil
	}
	if err := k.lock(ctx, tx, missing, "skip locked"); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `select id from items where id = any($1)`, missing)
	if err != nil {
		return err
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return err
	}
	if slices.ContainsFunc(there, func(id uuid.UUID) bool { return k.neighbours[id] == nil }) {
		return moved(k.item.Key())
	}
	return nil
}

// room refuses more relations, those of waiting apart, than an item may have.
func (k *knot) room(argument string) error {
	count := func(edges []relation) (n int) {
		for _, e := range edges {
			if e.kind == "linked" || e.kind != "waiting_on" && e.from == k.item.ID {
				n++
			}
		}
		return n
	}
	if after := count(k.now) + count(k.added) - count(k.cleared); len(k.added) > 0 && after > item.MaxRelations {
		return fault.New(fault.Invalid, "%s would make %d links, and an item may have %d beside those of waiting", argument, after, item.MaxRelations).WithField(argument)
	}
	return nil
}

// hang puts the item below its new parent.
func (k *knot) hang() {
	if k.update.Parent == nil {
		return
	}
	depth, parent := int16(1), (*uuid.UUID)(nil)
	if len(k.above) > 0 {
		depth, parent = k.above[0].depth+1, &k.above[0].id
	}
	if sameID(k.item.Parent, parent) {
		return
	}
	k.shift = depth - k.item.Depth
	for _, n := range k.tree[1:] {
		k.below = append(k.below, n.id)
	}
	k.Parent = &item.Place{Parent: parent, Depth: depth}
}

func sameID(a, b *uuid.UUID) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// edgeCounts answers how many edges of waiting some items have on one side; those that the other side does not know of do not count.
func edgeCounts(ctx context.Context, tx pgx.Tx, side string, ids []uuid.UUID) (map[uuid.UUID]int, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `select `+side+`, count(*) from relations
		where `+side+` = any($1) and kind = 'waiting_on' and cleared_at is null and not (one_sided and $2) group by 1`, ids, side == "to_id")
	if err != nil {
		return nil, err
	}
	counts := map[uuid.UUID]int{}
	var id uuid.UUID
	var n int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		counts[id] = n
		return nil
	})
	return counts, err
}

// mirror tells the other side of each edge of waiting in its own history. Nobody is woken by that, and its version stays: it was not
// changed, something now stands before or behind it.
func (k *knot) mirror(a Act) {
	tell := func(e relation, gone bool) {
		other, field := e.to, "blocking"
		if e.to == k.item.ID {
			other, field = e.from, "waiting_on"
		}
		n := k.neighbours[other]
		if e.kind != "waiting_on" || e.oneSided || n == nil {
			return
		}
		f := item.Field{To: k.item.ID.String()}
		if gone {
			f = item.Field{From: f.To}
		}
		k.told = append(k.told, Entry{Position: n.position, ItemID: &n.id, Project: n.project, Change: item.Change{
			Kind: "relations", By: a.By, Fields: map[string]item.Field{field: f}, Version: n.version, Reassignments: n.handed, At: a.At,
		}})
	}
	for _, e := range k.added {
		tell(e, false)
	}
	for _, e := range k.cleared {
		tell(e, true)
	}
}
