package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// snapshot is reads that all see one moment.
type snapshot struct{ conn *pgxpool.Conn }

// snapshot begins one with its first reads, in one round trip. It must be ended.
func (s *Store) snapshot(ctx context.Context, reads *pgx.Batch) (snapshot, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return snapshot{}, err
	}
	all := &pgx.Batch{}
	all.Queue("begin isolation level repeatable read read only")
	all.QueuedQueries = append(all.QueuedQueries, reads.QueuedQueries...)
	return snapshot{conn}, conn.SendBatch(ctx, all).Close()
}

// last makes the last reads and ends the snapshot, in one round trip.
func (s snapshot) last(ctx context.Context, reads *pgx.Batch) error {
	reads.Queue("commit")
	return s.conn.SendBatch(ctx, reads).Close()
}

// end gives the connection back. One whose transaction did not end is closed by the pool, which ends it.
func (s snapshot) end() {
	if s.conn != nil {
		s.conn.Release()
	}
}

// atOnce makes reads that all see one moment, in one round trip.
func (s *Store) atOnce(ctx context.Context, reads *pgx.Batch) error {
	reads.Queue("commit")
	moment, err := s.snapshot(ctx, reads)
	moment.end()
	return err
}
