package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

const insertHistory = `insert into history (position, item_id, project, kind, actor, actor_kind, actor_seat, fields, comment_id, turn_id, version, reassignments,
		created_at, excerpt, notified)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

// record queues what every write leaves behind: the row of history and the event, with whom it concerns.
func (s *Store) record(ctx context.Context, batch *pgx.Batch, e Event) error {
	c := e.Change
	e.resolve()
	entry := e.Entry()
	batch.Queue(insertHistory, e.Position.Sequence, entry.ItemID, entry.Project, c.Kind, c.By.Name, c.By.Kind, c.By.Seat, c.Fields, entry.CommentID,
		c.By.Turn, c.Version, c.Reassignments, c.At, entry.Excerpt, entry.Notified)
	message, err := s.encode(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	_, err = outbox.Queue(ctx, batch, message)
	return err
}

// resolve says whom the event concerns.
func (e *Event) resolve() {
	f := e.Facts
	f.Before, f.After, f.Change, f.Mentions = e.Before, e.Item, e.Change, e.Mentions
	f.ParentAssignee, f.RoutingLead, f.ProjectLead = e.ParentAssignee, e.RoutingLead, e.Lead
	e.Concerns = wake.Resolve(f)
}

// Entry answers the row of history that the event leaves.
func (e Event) Entry() Entry {
	entry := Entry{Position: e.Position, Project: e.Project, Change: e.Change}
	var muted []string
	if e.Item != nil {
		entry.ItemID, muted = &e.Item.ID, e.Item.Muted
	}
	entry.Notified = wake.Notified(e.Concerns, e.Change.By, muted)
	switch {
	case e.Comment != nil:
		entry.CommentID, entry.Excerpt = &e.Comment.ID, item.Excerpt(e.Comment.Body)
	case e.Change.Kind == "purged": // nothing else says why
		entry.Excerpt = item.Excerpt(e.Change.Reason)
	}
	return entry
}

// bodiesKept is how many past bodies of an item are kept.
const bodiesKept = 100

// queueBody writes a body that changed, and keeps the one that it replaces.
func queueBody(batch *pgx.Batch, h *held) {
	was := h.Before
	if h.Body == was.Body {
		return
	}
	author, at := was.BodyAuthor, was.CreatedAt
	if was.BodyAt != nil {
		at = *was.BodyAt
	}
	batch.Queue(`update items set body = $2 where id = $1`, h.ID, h.Body)
	batch.Queue(`insert into item_bodies (item_id, version, body, author, created_at) values ($1, $2, $3, $4, $5)`,
		h.ID, was.BodyVersion, was.Body, author, at)
	batch.Queue(`delete from item_bodies where item_id = $1 and version <= (
			select version from item_bodies where item_id = $1 order by version desc offset $2 limit 1)`, h.ID, bodiesKept)
}
