package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Edit is a change and the item it is for.
type Edit struct {
	Name string
	// Update is what the item itself decides about; its type, labels, fields, parent and relations come from the parts below.
	Update    item.Update
	Wishes    Wishes
	Relations RelationUpdate
	// Mentions are the colleagues that a new body names.
	Mentions []string
	Act
}

// Edited is what came of an edit.
type Edited struct {
	Item *item.Item
	// Labels are the slugs that were declared for it.
	Labels   []string
	Warnings []string
	// At is the change's place in the order of writes; zero when nothing had to change.
	At ops.Position
}

// UpdateItem changes an item once per operation, all of it or nothing. answer fills result.
func (s *Store) UpdateItem(ctx context.Context, op ops.Operation, result proto.Message, edit Edit, answer func(Edited)) error {
	first := &pgx.Batch{}
	locked := edit.queueLock(first)
	replayed, err := ops.DoPipelined(ctx, s.pool, op, result, first, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		neighbours, i, err := edit.hold(ctx, tx, locked)
		if err != nil {
			return nil, err
		}
		if err := i.Matches(edit.Update.IfMatch); err != nil {
			return nil, err
		}
		if err := edit.mayRoute(i); err != nil {
			return nil, err
		}
		related, err := relate(ctx, tx, i.Item, neighbours, edit.Act)
		if err != nil {
			return nil, err
		}
		settled, err := edit.settle(ctx, tx, i, related)
		if err != nil {
			return nil, err
		}
		change, changed, err := i.Apply(edit.merge(settled, related), edit.By, edit.At)
		if err != nil {
			return nil, err
		}
		done := Edited{Item: i.Item, Warnings: append(settled.warnings, related.Warnings...)}
		if !changed {
			answer(done)
			return nil, nil
		}
		e := i.event(edit.Act, change)
		e.Mentions, e.Facts.Blocking = edit.Mentions, related.Blocking
		if i.Before.Open() && !i.Open() {
			if e.Facts.Unblocked, err = freed(ctx, tx, i.ID); err != nil {
				return nil, err
			}
		}
		batch := &pgx.Batch{}
		queueLabels(batch, i.Project, settled.labels, edit.By, edit.At)
		queueUpdate(batch, i.Item)
		queueBody(batch, i)
		related.queue(batch, edit.Act)
		queueEnds(batch, i.Before, i.Item)
		queueTally(batch, i.Before, i.Item)
		done.Labels, done.At = slugsOf(settled.labels), e.Position
		answer(done)
		return batch, s.record(ctx, batch, e)
	})
	return s.written(replayed, labelRace(err))
}

// queueLock locks the item, unless the edit is of relations, whose items are to be locked in one order with it: nil then.
func (e Edit) queueLock(batch *pgx.Batch) *locking {
	if !e.Relations.empty() {
		return nil
	}
	return queueLock(batch, e.Name)
}

// hold answers the item and what it is to be related with, all locked.
func (e Edit) hold(ctx context.Context, tx pgx.Tx, locked *locking) (neighbours *related, i *held, err error) {
	neighbours, err = lockRelated(ctx, tx, e.Name, e.Relations)
	if err != nil {
		return nil, nil, err
	}
	if locked != nil {
		i, err = locked.item()
	} else {
		i, err = lock(ctx, tx, e.Name)
	}
	return neighbours, i, err
}

// mayRoute refuses to let another unit hear of the item to who neither leads its project nor is a person.
func (e Edit) mayRoute(i *held) error {
	to := e.Update.RoutingUnit
	if to == nil || *to == i.RoutingUnit || e.By.Person() || e.Org.Leads(e.By.Seat, i.Unit) {
		return nil
	}
	return fault.New(fault.Forbidden, "routing_unit is for a lead of %s or a person to change: ask %s, or comment on %s", i.Project, nobodyElse(i.Lead), i.Key()).
		WithField("routing_unit").WithReason(ReasonNotLead)
}

func nobodyElse(lead string) string {
	if lead == "" {
		return "a person"
	}
	return lead
}

// settle checks what the project declares, when the edit asks for any of it.
func (e Edit) settle(ctx context.Context, tx pgx.Tx, i *held, related *woven) (settled, error) {
	subtask := i.Parent != nil
	if related.Parent != nil {
		subtask = related.Parent.Parent != nil
	}
	if e.Wishes.none() && (!subtask || i.Parent != nil) {
		return settled{}, nil
	}
	c, err := catalogue(ctx, tx, i.Project)
	if err != nil {
		return settled{}, err
	}
	return e.Wishes.settle(ctx, tx, c, i.Item, e.Act, false, subtask)
}

// merge is the whole change of the item.
func (e Edit) merge(s settled, related *woven) item.Update {
	u := e.Update
	u.Type, u.Labels, u.Fields = s.update.Type, s.update.Labels, s.update.Fields
	u.Related, u.Parent = related.Fields, related.Parent
	return u
}
