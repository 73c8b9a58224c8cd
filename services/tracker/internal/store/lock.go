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

// lock locks an item for a change and draws the change's place in the order of writes, in that order. An item in the trash is
// refused: what may be done to one uses [lockAny].
func lock(ctx context.Context, tx pgx.Tx, name string) (*held, error) {
	h, err := lockAny(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	return h, h.Frozen()
}

// lockAny is lock for an item that may be in the trash.
func lockAny(ctx context.Context, tx pgx.Tx, name string) (*held, error) {
	var row pgx.Row
	if id, err := uuid.Parse(name); err == nil {
		row = tx.QueryRow(ctx, lockItemByID, id)
	} else if project, number, ok := splitKey(name); ok {
		row = tx.QueryRow(ctx, lockItem, project, number, item.Key(project, number))
	} else {
		return nil, noItem(name)
	}
	h := &held{}
	var body string
	var sequence int64
	i, err := scan(row, &body, &h.Unit, &h.Lead, &h.Archived, &h.ParentAssignee, &sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noItem(name)
	}
	if err != nil {
		return nil, err
	}
	i.Body = body
	before := *i
	h.Item, h.Before, h.Position = i, &before, position(sequence)
	return h, nil
}
