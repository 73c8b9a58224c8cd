package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
)

// EncodeApprovalFunc makes the event that an approval is owed where it stands: a question that waits, or one that is over.
type EncodeApprovalFunc func(a *approval.Approval, sequence int64, at time.Time) (outbox.Message, error)

// Approvals keeps questions to people. Safe for concurrent use.
type Approvals struct {
	pool   *pgxpool.Pool
	encode EncodeApprovalFunc
	wake   func()
	now    func() time.Time
}

// NewApprovals makes a store on a migrated pool. wake is told after each commit that left events behind.
func NewApprovals(pool *pgxpool.Pool, encode EncodeApprovalFunc, wake func(), now func() time.Time) *Approvals {
	return &Approvals{pool: pool, encode: encode, wake: wake, now: now}
}

const (
	approvalColumns = `approval_id, state, seat, display_name, turn_id, work_key, conversation_key, revision_id, tool, source, digest,
       arguments, arguments_shown, call_id, operation_id, repeatable, rule, reason, created_at, expires_at, decided_by, decided_at, note,
       call_status, result, refusal_class, outcome, reached, audit_id, runner, run_until`

	// insertApproval is called by Ask: a call that has asked already does not ask again.
	insertApproval = `
insert into approvals (ask_key, ` + approvalColumns + `)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27,
        $28, $29, $30, $31, $32)
on conflict (seat, ask_key) do nothing`

	selectAsked    = `select ` + approvalColumns + ` from approvals where seat = $1 and ask_key = $2`
	selectApproval = `select ` + approvalColumns + ` from approvals where approval_id = $1`

	// updateApproval is called by Change, under the row's lock. What was asked never changes.
	updateApproval = `
update approvals set state = $2, decided_by = $3, decided_at = $4, note = $5, call_status = $6, result = $7, refusal_class = $8,
    outcome = $9, reached = $10, audit_id = $11, runner = $12, run_until = $13
where approval_id = $1`

	// drawFact is called by announce.
	drawFact = `select nextval('call_facts')`
)

// Ask keeps a question with its event. When the same call has asked before, it answers that question as it stands, and asked is
// false. Faults: conflict, when the operation was another call's.
func (s *Approvals) Ask(ctx context.Context, a *approval.Approval) (kept *approval.Approval, asked bool, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, insertApproval, append([]any{a.AskKey()}, columnsOfApproval(a)...)...)
		if err != nil {
			return err
		}
		if asked = tag.RowsAffected() > 0; asked {
			kept = a
			return s.announce(ctx, tx, a)
		}
		kept, err = scanApproval(tx.QueryRow(ctx, selectAsked, a.Asker.Seat, a.AskKey()))
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("keep the question: %w", err)
	}
	if asked {
		s.wake()
		return kept, true, nil
	}
	if kept.Tool != a.Tool || kept.Arguments != a.Arguments {
		return nil, false, fault.New(fault.Conflict, "The operation %q was used for another call, which waits for a person as approval %s.",
			a.OperationID, kept.ID).WithReason("OPERATION_REUSED").WithField("operation_id")
	}
	return kept, false, nil
}

// Get answers an approval. Faults: not_found.
func (s *Approvals) Get(ctx context.Context, id uuid.UUID) (*approval.Approval, error) {
	a, err := scanApproval(s.pool.QueryRow(ctx, selectApproval, id))
	if err != nil {
		return nil, noApproval(err, id)
	}
	return a, nil
}

// Change moves an approval by one of its verbs: nobody else moves it meanwhile, and a refusal of the verb changes nothing. An
// approval that is over by it leaves its event in the same transaction. Faults: not_found, and the verb's.
func (s *Approvals) Change(ctx context.Context, id uuid.UUID, verb func(*approval.Approval) error) (a *approval.Approval, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if a, err = scanApproval(tx.QueryRow(ctx, selectApproval+" for update", id)); err != nil {
			return noApproval(err, id)
		}
		if err := verb(a); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, updateApproval, a.ID, a.State, a.DecidedBy, nullable(a.DecidedAt), a.Note, a.Call.Status, a.Call.Result,
			a.Call.RefusalClass, a.Call.Outcome, present(a.Call.Reached), a.Call.AuditID, a.Runner, nullable(a.RunUntil))
		if err != nil {
			return fmt.Errorf("keep the approval: %w", err)
		}
		if !a.Over() {
			return nil
		}
		return s.announce(ctx, tx, a)
	})
	if err != nil {
		return nil, err
	}
	if a.Over() {
		s.wake()
	}
	return a, nil
}

func (s *Approvals) announce(ctx context.Context, tx pgx.Tx, a *approval.Approval) error {
	var sequence int64
	if err := tx.QueryRow(ctx, drawFact).Scan(&sequence); err != nil {
		return fmt.Errorf("draw a number for the event: %w", err)
	}
	message, err := s.encode(a, sequence, s.now())
	if err != nil {
		return err
	}
	if _, err := outbox.Append(ctx, tx, message); err != nil {
		return fmt.Errorf("leave the event: %w", err)
	}
	return nil
}

func noApproval(err error, id uuid.UUID) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.NotFound, "There is no approval %s.", id).WithField("approval_id")
	}
	return fmt.Errorf("read the approval: %w", err)
}

func columnsOfApproval(a *approval.Approval) []any {
	return []any{
		a.ID, a.State, a.Asker.Seat, a.Asker.DisplayName, a.Asker.TurnID, a.Asker.WorkKey, a.Asker.ConversationKey, a.Asker.RevisionID,
		a.Tool, a.Source, a.Digest, a.Arguments, a.Shown, a.CallID, a.OperationID, a.Repeatable, a.Rule, a.Reason, a.CreatedAt, a.ExpiresAt,
		a.DecidedBy, nullable(a.DecidedAt), a.Note, a.Call.Status, a.Call.Result, a.Call.RefusalClass, a.Call.Outcome, present(a.Call.Reached), a.Call.AuditID,
		a.Runner, nullable(a.RunUntil),
	}
}

func scanApproval(row pgx.Row) (*approval.Approval, error) {
	var a approval.Approval
	var decidedAt, runUntil *time.Time
	err := row.Scan(&a.ID, &a.State, &a.Asker.Seat, &a.Asker.DisplayName, &a.Asker.TurnID, &a.Asker.WorkKey, &a.Asker.ConversationKey,
		&a.Asker.RevisionID, &a.Tool, &a.Source, &a.Digest, &a.Arguments, &a.Shown, &a.CallID, &a.OperationID, &a.Repeatable, &a.Rule, &a.Reason,
		&a.CreatedAt, &a.ExpiresAt, &a.DecidedBy, &decidedAt, &a.Note, &a.Call.Status, &a.Call.Result, &a.Call.RefusalClass,
		&a.Call.Outcome, &a.Call.Reached, &a.Call.AuditID, &a.Runner, &runUntil)
	if len(a.Call.Reached) == 0 {
		a.Call.Reached = nil
	}
	if decidedAt != nil {
		a.DecidedAt = *decidedAt
	}
	if runUntil != nil {
		a.RunUntil = *runUntil
	}
	return &a, err
}

// present writes an empty list as one.
func present(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
