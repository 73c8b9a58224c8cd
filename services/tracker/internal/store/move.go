package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
	"github.com/bullpenhq/bullpen/services/tracker/internal/rank"
)

// ReasonNotLead is why somebody may not move an item out of a project.
const ReasonNotLead = "NOT_LEAD"

// Move brings an item to another project.
type Move struct {
	Name, Project string
	Act
}

// Moved is what a move did.
type Moved struct {
	Item *item.Item
	// From is the key that the item had.
	From     string
	Subtasks int
	Position ops.Position
}

// MoveItem brings an item with everything below it to another project, once per operation. answer fills result; its position is zero
// when the item was there already.
func (s *Store) MoveItem(ctx context.Context, op ops.Operation, result proto.Message, m Move, answer func(Moved)) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		m.Project = strings.ToUpper(m.Project)
		tree, err := rooted(ctx, tx, m.Name, m.Project)
		if err != nil {
			return nil, err
		}
		batch := &pgx.Batch{}
		if tree[0].project == m.Project {
			held, err := lockAll(ctx, tx, nodeIDs(tree[:1]))
			if err != nil {
				return nil, err
			}
			i := held[tree[0].id].Item
			answer(Moved{Item: i, From: i.Key()})
			return batch, i.Frozen()
		}
		from, to, err := homes(ctx, tx, tree, m)
		if err != nil {
			return nil, err
		}
		held, err := lockAll(ctx, tx, nodeIDs(tree))
		if err != nil {
			return nil, err
		}
		if err := held[tree[0].id].Frozen(); err != nil {
			return nil, err
		}
		if err := carryLabels(ctx, tx, batch, held, m); err != nil {
			return nil, err
		}
		w := newSweep(m.Act)
		for n, one := range tree {
			h := held[one.id]
			there := to.Home
			there.Number = to.numbers[n]
			there.Rank = rank.Of(there.Number)
			w.change(h, h.Move(from.Home, there, m.By, m.At))
		}
		w.events[0].Lead = from.lead // who leads the project that it leaves has to know
		queueFormerKeys(batch, tree, m.At)
		root := held[tree[0].id].Item
		answer(Moved{Item: root, From: tree[0].key(), Subtasks: len(tree) - 1, Position: w.latest()})
		return batch, w.queue(ctx, batch, s)
	})
	return s.written(replayed, labelRace(err))
}

// home is a project that an item leaves or goes to.
type home struct {
	item.Home
	lead     string
	archived bool
	// numbers are drawn for all that comes.
	numbers []int32
}

const drawNumbers = `select key, unit, lead, archived, array(select nextval(numbers_of(p.key))::int from generate_series(1, $2))
	from projects p where key = $1 for no key update`

// arrive holds a project that n items come to and draws their numbers: rising, though others that file at the same time may draw some between.
func arrive(ctx context.Context, tx pgx.Tx, project string, n int) (h home, err error) {
	err = tx.QueryRow(ctx, drawNumbers, project, n).Scan(&h.Project, &h.Unit, &h.lead, &h.archived, &h.numbers)
	if err == nil && h.archived {
		err = fault.New(fault.Invalid, "project %s is archived and takes no new work", project).WithField("project")
	}
	return h, err
}

// homes answers the project that a tree leaves, and the one that it goes to with numbers drawn for all of it, and refuses what may not
// move.
func homes(ctx context.Context, tx pgx.Tx, tree []node, m Move) (source, target home, err error) {
	source.Project = tree[0].project
	if err := tx.QueryRow(ctx, `select unit, lead from projects where key = $1`, source.Project).Scan(&source.Unit, &source.lead); err != nil {
		return source, target, err
	}
	if !m.By.Person() && !m.Org.Leads(m.By.Seat, source.Unit) {
		return source, target, fault.New(fault.Forbidden, "only who leads project %s, or a person, moves work out of it: ask %s", source.Project, leadOr(source.lead)).
			WithField("item").WithReason(ReasonNotLead)
	}
	if tree[0].parent != nil {
		return source, target, fault.New(fault.Invalid, "%s is part of another item: move that, or take this one out of it first with an empty parent", tree[0].key()).WithField("item")
	}
	target, err = arrive(ctx, tx, m.Project, len(tree))
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return source, target, fault.New(fault.Invalid, "there is no project %q; list_projects shows those there are", m.Project).WithField("project")
	case err != nil:
		return source, target, err
	}
	for _, n := range tree[1:] {
		if n.removed {
			return source, target, fault.New(fault.Invalid, "%s is in the trash and part of %s: restore or purge it first, as what is in the trash does not move", n.key(), tree[0].key()).
				WithField("item").WithReason(item.ReasonRemoved)
		}
	}
	return source, target, nil
}

func leadOr(lead string) string {
	if lead == "" {
		return "a person"
	}
	return lead
}

// carryLabels declares the labels of the items in the project that they go to. Slugs stay; a label that reads like another one there,
// under another slug, stops the move.
func carryLabels(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, held map[uuid.UUID]*held, m Move) error {
	var used []string
	var source string
	for _, h := range held {
		source = h.Project
		for _, slug := range h.Labels {
			if !slices.Contains(used, slug) {
				used = append(used, slug)
			}
		}
	}
	if len(used) == 0 {
		return nil
	}
	declared, err := labelsOf(ctx, tx, source)
	if err != nil {
		return err
	}
	there, err := labelsOf(ctx, tx, m.Project)
	if err != nil {
		return err
	}
	carried, err := label.Carry(declared, there, used, m.Project)
	if err != nil {
		return err
	}
	queueLabels(batch, m.Project, carried, m.By, m.At)
	return nil
}

// queueFormerKeys lets the old keys find the items for ever.
func queueFormerKeys(batch *pgx.Batch, tree []node, at time.Time) {
	keys := make([]string, len(tree))
	for n, one := range tree {
		keys[n] = one.key()
	}
	batch.Queue(`insert into former_keys (key, item_id, created_at) select key, id, $3 from unnest($1::text[], $2::uuid[]) f (key, id)`, keys, nodeIDs(tree), at)
}
