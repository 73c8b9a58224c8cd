package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
)

const (
	// listApprovals is called by List.
	listApprovals = `
select ` + approvalColumns + ` from approvals
where ($1 = '' or state = $1) and ($2 = '' or seat = $2)
  and ($3::timestamptz is null or (created_at, approval_id) < ($3, $4))
order by created_at desc, approval_id desc limit $5`

	// selectLapsed and selectOrphaned are called by Due.
	selectLapsed   = `select approval_id from approvals where state = 'waiting' and expires_at <= $1 order by expires_at limit $2`
	selectOrphaned = `select approval_id from approvals where call_status = 'running' and run_until <= $1 order by run_until limit $2`

	// deleteApprovals is called by Delete.
	deleteApprovals = `
delete from approvals where approval_id in (
    select approval_id from approvals
    where created_at < $1 and state <> 'waiting' and call_status <> 'running' order by created_at limit $2)`
)

// List answers at most limit approvals, newest first, and whether there are more; empty filters narrow nothing. A page of long
// ones is shorter, but never empty.
func (s *Approvals) List(ctx context.Context, state, seat string, after After, limit int) (page []*approval.Approval, more bool, err error) {
	rows, err := s.pool.Query(ctx, listApprovals, state, seat, nullable(after.StartedAt), after.ID, limit+1)
	if err != nil {
		return nil, false, fmt.Errorf("list approvals: %w", err)
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		if len(page) == limit || size > maxPageBytes {
			return page, true, nil
		}
		a, err := scanApproval(rows)
		if err != nil {
			return nil, false, fmt.Errorf("list approvals: %w", err)
		}
		size += len(a.Shown) + len(a.Call.Result)
		page = append(page, a)
	}
	if err := rows.Err(); err != nil {
		return nil, false, fmt.Errorf("list approvals: %w", err)
	}
	return page, false, nil
}

// Due answers questions that have lapsed, and approved calls whose runner has been silent, at most limit of each.
func (s *Approvals) Due(ctx context.Context, now time.Time, limit int) (lapsed, orphaned []uuid.UUID, err error) {
	batch := &pgx.Batch{}
	for query, found := range map[string]*[]uuid.UUID{selectLapsed: &lapsed, selectOrphaned: &orphaned} {
		batch.Queue(query, now, limit).Query(func(rows pgx.Rows) (err error) {
			*found, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
	}
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, fmt.Errorf("look for approvals that are due: %w", err)
	}
	return lapsed, orphaned, nil
}

// Delete forgets approvals that are over and were asked before a moment, at most limit of them, and answers how many it forgot.
func (s *Approvals) Delete(ctx context.Context, before time.Time, limit int) (int64, error) {
	tag, err := s.pool.Exec(ctx, deleteApprovals, before, limit)
	if err != nil {
		return 0, fmt.Errorf("delete old approvals: %w", err)
	}
	return tag.RowsAffected(), nil
}
