package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

// Act is who writes, when, and in which company.
type Act struct {
	By item.Actor
	// At is the moment of the write, in microseconds, as Postgres keeps it.
	At  time.Time
	Org *org.Org
}

// held is an item whose row a write holds until it ends, and what the write knows of it.
type held struct {
	// Item is changed by the write; Before is it as it was. They share their slices, which are therefore never changed in place.
	*item.Item
	Before *item.Item
	// Position is the write's place in the order of writes, drawn when the row was locked.
	Position ops.Position
	// Unit owns the project, and Lead leads it; Archived is the project's.
	Unit, Lead string
	Archived   bool
	// ParentAssignee has the item that this one is part of.
	ParentAssignee string
}

// event is what a change of the held item tells the world.
func (h *held) event(a Act, c item.Change) Event {
	return Event{
		Item: h.Item, Before: h.Before, Project: h.Project, Change: c, Lead: h.Lead, RoutingLead: a.Org.LeadOf(h.RoutingUnit),
		ParentAssignee: h.ParentAssignee, Position: h.Position,
	}
}

const lockItem = `with i as materialized (select * from items where id = (
		select id from items where project = $1 and number = $2 union all select item_id from former_keys where key = $3 limit 1) for no key update)
	` + lockedItem

const lockItemByID = `with i as materialized (select * from items where id = $1 for no key update)
	` + lockedItem

const lockedItem = `select ` + columns + `, i.body, p.unit, p.lead, p.archived, coalesce((select assignee from items where id = i.parent), ''), nextval('positions')
	from i join projects p on p.key = i.project`

// locking is an item that is being locked: what the server answers is known when the batch is done.
type locking struct {
	held *held
	err  error
}

// queueLock locks an item for a change and draws the change's place in the order of writes, in that order.
func queueLock(batch *pgx.Batch, name string) *locking {
	l := &locking{}
	var q *pgx.QueuedQuery
	if id, err := uuid.Parse(name); err == nil {
		q = batch.Queue(lockItemByID, id)
	} else if project, number, ok := splitKey(name); ok {
		q = batch.Queue(lockItem, project, number, item.Key(project, number))
	} else {
		l.err = noItem(name)
		return l
	}
	q.QueryRow(func(row pgx.Row) error {
		if l.held, l.err = scanHeld(row); errors.Is(l.err, pgx.ErrNoRows) {
			l.err = noItem(name)
		}
		return nil
	})
	return l
}

// item answers the item, its row locked. One in the trash is refused.
func (l *locking) item() (*held, error) {
	if l.err != nil {
		return nil, l.err
	}
	return l.held, l.held.Frozen()
}

// lock is queueLock in a round trip of its own.
func lock(ctx context.Context, tx pgx.Tx, name string) (*held, error) {
	batch := &pgx.Batch{}
	l := queueLock(batch, name)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	return l.item()
}

func scanHeld(row pgx.Row) (*held, error) {
	h := &held{}
	var body string
	var sequence int64
	i, err := scan(row, &body, &h.Unit, &h.Lead, &h.Archived, &h.ParentAssignee, &sequence)
	if err != nil {
		return nil, err
	}
	i.Body = body
	before := *i
	h.Item, h.Before, h.Position = i, &before, position(sequence)
	return h, nil
}
