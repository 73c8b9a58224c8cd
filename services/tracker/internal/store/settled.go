package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// settlePatience bounds how long a reader waits for writes that are under way, settlePause is between two looks.
	settlePatience = 500 * time.Millisecond
	settlePause    = 5 * time.Millisecond
)

// Settled answers a place in the order of writes up to which nothing is still to come: whoever reads on from there skips nothing.
//
// A place is drawn before its write commits, so a later place may be seen before an earlier one. Whatever drew a place up to the newest
// runs at this moment, or is over. So it waits until those transactions are over, which takes as long as a write; where one of them
// takes longer, it answers what has been settled before.
func (s *Store) Settled(ctx context.Context) (int64, error) {
	var newest, oldest, next int64
	look := &pgx.Batch{}
	look.Queue(`select last_value - (not is_called)::int from positions`).QueryRow(func(row pgx.Row) error { return row.Scan(&newest) })
	look.Queue(selectRunning).QueryRow(func(row pgx.Row) error { return row.Scan(&oldest, &next) })
	if err := s.pool.SendBatch(ctx, look).Close(); err != nil {
		return 0, err
	}
	barrier := next
	until, pause := time.NewTimer(settlePatience), time.NewTicker(settlePause)
	defer until.Stop()
	defer pause.Stop()
	for oldest < barrier {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-until.C:
			var settled int64
			err := s.pool.QueryRow(ctx, `select settled from told_through`).Scan(&settled)
			return settled, err
		case <-pause.C:
		}
		if err := s.pool.QueryRow(ctx, selectRunning).Scan(&oldest, &next); err != nil {
			return 0, err
		}
	}
	return newest, nil
}

// selectRunning answers the oldest transaction that runs and writes, and the next one.
const selectRunning = `select pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint from pg_current_snapshot() s`
