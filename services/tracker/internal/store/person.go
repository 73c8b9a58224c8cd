package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/person"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

const personColumns = `p.handle, p.seen_through, p.read_after, p.unread_before, p.snoozed, p.snoozed_until, p.priorities, p.priorities_set_by,
	p.priorities_set_at, p.pinned_views, p.favorites, p.primary_reasons, p.version`

// scanPerson reads the columns, and whatever the query answers after them into more.
func scanPerson(row pgx.Row, r *person.Record, more ...any) error {
	var snoozed []int64
	var until []time.Time
	err := row.Scan(append([]any{
		&r.Handle, &r.SeenThrough, &r.Read, &r.Unread, &snoozed, &until, &r.Priorities, &r.PrioritiesBy, &r.PrioritiesAt, &r.Views, &r.Favorites,
		&r.Primary, &r.Version,
	}, more...)...)
	for n, record := range snoozed {
		r.Snoozed = append(r.Snoozed, person.Snooze{Record: record, Until: until[n]})
	}
	return err
}

const updatePerson = `update persons set seen_through = $2, read_after = $3, unread_before = $4, snoozed = $5, snoozed_until = $6, priorities = $7,
	priorities_set_by = $8, priorities_set_at = $9, pinned_views = $10, favorites = $11, primary_reasons = $12, version = $13, updated_at = $14
	where handle = $1`

func queuePerson(batch *pgx.Batch, r *person.Record, at time.Time) {
	snoozed, until := make([]int64, 0, len(r.Snoozed)), make([]time.Time, 0, len(r.Snoozed))
	for _, s := range r.Snoozed {
		snoozed, until = append(snoozed, s.Record), append(until, s.Until)
	}
	batch.Queue(updatePerson, r.Handle, r.SeenThrough, orEmptySlice(r.Read), orEmptySlice(r.Unread), snoozed, until, orEmptySlice(r.Priorities),
		r.PrioritiesBy, r.PrioritiesAt, orEmptySlice(r.Views), orEmptySlice(r.Favorites), r.Primary, r.Version, at)
}

// orEmptySlice is never null.
func orEmptySlice[T any](members []T) []T {
	if members == nil {
		return []T{}
	}
	return members
}

// PersonView is a record as its owner reads it.
type PersonView struct {
	person.Record
	// Keys name the items in the record, by id. What was destroyed has none.
	Keys map[uuid.UUID]string
	// Held counts the open items that the person has.
	Held int32
}

// Person reads what a colleague keeps. Who never kept anything has an empty record.
func (s *Store) Person(ctx context.Context, handle string) (*PersonView, error) {
	v := &PersonView{Record: person.Record{Handle: handle}, Keys: map[uuid.UUID]string{}}
	batch := &pgx.Batch{}
	batch.Queue(`select `+personColumns+` from persons p where handle = $1`, handle).QueryRow(func(row pgx.Row) error {
		if err := scanPerson(row, &v.Record); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	batch.Queue(`select i.id, i.project, i.number from persons p join items i on i.id = any(p.priorities || p.favorites) where p.handle = $1`, handle).
		Query(func(rows pgx.Rows) error { return nameKeys(rows, v.Keys) })
	batch.Queue(`select count(*) from items where assignee = $1 and status_group < 2 and removed_at is null`, handle).
		QueryRow(func(row pgx.Row) error { return row.Scan(&v.Held) })
	return v, s.atOnce(ctx, batch)
}

// nameKeys takes the keys of items in.
func nameKeys(rows pgx.Rows, keys map[uuid.UUID]string) error {
	var id uuid.UUID
	var project string
	var number int32
	_, err := pgx.ForEachRow(rows, []any{&id, &project, &number}, func() error {
		keys[id] = item.Key(project, number)
		return nil
	})
	return err
}

// PersonAnswer fills the result of a write of somebody's record; its position is zero when nothing had to change.
type PersonAnswer func(*person.Record, ops.Position)

// editPerson changes a record once per operation. decide may read and queue what else the change writes.
func (s *Store) editPerson(
	ctx context.Context, op ops.Operation, result proto.Message, handle string, at time.Time, answer PersonAnswer,
	decide func(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, r *person.Record, at ops.Position) (bool, error),
) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		r := &person.Record{}
		var sequence int64
		// The row is made first, so that there is always one to lock.
		err := scanPerson(tx.QueryRow(ctx, `insert into persons as p (handle) values ($1) on conflict (handle) do update set handle = excluded.handle
			returning `+personColumns+`, nextval('positions')`, handle), r, &sequence)
		if err != nil {
			return nil, err
		}
		batch := &pgx.Batch{}
		changed, err := decide(ctx, tx, batch, r, position(sequence))
		if err != nil {
			return nil, err
		}
		if !changed {
			answer(r, ops.Position{})
			return nil, nil
		}
		queuePerson(batch, r, at)
		answer(r, position(sequence))
		return batch, nil
	})
	return s.written(replayed, err)
}

