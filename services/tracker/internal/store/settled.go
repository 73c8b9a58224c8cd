package store

import (
	"context"
	"slices"
	"time"
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
// takes longer, it answers what has been settled before. Transactions that draw no place, such as other services' and other databases',
// hold nobody up.
func (s *Store) Settled(ctx context.Context) (int64, error) {
	var newest int64
	// Before the next statement looks: whatever drew a place up to here is seen there, or is over.
	if err := s.pool.QueryRow(ctx, `select last_value - (not is_called)::int from positions`).Scan(&newest); err != nil {
		return 0, err
	}
	awaited, err := s.underWay(ctx)
	if err != nil {
		return 0, err
	}
	until, pause := time.NewTimer(settlePatience), time.NewTicker(settlePause)
	defer until.Stop()
	defer pause.Stop()
	for len(awaited) > 0 {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-until.C:
			var settled int64
			err := s.pool.QueryRow(ctx, `select settled from told_through`).Scan(&settled)
			return settled, err
		case <-pause.C:
		}
		running, err := s.underWay(ctx)
		if err != nil {
			return 0, err
		}
		awaited = slices.DeleteFunc(awaited, func(transaction string) bool { return !slices.Contains(running, transaction) })
	}
	return newest, nil
}

// underWay names the transactions that have drawn a place and are not over. Postgres lets go of the lock that drawing takes when the
// transaction has ended and everybody sees what it wrote.
func (s *Store) underWay(ctx context.Context) (transactions []string, err error) {
	err = s.pool.QueryRow(ctx, `select coalesce(array_agg(virtualtransaction), '{}') from pg_locks
		where locktype = 'relation' and relation = 'positions'::regclass and mode = 'RowExclusiveLock'
			and database = (select oid from pg_database where datname = current_database())`).Scan(&transactions)
	return transactions, err
}
