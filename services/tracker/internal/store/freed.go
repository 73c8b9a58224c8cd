package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

const selectWaiters = `select distinct w.id from relations r join items w on w.id = r.from_id
	where r.to_id = any($1) and r.kind = 'waiting_on' and r.cleared_at is null and w.status_group < 2 and w.removed_at is null and w.id <> all($1)`

// Two writes may finish the last two things that an item waits for. One of them has to see the other, or nobody would say that nothing is
// left: so whoever asks holds the waiting item until its own write stands.
const holdWaiters = `select pg_advisory_xact_lock(number) from (
	select hashtextextended(current_schema() || '/waiting/' || id, 0) as number from unnest($1::uuid[]) id order by 1) numbers`

const selectFreed = `select w.id, w.project, w.number, w.title, w.assignee from items w
	where w.id = any($1) and not exists (select from relations r join items t on t.id = r.to_id
		where r.from_id = w.id and r.kind = 'waiting_on' and r.cleared_at is null and t.status_group < 2 and t.removed_at is null and t.id <> all($2))
	order by w.id`

// freed answers the open items that waited for some others, which this write finishes or takes out of the way, and wait for nothing any
// more. Call it after the rows of those others are locked and before their tallies.
func freed(ctx context.Context, tx pgx.Tx, ids ...uuid.UUID) ([]wake.Neighbour, error) {
	rows, err := tx.Query(ctx, selectWaiters, ids)
	if err != nil {
		return nil, err
	}
	waiters, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(waiters) == 0 {
		return nil, err
	}
	var free []wake.Neighbour
	batch := &pgx.Batch{}
	batch.Queue(holdWaiters, waiters)
	batch.Queue(selectFreed, waiters, ids).Query(func(rows pgx.Rows) error {
		free, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (wake.Neighbour, error) {
			var n wake.Neighbour
			var project string
			var number int32
			err := row.Scan(&n.ID, &project, &number, &n.Title, &n.Assignee)
			n.Key = item.Key(project, number)
			return n, err
		})
		return err
	})
	return free, tx.SendBatch(ctx, batch).Close()
}