// MarkInbox marks notices of a colleague's own. It leaves no row of history: what somebody has read is nobody else's business.
func (s *Store) MarkInbox(ctx context.Context, op ops.Operation, result proto.Message, handle string, at time.Time, m person.Mark, answer PersonAnswer) error {
	records, err := m.Records()
	if err != nil {
		return err
	}
	return s.editPerson(ctx, op, result, handle, at, answer, func(ctx context.Context, tx pgx.Tx, _ *pgx.Batch, r *person.Record, _ ops.Position) (bool, error) {
		if err := holds(ctx, tx, handle, records, m); err != nil {
			return false, err
		}
		return r.Mark(m)
	})
}

// holds refuses marks of notices that are not in the inbox.
func holds(ctx context.Context, tx pgx.Tx, handle string, records []int64, m person.Mark) error {
	if len(records) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, `select position from notices where person = $1 and position = any($2)`, handle, records)
	if err != nil {
		return err
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	for _, record := range records {
		// Bringing back what has gone by itself is no mistake.
		if !slices.Contains(there, record) && !slices.Contains(m.Unsnooze, record) {
			argument := m.Argument(record)
			return fault.New(fault.Invalid, "%s names no notice of yours: %s is not in your inbox, as work_inbox lists it", argument, position(record)).WithField(argument)
		}
	}
	return nil
}

// SetPins changes what a colleague keeps at hand. Views are ids, items are named by key, former key or id; nil leaves a set as it is.
func (s *Store) SetPins(
	ctx context.Context, op ops.Operation, result proto.Message, handle string, at time.Time, views, favorites *item.SetChange, answer PersonAnswer,
) error {
	return s.editPerson(ctx, op, result, handle, at, answer, func(ctx context.Context, tx pgx.Tx, _ *pgx.Batch, r *person.Record, _ ops.Position) (bool, error) {
		pinned, err := changeOf(views, func(names []string) ([]*uuid.UUID, error) { return existingViews(ctx, tx, names) }, "views", "saved view")
		if err != nil {
			return false, err
		}
		liked, err := changeOf(favorites, func(names []string) ([]*uuid.UUID, error) { return existingItems(ctx, tx, names) }, "favorites", "work item")
		if err != nil {
			return false, err
		}
		return r.Pin(pinned, liked)
	})
}

// changeOf finds what a change names. What is taken away need not exist any more, if it is named by its id.
func changeOf(c *item.SetChange, find func([]string) ([]*uuid.UUID, error), argument, thing string) (*person.Change, error) {
	if c == nil {
		return nil, nil
	}
	out := &person.Change{Replace: c.Clear || len(c.Set) > 0}
	for _, part := range []struct {
		name  string
		names []string
		ids   *[]uuid.UUID
		gone  bool
	}{{"add", c.Add, &out.Add, false}, {"remove", c.Remove, &out.Remove, true}, {"set", c.Set, &out.Set, false}} {
		if len(part.names) == 0 {
			continue
		}
		found, err := find(part.names)
		if err != nil {
			return nil, err
		}
		for n, id := range found {
			if id == nil && part.gone {
				if parsed, err := uuid.Parse(part.names[n]); err == nil {
					id = &parsed
				}
			}
			if id == nil {
				path := fmt.Sprintf("%s.%s[%d]", argument, part.name, n)
				return nil, fault.New(fault.Invalid, "%s names no %s: there is no %q", path, thing, part.names[n]).WithField(path)
			}
			*part.ids = append(*part.ids, *id)
		}
	}
	return out, nil
}

