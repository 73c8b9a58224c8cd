package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
	"github.com/bullpenhq/bullpen/services/tracker/internal/rank"
)

// Import is a part of another tracker's items.
type Import struct {
	Project string
	// Source names the other tracker; with an arrival's ExternalID it names an item for ever.
	Source   string
	Arrivals []*Arrival
	// DryRun decides everything and writes nothing.
	DryRun bool
	Act
}

// Arrival is an item as another tracker had it. Its item holds what needs no look at the project; times included.
type Arrival struct {
	ExternalID, URL string
	Item            *item.Item
	// Type and Labels are as their slugs or texts; labels that are not declared are declared.
	Type   string
	Labels []string
	// Parent and WaitingOn are by ExternalID, and may come later.
	Parent    string
	WaitingOn []string
	Comments  []*Comment

	// Key is the item's here, once it is filed or was before.
	Key string
	// There: it was here before, and was left as it is.
	There bool
	// Refused is why it is not filed.
	Refused  error
	Warnings []string
}

func (a *Arrival) files() bool { return !a.There && a.Refused == nil }

// errDryRun ends the transaction of a dry run.
var errDryRun = errors.New("dry run")

// ImportItems files the arrivals of a part together, in one transaction, and says of each what became of it. It is repeated
// without harm: what is here stays as it is, and edges are made as soon as both their ends are.
func (s *Store) ImportItems(ctx context.Context, im Import) (ops.Position, error) {
	var last ops.Position
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lockTrees(ctx, tx, im.Project); err != nil {
			return err
		}
		if err := im.recognise(ctx, tx); err != nil {
			return err
		}
		c, err := catalogue(ctx, tx, im.Project)
		if err != nil {
			return err
		}
		declared := im.settle(c)
		filed := im.files()
		if im.DryRun {
			return errDryRun
		}
		if err := im.number(ctx, tx, filed); err != nil {
			return err
		}
		if last, err = s.writeImport(ctx, tx, im, filed, declared); err != nil {
			return err
		}
		return im.connect(ctx, tx)
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}
	return last, s.written(false, labelRace(err))
}

// recognise finds the arrivals that are here, in whatever project they are now.
func (im Import) recognise(ctx context.Context, tx pgx.Tx) error {
	names := make([]string, len(im.Arrivals))
	for n, a := range im.Arrivals {
		names[n] = a.ExternalID
	}
	rows, err := tx.Query(ctx, `select external_id, project, number from items where external_source = $1 and external_id = any($2)`, im.Source, names)
	if err != nil {
		return err
	}
	there := map[string]string{}
	var name, project string
	var number int32
	if _, err := pgx.ForEachRow(rows, []any{&name, &project, &number}, func() error {
		there[name] = item.Key(project, number)
		return nil
	}); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, a := range im.Arrivals {
		a.Key, a.There = there[a.ExternalID], there[a.ExternalID] != ""
		if seen[a.ExternalID] && a.Refused == nil {
			a.Refused = fault.New(fault.Invalid, "external_id %q comes twice in one part", a.ExternalID).WithField("external_id")
		}
		seen[a.ExternalID] = true
	}
	return nil
}

// settle decides type and labels of every arrival against what the project declares, and answers the labels to declare.
func (im Import) settle(c Catalogue) []label.Label {
	labels := c.Labels
	var create []label.Label
	for _, a := range im.Arrivals {
		if !a.files() {
			continue
		}
		kind, err := c.Types.Check("type", a.Type, "")
		if err != nil {
			a.Refused = err
			continue
		}
		a.Item.Type = kind
		for _, text := range a.Labels {
			checked, err := label.Check(labels, nil, append(append([]string{}, a.Item.Labels...), text), true)
			if err != nil {
				a.Warnings = append(a.Warnings, fmt.Sprintf("label %q was left out: %s", text, sentence(err)))
				continue
			}
			a.Item.Labels = checked.Slugs
			labels, create = append(labels, checked.Create...), append(create, checked.Create...)
		}
	}
	return create
}

func sentence(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return err.Error()
}

