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
	// restoreReach is how far back an outage is taken to reach: longer than the registry keeps a row in memory.
	restoreReach = 2 * time.Minute
	// restorePause is between the sign of an outage and a look, and between two looks while the registry is away.
	restorePause = 2 * time.Second
	// restoreAge is how long ago a call must have ended: the registry may still hold the row of a younger one.
	restoreAge = time.Second
)

// lostRegistry says that the tool registry may have died, and audit rows with it that were not written yet.
func (e *Engine) lostRegistry() {
	select {
	case e.outage <- struct{}{}:
	default:
	}
}

// audit keeps the registry's audit whole, until ctx ends: at the start, and whenever the registry was away, it is given what
// the journals of late prove. Rows that are there stay as they are.
func (e *Engine) audit(ctx context.Context) {
	for {
		since := e.Now().Add(-restoreReach)
		for {
			if pause(ctx, restorePause) != nil {
				return
			}
			err := e.restore(ctx, since)
			if err == nil {
				break
			}
			e.Log.Debug("the audit cannot be restored yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.outage:
		}
	}
}

// restore gives the registry every call that has ended in a turn which runs, or has ended since.
func (e *Engine) restore(ctx context.Context, since time.Time) error {
	until := e.Now().Add(-restoreAge)
	turns, err := e.Store.TurnsSince(ctx, since)
	if err != nil {
		return err
	}
	var records []*toolregistryv1.CallRecord
	for _, info := range turns {
		kept, err := e.Store.Journal(ctx, info.ID)
		if err != nil {
			return err
		}
		records = append(records, ended(info, kept.Calls(), until)...)
		if len(records) >= restoreBatch {
			if records, err = nil, e.send(ctx, records); err != nil {
				return err
			}
		}
	}
	return e.send(ctx, records)
}

func (e *Engine) send(ctx context.Context, records []*toolregistryv1.CallRecord) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	for len(records) > 0 {
		n := min(len(records), restoreBatch)
		if _, err := e.Tools.RestoreCalls(ctx, &toolregistryv1.RestoreCallsRequest{Calls: records[:n]}); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// ended answers the records of the calls that went through the registry and had ended by then.
func ended(info journal.Turn, calls []journal.Call, until time.Time) []*toolregistryv1.CallRecord {
	var records []*toolregistryv1.CallRecord
	for _, c := range calls {
		if c.State.Ended() && !c.StartAt.IsZero() && c.EndAt.Before(until) && c.Tool != submitWork {
			records = append(records, record(info, c))
		}
	}
	return records
}

func record(info journal.Turn, c journal.Call) *toolregistryv1.CallRecord {
	status := "ok"
	switch {
	case c.State == journal.Failed && c.Result.Class != "":
		status = "refused"
	case c.State == journal.Parked:
		status = "parked"
	case c.State != journal.Done:
		status = "failed"
	}
	return &toolregistryv1.CallRecord{
		AuditId: c.Result.AuditID, CallId: c.ID, Principal: "seat:" + info.Seat, Seat: info.Seat, TurnId: info.ID, Tool: c.Tool, Source: c.Source,
		ArgumentsJson: clean(c.Args), Result: clean(c.Result.Text), Status: status, RefusalClass: string(c.Result.Class), Outcome: c.Result.Outcome,
		OperationId: c.OperationID, StartTime: timestamppb.New(c.StartAt), DurationMicros: c.EndAt.Sub(c.StartAt).Microseconds(),
	}
}