func existingItems(ctx context.Context, q querier, names []string) ([]*uuid.UUID, error) {
	found, err := namedItems(ctx, q, names)
	ids := make([]*uuid.UUID, len(found))
	for n, one := range found {
		if one != nil {
			ids[n] = &one.ID
		}
	}
	return ids, err
}

func existingViews(ctx context.Context, q querier, names []string) ([]*uuid.UUID, error) {
	ids, asked := make([]*uuid.UUID, len(names)), make([]uuid.UUID, 0, len(names))
	for n, name := range names {
		if id, err := uuid.Parse(name); err == nil {
			ids[n], asked = &id, append(asked, id)
		}
	}
	rows, err := q.Query(ctx, `select id from views where id = any($1)`, asked)
	if err != nil {
		return nil, err
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	for n, id := range ids {
		if id != nil && !slices.Contains(there, *id) {
			ids[n] = nil
		}
	}
	return ids, err
}

// Priorities are a whole order of work for a colleague.
type Priorities struct {
	Handle string
	// Items are named by key, former key or id.
	Items   []string
	IfMatch *int32
	Act
}

// SetPriorities sets an order of work. answer has the keys as they stand. The row of history is about the person's record and names no
// project; whom it concerns are its owner, and for each item that is new in it.
func (s *Store) SetPriorities(ctx context.Context, op ops.Operation, result proto.Message, o Priorities, answer func(*person.Record, []string, ops.Position)) error {
	var keys []string
	return s.editPerson(ctx, op, result, o.Handle, o.At, func(r *person.Record, at ops.Position) { answer(r, keys, at) },
		func(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, r *person.Record, at ops.Position) (bool, error) {
			if err := r.Match(o.IfMatch); err != nil {
				return false, err
			}
			found, err := namedItems(ctx, tx, o.Items)
			if err != nil {
				return false, err
			}
			ids, err := inOrder(o.Items, found)
			if err != nil {
				return false, err
			}
			for _, one := range found {
				keys = append(keys, one.Key)
			}
			before := r.Priorities
			added, changed := r.Prioritise(ids, o.owner(), o.At)
			if !changed {
				return false, nil
			}
			return true, s.recordProject(ctx, batch, o.event(r, before, added, found, at))
		})
}

// owner answers by whom the order is set: the owner, under whichever name, or somebody else by name.
func (o Priorities) owner() string {
	if o.By.Seat == o.Handle {
		return o.Handle
	}
	return o.By.Name
}

// inOrder answers the items in the order they are named, or refuses a name that nothing has, the trash, and what is named twice.
func inOrder(names []string, found []*Named) ([]uuid.UUID, error) {
	ids := make([]uuid.UUID, 0, len(found))
	for n, one := range found {
		path := fmt.Sprintf("items[%d]", n)
		switch {
		case one == nil:
			return nil, fault.New(fault.Invalid, "%s names no work item: there is no %q", path, names[n]).WithField(path)
		case one.Removed:
			return nil, fault.New(fault.Invalid, "%s is %s, which is in the trash: leave it out or restore it first", path, one.Key).WithField(path).WithReason(item.ReasonRemoved)
		case slices.Contains(ids, one.ID):
			return nil, fault.New(fault.Invalid, "%s names %s again: an order has each item once", path, one.Key).WithField(path)
		}
		ids = append(ids, one.ID)
	}
	return ids, nil
}

func (o Priorities) event(r *person.Record, before, added []uuid.UUID, found []*Named, at ops.Position) Event {
	texts := func(ids []uuid.UUID) []string {
		out := make([]string, 0, len(ids))
		for _, id := range ids {
			out = append(out, id.String())
		}
		return out
	}
	e := Event{Position: at, Change: item.Change{
		Kind: "prioritised", By: o.By, At: o.At, Version: r.Version,
		Fields: map[string]item.Field{"priorities": {From: item.Members(texts(before)), To: item.Members(texts(r.Priorities))}},
	}}
	if o.By.Seat == o.Handle {
		return e
	}
	e.Facts.Prioritised = o.Handle
	for _, one := range found {
		if slices.Contains(added, one.ID) {
			e.Facts.Listed = append(e.Facts.Listed, wake.Neighbour{ID: one.ID, Key: one.Key, Title: one.Title, Assignee: o.Handle})
		}
	}
	e.resolve()
	return e
}
