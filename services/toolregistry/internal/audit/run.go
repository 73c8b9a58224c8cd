package audit

import (
	"context"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// drainTimeout bounds the last writes after the end was announced.
const drainTimeout = 10 * time.Second

// Run writes until ctx ends, then writes what still waits, for at most ten seconds, and answers nil. What is left after that is
// what a crash would have lost too.
func (w *Writer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			w.end()
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
			defer cancel()
			w.flush(drain)
			if left := w.Pending(); left > 0 {
				w.options.Log.ErrorContext(ctx, "audit rows were not written; the turns' journals have them", "bytes", left)
			}
			return nil
		case <-w.wake:
			pause(ctx, gather)
			w.flush(ctx)
		}
	}
}

// end makes those who come later write for themselves.
func (w *Writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
}

// flush writes until nothing waits or ctx ends.
func (w *Writer) flush(ctx context.Context) {
	for ctx.Err() == nil {
		batch := w.take()
		if len(batch) == 0 {
			return
		}
		if left := w.write(ctx, batch); len(left) > 0 {
			w.putBack(left)
			return
		}
		w.written(batch)
	}
}

// write tries until the batch is in the store or ctx ends, and answers what is not. A row that the store refuses for what it
// holds would be refused for ever and hold up all others: it is reported and left out.
func (w *Writer) write(ctx context.Context, batch []*call.Record) (left []*call.Record) {
	for backoff := backoffMin; ; backoff = min(2*backoff, backoffMax) {
		err := w.insert(ctx, batch)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return batch
		}
		hopeless := fault.ClassOf(err) == fault.Invalid
		if hopeless && len(batch) > 1 {
			return w.writeEach(ctx, batch)
		}
		if hopeless {
			w.options.Log.ErrorContext(ctx, "audit row cannot be stored", "audit_id", batch[0].ID, "tool", batch[0].Tool, "error", err)
			return nil
		}
		w.options.Log.WarnContext(ctx, "audit rows wait for the database", "rows", len(batch), "error", err)
		if pause(ctx, backoff); ctx.Err() != nil {
			return batch
		}
	}
}

func (w *Writer) writeEach(ctx context.Context, batch []*call.Record) []*call.Record {
	for i := range batch {
		if left := w.write(ctx, batch[i:i+1]); len(left) > 0 {
			return batch // rows that are in stay single
		}
	}
	return nil
}

func (w *Writer) insert(ctx context.Context, batch []*call.Record) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return w.options.Store.InsertCalls(ctx, batch)
}

// putBack returns a batch that was taken to the head of what waits.
func (w *Writer) putBack(batch []*call.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(batch, w.pending...)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