func (im Import) files() []*Arrival {
	var out []*Arrival
	for _, a := range im.Arrivals {
		if a.files() {
			out = append(out, a)
		}
	}
	return out
}

// number gives the arrivals that are filed their keys, and what the project decides of them.
func (im Import) number(ctx context.Context, tx pgx.Tx, filed []*Arrival) error {
	to, err := arrive(ctx, tx, im.Project, len(filed))
	if errors.Is(err, pgx.ErrNoRows) {
		return noProject(im.Project)
	}
	if err != nil {
		return err
	}
	for n, a := range filed {
		i := a.Item
		i.Project, i.Number, i.Depth, i.Version = im.Project, to.numbers[n], 1, 1
		i.Rank, i.FiledUnit, i.RoutingUnit = rank.Of(i.Number), to.Unit, to.Unit
		i.BodyVersion, i.BodyAuthor, i.BodyAt = 1, i.Reporter, &i.CreatedAt
		a.Key = i.Key()
	}
	return nil
}

// writeImport writes the arrivals with their threads, their history and their events, and answers the last place in the order of writes.
// They concern nobody: what was told elsewhere long ago is told to no one again.
func (s *Store) writeImport(ctx context.Context, tx pgx.Tx, im Import, filed []*Arrival, declared []label.Label) (last ops.Position, err error) {
	if len(filed) == 0 {
		return last, nil
	}
	positions, err := drawPositions(ctx, tx, len(filed))
	if err != nil {
		return last, err
	}
	batch, counts := &pgx.Batch{}, tally{}
	queueLabels(batch, im.Project, declared, im.By, im.At)
	entries, messages := make([]Entry, 0, len(filed)), make([]outbox.Message, 0, len(filed))
	for n, a := range filed {
		i := a.Item
		queueInsert(batch, i)
		batch.Queue(`update items set external_source = $2, external_id = $3, external_url = $4 where id = $1`, i.ID, im.Source, a.ExternalID, a.URL)
		counts.move(nil, i)
		for _, c := range a.Comments {
			queueComment(batch, i.ID, c)
		}
		if a.Parent != "" {
			queueEdge(batch, im.Source, a.ExternalID, "parent", a.Parent)
		}
		for _, blocker := range a.WaitingOn {
			queueEdge(batch, im.Source, a.ExternalID, "waiting_on", blocker)
		}
		e := Event{Item: i, Project: im.Project, Position: position(positions[n]), Change: item.Change{
			Kind: "imported", By: im.By, At: im.At, Version: 1,
			Fields: map[string]item.Field{"title": {To: item.Excerpt(i.Title)}, "from": {To: im.Source + " " + a.ExternalID}},
		}}
		entries = append(entries, e.Entry())
		message, err := s.encode(e)
		if err != nil {
			return last, fmt.Errorf("encode event: %w", err)
		}
		last, messages = e.Position, append(messages, message)
	}
	counts.queue(batch)
	queueEntries(batch, entries)
	if err := outbox.QueueAll(ctx, batch, messages); err != nil {
		return last, err
	}
	return last, tx.SendBatch(ctx, batch).Close()
}

func queueEdge(batch *pgx.Batch, source, from, kind, to string) {
	batch.Queue(`insert into import_edges (source, from_external, kind, to_external) values ($1, $2, $3, $4) on conflict do nothing`, source, from, kind, to)
}

