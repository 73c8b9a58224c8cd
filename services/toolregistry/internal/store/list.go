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
	Source, Status                   string
	// Since is the first moment, Until the first one that is too late.
	Since, Until time.Time
	// Text stands somewhere in the arguments or the result, whatever the case.
	Text string
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
// empty. It does not look at the filter's text; [Store.SearchCalls] does.
func (s *Store) ListCalls(ctx context.Context, f Filter, after After, limit int) (page []*call.Record, more bool, err error) {
	where, args := conditions(f, after)
	args = append(args, limit+1)
	return s.readCalls(ctx, fmt.Sprintf("%s%s%s limit $%d", selectCalls, where, newestFirst, len(args)), args, limit)
}

const newestFirst = " order by started_at desc, audit_id desc"

// readCalls reads a page of a query that answers one row more than the page may have, when there is one.
func (s *Store) readCalls(ctx context.Context, query string, args []any, limit int) (page []*call.Record, more bool, err error) {
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

// Behind answers the place behind a call.
func Behind(r *call.Record) After { return After{StartedAt: r.StartedAt, ID: r.ID} }

// conditions answers all of a filter but its text.
func conditions(f Filter, after After) (where string, args []any) {
	var all []string
	add := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		all = append(all, condition)
	}
	for _, equal := range []struct{ condition, value string }{
		// The second half of a condition lets Postgres use an index that holds only rows with one.
		{"seat = ? and seat <> ''", f.Seat},
		{"tool = ?", f.Tool},
		{"turn_id = ? and turn_id <> ''", f.TurnID},
		{"refusal_class = ? and refusal_class <> ''", f.RefusalClass},
		{"source = ?", f.Source},
		{"status = ?", f.Status},
	} {
		if equal.value != "" {
			add(equal.condition, equal.value)
		}
	}
	if !f.Since.IsZero() {
		add("started_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		add("started_at < ?", f.Until)
	}
	if after != (After{}) {
		add("(started_at, audit_id) < (?, ?)", after.StartedAt, after.ID)
	}
	if len(all) > 0 {
		where = " where " + strings.Join(all, " and ")
	}
	return where, args
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
