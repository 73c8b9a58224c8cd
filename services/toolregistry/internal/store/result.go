package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

const callOfSeat = selectCalls + ` where audit_id = $1 and seat = $2 and seat <> ''`

// CallOfSeat answers a call that a seat made, and false when it made none of that id.
func (s *Store) CallOfSeat(ctx context.Context, id uuid.UUID, seat string) (*call.Record, bool, error) {
	r, err := scanCall(s.pool.QueryRow(ctx, callOfSeat, id, seat))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read a call: %w", err)
	}
	return r, true, nil
}