func drawPositions(ctx context.Context, q querier, n int) ([]int64, error) {
	rows, err := q.Query(ctx, `select nextval('positions') from generate_series(1, $1)`, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// arrow is an edge whose both ends are here.
type arrow struct {
	fromName, kind, toName string
	from, to               uuid.UUID
}

// connect makes the edges that touch this part and whose both ends are here now.
func (im Import) connect(ctx context.Context, tx pgx.Tx) error {
	names := make([]string, len(im.Arrivals))
	arrival := map[string]*Arrival{}
	for n, a := range im.Arrivals {
		names[n], arrival[a.ExternalID] = a.ExternalID, a
	}
	rows, err := tx.Query(ctx, `select e.from_external, e.kind, e.to_external, f.id, t.id from import_edges e
			join items f on f.external_source = e.source and f.external_id = e.from_external and f.removed_at is null
			join items t on t.external_source = e.source and t.external_id = e.to_external and t.removed_at is null
		where e.source = $1 and (e.from_external = any($2) or e.to_external = any($2)) order by e.from_external, e.kind, e.to_external`, im.Source, names)
	if err != nil {
		return err
	}
	edges, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (arrow, error) {
		var e arrow
		return e, row.Scan(&e.fromName, &e.kind, &e.toName, &e.from, &e.to)
	})
	if err != nil {
		return err
	}
	if err := holdEnds(ctx, tx, edges); err != nil {
		return err
	}
	for _, e := range edges {
		err := im.make(ctx, tx, e)
		if f, ok := fault.As(err); ok && f.Class == fault.Invalid {
			if a := arrival[e.fromName]; a != nil {
				a.Warnings = append(a.Warnings, fmt.Sprintf("%s of %s was left out: %s", e.kind, e.toName, f.Message))
			}
		} else if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from import_edges where source = $1 and from_external = $2 and kind = $3 and to_external = $4`,
			im.Source, e.fromName, e.kind, e.toName); err != nil {
			return err
		}
	}
	return nil
}

// holdEnds locks the items at both ends of edges, as whoever writes an edge does.
func holdEnds(ctx context.Context, tx pgx.Tx, edges []arrow) error {
	if len(edges) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, 0, 2*len(edges))
	for _, e := range edges {
		ids = append(ids, e.from, e.to)
	}
	_, err := tx.Exec(ctx, `select from items where id = any($1) order by id for no key update`, ids)
	return err
}

// make makes an edge, or refuses it as invalid where items may not be connected so.
func (im Import) make(ctx context.Context, tx pgx.Tx, e arrow) error {
	if e.from == e.to {
		return fault.New(fault.Invalid, "an item is not connected with itself")
	}
	if e.kind == "parent" {
		return im.adopt(ctx, tx, e)
	}
	var waits, dependents int
	err := tx.QueryRow(ctx, `select (select count(*) from relations where from_id = $1 and kind = 'waiting_on' and cleared_at is null),
			(select count(*) from relations where to_id = $2 and kind = 'waiting_on' and cleared_at is null)`, e.from, e.to).Scan(&waits, &dependents)
	switch {
	case err != nil:
		return err
	case waits >= item.MaxWaitingOn:
		return fault.New(fault.Invalid, "it waits for %d items, and an item waits for %d at most", waits, item.MaxWaitingOn)
	case dependents >= item.MaxDependents:
		return fault.New(fault.Invalid, "%d items wait for that one, and at most %d do", dependents, item.MaxDependents)
	}
	_, err = tx.Exec(ctx, `insert into relations (from_id, kind, to_id, author, author_kind, created_at, from_open, to_open) values ($1, 'waiting_on', $2, $3, $4, $5,
			exists (select from items where id = $1 and status_group < 2 and removed_at is null),
			exists (select from items where id = $2 and status_group < 2 and removed_at is null))
		on conflict (from_id, kind, to_id) do nothing`, e.from, e.to, im.By.Name, im.By.Kind, im.At)
	return err
}

// adopt puts an item that is at the top below another one, with everything that is part of it.
func (im Import) adopt(ctx context.Context, tx pgx.Tx, e arrow) error {
	below, err := subtree(ctx, tx, e.from)
	if err != nil {
		return err
	}
	if len(below) == 0 || below[0].parent != nil {
		return nil
	}
	up, err := placeBelow(ctx, tx, e.to, e.toName, below[0].project)
	if err != nil {
		return err
	}
	height := int16(0)
	for _, n := range below {
		if n.id == e.to {
			return fault.New(fault.Invalid, "that one is part of this one")
		}
		height = max(height, n.depth)
	}
	if err := fitsBelow(ctx, tx, "parent", up, int(height), len(below)); err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(below))
	for n, b := range below {
		ids[n] = b.id
	}
	_, err = tx.Exec(ctx, `update items set parent = case when id = $1 then $2 else parent end, depth = depth + $3 where id = any($4)`, e.from, e.to, up[0].depth, ids)
	return err
}
