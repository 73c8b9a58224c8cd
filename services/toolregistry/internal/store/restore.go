package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// insertMissing is called by RestoreCalls, a row at a time: restoring is rare.
const insertMissing = `
insert into calls (audit_id, call_id, principal, seat, turn_id, tool, source, arguments, result, status, refusal_class, outcome,
                   operation_id, decision, rule, approval_id, started_at, duration_micros, restored)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, true
where not exists (select from calls where turn_id = $5 and call_id = $2)
on conflict (audit_id) do nothing`

// RestoreCalls writes those of a turn's calls that have no row, with their events, and answers how many those were. Rows that
// exist stay as they are.
func (s *Store) RestoreCalls(ctx context.Context, records []*call.Record) (restored int, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var missing []*call.Record
		for _, r := range records {
			tag, err := tx.Exec(ctx, insertMissing, r.ID, r.CallID, r.Principal, r.Seat, r.TurnID, r.Tool, r.Source, r.Arguments, r.Result,
				r.Status, r.RefusalClass, r.Outcome, r.OperationID, r.Decision, r.Rule, r.ApprovalID,
				r.StartedAt, r.Duration.Microseconds())
			if err != nil {
				return err
			}
			if tag.RowsAffected() > 0 {
				missing = append(missing, r)
			}
		}
		restored = len(missing)
		facts, err := s.drawFacts(ctx, tx, restored)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		if err := s.queueEvents(ctx, batch, missing, facts); err != nil {
			return err
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("restore calls: %w", err)
	}
	s.wake()
	return restored, nil
}
