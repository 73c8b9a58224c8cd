package store

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// An edge of waiting knows of both of its items whether they are open and not in the trash. Whoever changes that of an item holds its row,
// and writes this side of its edges; whoever writes an edge holds both rows. So each side has one writer at a time, and reads nothing.

// ends collects the items of a write whose edges have to be told.
type ends struct{ opened, closed []uuid.UUID }

// move notes an item as it was and as it is now; nil when it is gone.
func (e *ends) move(before, after *item.Item) {
	was, is := inTheWay(before), inTheWay(after)
	switch {
	case is && !was:
		e.opened = append(e.opened, after.ID)
	case was && !is:
		e.closed = append(e.closed, before.ID)
	}
}

// inTheWay reports whether an item blocks what waits for it.
func inTheWay(i *item.Item) bool { return i != nil && i.Removal == nil && i.Open() }

// Edges are locked in one order, as one of them may be written from both sides at once.
const updateEnds = `with edge as materialized (
		select from_id, to_id from relations where kind = 'waiting_on' and cleared_at is null and (from_id = any($1) or to_id = any($1))
		order by from_id, to_id for no key update)
	update relations r set from_open = case when r.from_id = any($1) then $2 else r.from_open end,
		to_open = case when r.to_id = any($1) then $2 else r.to_open end
	from edge where r.from_id = edge.from_id and r.kind = 'waiting_on' and r.to_id = edge.to_id`

// queue tells the edges. It is queued after the items and after new edges.
func (e *ends) queue(batch *pgx.Batch) {
	if len(e.closed) > 0 {
		batch.Queue(updateEnds, e.closed, false)
	}
	if len(e.opened) > 0 {
		batch.Queue(updateEnds, e.opened, true)
	}
}

// queueEnds is ends of one item.
func queueEnds(batch *pgx.Batch, before, after *item.Item) {
	var e ends
	e.move(before, after)
	e.queue(batch)
}
