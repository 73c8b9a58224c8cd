package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/outbox"
)

// recordMany is record for a gesture over many items, in two statements however many there are. The first event is the gesture's own;
// the others were swept along and concern nobody.
func (s *Store) recordMany(ctx context.Context, batch *pgx.Batch, events []Event) error {
	entries := make([]Entry, 0, len(events))
	messages := make([]outbox.Message, 0, len(events))
	for n, e := range events {
		if n == 0 {
			e.resolve()
		}
		entries = append(entries, e.Entry())
		message, err := s.encode(e)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		messages = append(messages, message)
	}
	queueEntries(batch, entries)
	return outbox.QueueAll(ctx, batch, messages)
}

// queueEntries writes rows of history that no event goes with.
func queueEntries(batch *pgx.Batch, entries []Entry) {
	if len(entries) == 0 {
		return
	}
	n := len(entries)
	positions, items, projects, kinds := make([]int64, n), make([]*uuid.UUID, n), make([]string, n), make([]string, n)
	actors, actorKinds, seats, turns := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	fields, versions, handed, notified, excerpts := make([]any, n), make([]int32, n), make([]int32, n), make([]bool, n), make([]string, n)
	for at, e := range entries {
		c := e.Change
		positions[at], items[at], projects[at], kinds[at] = e.Position.Sequence, e.ItemID, e.Project, c.Kind
		actors[at], actorKinds[at], seats[at], turns[at] = c.By.Name, c.By.Kind, c.By.Seat, c.By.Turn
		fields[at], versions[at], handed[at], notified[at], excerpts[at] = c.Fields, c.Version, c.Reassignments, e.Notified, e.Excerpt
	}
	batch.Queue(`insert into history (position, item_id, project, kind, actor, actor_kind, actor_seat, fields, turn_id, version, reassignments, notified, excerpt, created_at)
		select e.*, $14 from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::jsonb[], $9::text[], $10::int[],
			$11::int[], $12::bool[], $13::text[]) e`,
		positions, items, projects, kinds, actors, actorKinds, seats, fields, turns, versions, handed, notified, excerpts, entries[0].Change.At)
}
