package ops

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// sweepLimit keeps one statement, and what it locks, short.
	sweepLimit = 5000

	sweepOperations = `
delete from operations where operation_id in (
    select operation_id from operations where created_at < now() - $1::interval order by created_at limit $2)`
)

// Keep is how long an operation may be repeated, by the suite's contract.
const Keep = 30 * 24 * time.Hour

// sweepEvery is the time between two sweeps of [Retain].
const sweepEvery = time.Hour

// Retain sweeps the ledger of operations older than [Keep], at once and then every hour, until ctx ends; it answers nil then. A
// sweep that fails is said in the log and tried again with the next.
func Retain(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if _, err := Sweep(ctx, pool, Keep); err != nil && ctx.Err() == nil {
			log.Warn("old operations cannot be forgotten, trying again later", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Sweep deletes operations older than keep and answers how many. After that an operation id is unknown again, so keep
// is the time in which callers may repeat themselves: 30 days by the suite's contract. It may run beside everything
// else, from several replicas at once.
func Sweep(ctx context.Context, pool *pgxpool.Pool, keep time.Duration) (int64, error) {
	if keep <= 0 {
		return 0, fault.New(fault.Invalid, "The ledger must be kept for some time; %s is none.", keep)
	}
	var total int64
	for {
		tag, err := pool.Exec(ctx, sweepOperations, keep, sweepLimit)
		if err != nil {
			return total, fmt.Errorf("sweep the ledger: %w", err)
		}
		total += tag.RowsAffected()
		if tag.RowsAffected() < sweepLimit {
			return total, nil
		}
	}
}
