package engine

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

const (
	restoreTimeout = 10 * time.Second
	restoreBatch   = 500
)

// restore gives the registry the calls that a resumed turn's journal proves, beside the turn: a crash may have taken audit
// rows with it that were not written yet. It is best effort; the journal stays the proof.
func (e *Engine) restore(ctx context.Context, t *turn) {
	var records []*toolregistryv1.CallRecord
	for _, c := range t.journal.Calls() {
		tool, known := t.frozen.tool(c.Tool)
		if c.State.Ended() && !c.StartAt.IsZero() && known && !tool.EngineLocal {
			records = append(records, record(t.info, c))
		}
	}
	if len(records) == 0 {
		return
	}
	e.workers.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
		defer cancel()
		for len(records) > 0 {
			n := min(len(records), restoreBatch)
			if _, err := e.Tools.RestoreCalls(ctx, &toolregistryv1.RestoreCallsRequest{Calls: records[:n]}); err != nil {
				t.log.Warn("cannot restore the audit", "error", err)
				return
			}
			records = records[n:]
		}
	})
}

func record(info journal.Turn, c journal.Call) *toolregistryv1.CallRecord {
	status := "ok"
	switch {
	case c.State == journal.Failed && c.Result.Class != "":
		status = "refused"
	case c.State != journal.Done:
		status = "failed"
	}
	return &toolregistryv1.CallRecord{
		CallId: c.ID, Principal: "seat:" + info.Seat, Seat: info.Seat, TurnId: info.ID, Tool: c.Tool, Source: c.Source,
		ArgumentsJson: clean(c.Args), Result: clean(c.Result.Text), Status: status, RefusalClass: string(c.Result.Class), Outcome: c.Result.Outcome,
		OperationId: c.OperationID, StartTime: timestamppb.New(c.StartAt), DurationMicros: c.EndAt.Sub(c.StartAt).Microseconds(),
	}
}
