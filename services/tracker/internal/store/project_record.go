package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

// recordProject queues what a change of a project alone leaves behind: the row of history, which names no item, and the event. The
// project is e.Project, empty for a change of the whole workspace; e.Item and e.Comment must be nil. It does not move the project's
// last change, which is about its work.
func (s *Store) recordProject(ctx context.Context, batch *pgx.Batch, e Event) error {
	c := e.Change
	batch.Queue(`insert into history (position, project, kind, actor, actor_kind, actor_seat, fields, turn_id, version, reassignments, created_at, notified)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11)`,
		e.Position.Sequence, e.Project, c.Kind, c.By.Name, c.By.Kind, c.By.Seat, c.Fields, c.By.Turn, c.Version, c.At,
		wake.Notified(e.Concerns, c.By, nil))
	message, err := s.encode(e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	_, err = outbox.Queue(ctx, batch, message)
	return err
}

// drawPosition draws the next place in the order of writes. Draw it after the locks of what is written.
func drawPosition(ctx context.Context, q querier) (int64, error) {
	var sequence int64
	err := q.QueryRow(ctx, `select nextval('positions')`).Scan(&sequence)
	return sequence, err
}
