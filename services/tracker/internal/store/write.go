package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Filing is a new item and how it is filed.
type Filing struct {
	Item *item.Item
	// Parent, unless empty, names the item that it is part of.
	Parent string
	// Mentions are the colleagues that the body names.
	Mentions []string
	Act
}

// Edit is a change and the item it is for.
type Edit struct {
	Name   string
	Update item.Update
	// Mentions are the colleagues that a new body names.
	Mentions []string
	Act
}

// InsertItem files an item once per operation. answer fills result when the item stands; on a replay result is the first answer.
func (s *Store) InsertItem(ctx context.Context, op ops.Operation, result proto.Message, f Filing, answer func(ops.Position)) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		i := f.Item
		if err := parent(ctx, tx, i, f.Parent); err != nil {
			return nil, err
		}
		var sequence int64
		var lead, defaultAssignee string
		var archived bool
		err := tx.QueryRow(ctx, `with p as materialized (
				update projects set next_number = next_number + 1 where key = $1 returning next_number - 1 as number, lead, default_assignee, archived)
			select number, lead, default_assignee, archived, nextval('positions') from p`, i.Project).
			Scan(&i.Number, &lead, &defaultAssignee, &archived, &sequence)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, fault.New(fault.Invalid, "there is no project %q", i.Project).WithField("project")
		}
		if err != nil {
			return nil, err
		}
		if archived {
			return nil, fault.New(fault.Invalid, "project %s is archived and takes no new work", i.Project).WithField("project")
		}
		if i.Assignee == "" {
			i.Assignee = defaultAssignee
		}
		change := item.New(i, f.By, f.At)
		e := Event{
			Item: i, Project: i.Project, Change: change, Mentions: f.Mentions, Lead: lead, RoutingLead: f.Org.LeadOf(i.RoutingUnit), Position: position(sequence),
		}
		batch := &pgx.Batch{}
		queueInsert(batch, i)
		queueTally(batch, nil, i)
		answer(e.Position)
		return batch, s.record(ctx, batch, e)
	})
	return s.written(replayed, err)
}

// UpdateItem changes an item once per operation. answer fills result with the item as it is now; its position is zero when
// nothing had to change.
func (s *Store) UpdateItem(
	ctx context.Context, op ops.Operation, result proto.Message, edit Edit, answer func(*item.Item, ops.Position),
) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		i, err := lock(ctx, tx, edit.Name)
		if err != nil {
			return nil, err
		}
		change, changed, err := i.Apply(edit.Update, edit.By, edit.At)
		if err != nil {
			return nil, err
		}
		batch := &pgx.Batch{}
		if !changed {
			answer(i.Item, ops.Position{})
			return batch, nil
		}
		e := i.event(edit.Act, change)
		e.Mentions = edit.Mentions
		queueUpdate(batch, i.Item)
		queueBody(batch, i)
		queueTally(batch, i.Before, i.Item)
		answer(i.Item, e.Position)
		return batch, s.record(ctx, batch, e)
	})
	return s.written(replayed, err)
}

// written wakes the relay after a commit that may have appended.
func (s *Store) written(replayed bool, err error) error {
	if err == nil && !replayed {
		s.relay()
	}
	return err
}
