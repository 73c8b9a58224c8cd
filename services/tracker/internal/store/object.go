package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// objectGrace is how long an object that was begun may wait to be used, which is longer than any upload may take.
const objectGrace = 2 * time.Hour

// queueDrop says that an object is in no file's use any more.
func queueDrop(batch *pgx.Batch, id *uuid.UUID) {
	if id != nil {
		batch.Queue(`update objects set live = false, dropped_at = now() where id = $1`, id)
	}
}

// DropObject says that an object that was begun will not be used.
func (s *Store) DropObject(ctx context.Context, id uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `update objects set dropped_at = now() where id = $1 and not live`, id)
	return err
}

// DeadObjects answers objects to delete: those that were dropped, and those that were begun so long ago that whoever began them has
// gone.
func (s *Store) DeadObjects(ctx context.Context, limit int) ([]uuid.UUID, error) {
	rows, err := s.pool.Query(ctx, `select id from objects where not live and (dropped_at is not null or created_at < now() - $1::interval)
		order by created_at limit $2`, objectGrace, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// ForgetObject forgets an object that was deleted from its store.
func (s *Store) ForgetObject(ctx context.Context, id uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `delete from objects where id = $1 and not live`, id)
	return err
}
