package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Named is an item that a text names.
type Named struct {
	ID      uuid.UUID
	Key     string
	Title   string
	Removed bool
}

const selectNamed = `select n.place, i.id, i.project, i.number, i.title, i.removed_at is not null
	from unnest($1::uuid[], $2::text[], $3::int[], $4::text[]) with ordinality as n (id, project, number, key, place)
	join items i on i.id = coalesce(
		n.id,
		(select x.id from items x where x.project = n.project and x.number = n.number),
		(select f.item_id from former_keys f where f.key = n.key))`

// namedItems answers the items that keys, former keys or ids name, each at its name's place; nil where nothing has the name.
func namedItems(ctx context.Context, q querier, names []string) ([]*Named, error) {
	found := make([]*Named, len(names))
	ids, projects := make([]*uuid.UUID, len(names)), make([]*string, len(names))
	numbers, keys := make([]*int32, len(names)), make([]*string, len(names))
	for n, name := range names {
		if id, err := uuid.Parse(name); err == nil {
			ids[n] = &id
		} else if project, number, ok := splitKey(name); ok {
			key := item.Key(project, number)
			projects[n], numbers[n], keys[n] = &project, &number, &key
		}
	}
	rows, err := q.Query(ctx, selectNamed, ids, projects, numbers, keys)
	if err != nil {
		return nil, err
	}
	var place int64
	var project string
	var number int32
	var one Named
	_, err = pgx.ForEachRow(rows, []any{&place, &one.ID, &project, &number, &one.Title, &one.Removed}, func() error {
		is := one
		is.Key = item.Key(project, number)
		found[place-1] = &is
		return nil
	})
	return found, err
}

// settleEvidence puts the ids of items into a decision's evidence, so that it names the same items for ever. Evidence that nothing has
// the name of is refused.
func settleEvidence(ctx context.Context, q querier, d *item.Decision) error {
	if d == nil {
		return nil
	}
	var names []string
	var places []int
	for n, e := range d.Evidence {
		if e.Kind == item.EvidenceTask {
			names, places = append(names, e.Ref), append(places, n)
		}
	}
	if len(names) == 0 {
		return nil
	}
	found, err := namedItems(ctx, q, names)
	if err != nil {
		return err
	}
	for n, one := range found {
		if one == nil {
			return noEvidence(places[n], names[n])
		}
		d.Evidence[places[n]].Ref = one.ID.String()
	}
	return nil
}

func noEvidence(place int, name string) error {
	return fault.New(fault.Invalid, "decision.evidence[%d].ref names no work item: there is no %q", place, name).WithField("decision.evidence")
}
