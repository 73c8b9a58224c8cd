package store

import (
	"context"

	"github.com/bullpenhq/bullpen/libs/ops"
)

// Newest answers the newest place in the order of writes, or one from before that is no older than the asked one.
func (s *Store) Newest(ctx context.Context, asked int64) (ops.Position, error) {
	if known := s.newest.Load(); asked <= known {
		return position(known), nil
	}
	var sequence int64
	err := s.pool.QueryRow(ctx, `select last_value - (not is_called)::int from positions`).Scan(&sequence)
	if err != nil {
		return ops.Position{}, err
	}
	// A smaller value written over a larger one costs a query, no more.
	s.newest.Store(sequence)
	return position(sequence), nil
}
