package ops

import (
	"context"
	"fmt"
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
