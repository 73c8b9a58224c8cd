package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// Filter narrows a list of calls; empty fields narrow nothing.
type Filter struct {
	Seat, Tool, TurnID, RefusalClass string
}

// After is the place in a list behind which a page begins; the zero value is the beginning.
type After struct {
	StartedAt time.Time `json:"t"`
	ID        uuid.UUID `json:"i"`
}

const selectCalls = `
select audit_id, call_id, principal, seat, turn_id, tool, source, arguments, result, status, refusal_class, outcome, operation_id,
       decision, rule, approval_id, started_at, duration_micros, restored
from calls`

// maxPageBytes ends a page early: results are whole, and a page of long ones must still fit an answer.
const maxPageBytes = 8 << 20

// ListCalls answers at most limit calls, newest first, and whether there are more. A page of long calls is shorter, but never
// empty.
func (s *Store) ListCalls(ctx context.Context, f Filter, after After, limit int) (page []*call.Record, more bool, err error) {
	var conditions []string
	var args []any
	add := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		conditions = append(conditions, condition)
	}
	// The second half of a condition lets Postgres use an index that holds only rows with one.
	if f.Seat != "" {
		add("seat = ? and seat <> ''", f.Seat)
	}
	if f.Tool != "" {
		add("tool = ?", f.Tool)
	}
	if f.TurnID != "" {
		add("turn_id = ? and turn_id <> ''", f.TurnID)
	}
	if f.RefusalClass != "" {
		add("refusal_class = ? and refusal_class <> ''", f.RefusalClass)
	}
	if after != (After{}) {
		add("(started_at, audit_id) < (?, ?)", after.StartedAt, after.ID)
	}
	query := selectCalls
	if len(conditions) > 0 {
		query += " where " + strings.Join(conditions, " and ")
	}
	args = append(args, limit+1)
	query += fmt.Sprintf(" order by started_at desc, audit_id desc limit $%d", len(args))
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, false, fmt.Errorf("list calls: %w", err)
	}
	defer rows.Close()
	size := int64(0)
	for rows.Next() {
		if len(page) == limit || size > maxPageBytes {
			return page, true, nil
		}
		r, err := scanCall(rows)
		if err != nil {
			return nil, false, fmt.Errorf("list calls: %w", err)
		}
		size += r.Size()
		page = append(page, r)
	}
	if err := rows.Err(); err != nil {
		return nil, false, fmt.Errorf("list calls: %w", err)
	}
	return page, false, nil
}

func scanCall(row pgx.Row) (*call.Record, error) {
	var r call.Record
	var micros int64
	err := row.Scan(&r.ID, &r.CallID, &r.Principal, &r.Seat, &r.TurnID, &r.Tool, &r.Source, &r.Arguments, &r.Result, &r.Status,
		&r.RefusalClass, &r.Outcome, &r.OperationID, &r.Decision, &r.Rule, &r.ApprovalID, &r.StartedAt, &micros, &r.Restored)
	r.Duration = time.Duration(micros) * time.Microsecond
	return &r, err
}

// deleteCalls is called by DeleteCalls; a bounded number of rows keeps the transaction short.
const deleteCalls = `
delete from calls where audit_id in (select audit_id from calls where started_at < $1 order by started_at limit $2)`

// DeleteCalls forgets calls that started before a moment, at most limit of them, and answers how many it forgot.
func (s *Store) DeleteCalls(ctx context.Context, before time.Time, limit int) (int64, error) {
	tag, err := s.pool.Exec(ctx, deleteCalls, before, limit)
	if err != nil {
		return 0, fmt.Errorf("delete old calls: %w", err)
	}
	return tag.RowsAffected(), nil
}
