// Package audit gets calls into the store without making them wait.
//
// A turn's calls are proven by the turn's journal, so their rows are written in batches behind the call's back:
//
//	Admit ── call ── Append ─► pending ── Run: every 20 ms, all that wait ─► one transaction
//	  ▲                          │
//	  └── waits while more than MaxPendingBytes pend
//
// The wait stands before the call and not after it: a database that is behind slows new calls down, while a call that has been
// made is always recorded. What a crash loses is restored from the journal. A call without a journal is written before it is
// answered, with [Writer.Write].
package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

const (
	// MaxPendingBytes is how much may wait to be written before new calls wait too. Calls under way may add their results to it.
	MaxPendingBytes = 32 << 20

	// gather is how long a first record waits for company: a transaction, and the round of the relay behind it, cost as much for one as
	// for ten.
	gather = 20 * time.Millisecond
	// maxBatch and maxBatchBytes bound a transaction.
	maxBatch, maxBatchBytes = 1000, 8 << 20
	// writeTimeout bounds one transaction.
	writeTimeout = 15 * time.Second
	// backoffMin and backoffMax bound the pause after a failure.
	backoffMin, backoffMax = 50 * time.Millisecond, 5 * time.Second
)

// Store takes calls; writing one twice must not double it. It refuses with class invalid what it will never take.
type Store interface {
	InsertCalls(ctx context.Context, records []*call.Record) error
}

// Options are what a writer needs.
type Options struct {
	Store Store
	Log   *slog.Logger
	// Metrics takes the gauge of pending bytes; nil registers none.
	Metrics prometheus.Registerer
	// MaxPendingBytes replaces the constant of that name; 0 keeps it.
	MaxPendingBytes int64
}

// Writer writes calls. Safe for concurrent use.
type Writer struct {
	options Options
	wake    chan struct{}

	mu      sync.Mutex
	pending []*call.Record
	// unwritten are those of pending and of the batch under way, by id.
	unwritten map[uuid.UUID]*call.Record
	bytes     int64         // of pending and of the batch under way
	room      chan struct{} // closed when bytes fall
	ending    bool
}

// New makes a writer; [Writer.Run] does the work.
func New(o Options) *Writer {
	if o.MaxPendingBytes == 0 {
		o.MaxPendingBytes = MaxPendingBytes
	}
	w := &Writer{options: o, wake: make(chan struct{}, 1), room: make(chan struct{}), unwritten: map[uuid.UUID]*call.Record{}}
	if o.Metrics != nil {
		o.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "bullpen_audit_pending_bytes",
			Help: "Audit records that wait to be written.",
		}, func() float64 { return float64(w.Pending()) }))
	}
	return w
}

// Pending answers how many bytes wait to be written.
func (w *Writer) Pending() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

// Unwritten answers a record that is not in the store yet, and false for one that may be there. Do not change it.
func (w *Writer) Unwritten(id uuid.UUID) (*call.Record, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.unwritten[id]
	return r, ok
}

// Admit waits until a call may be made, and refuses with class unavailable when ctx ends first: nothing was done then.
func (w *Writer) Admit(ctx context.Context) error {
	for {
		w.mu.Lock()
		full, room := w.bytes >= w.options.MaxPendingBytes, w.room
		w.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return fault.New(fault.Unavailable, "The audit of tool calls is behind and takes no more right now; nothing was done. Try again.").
				WithCause(context.Cause(ctx))
		}
	}
}

// Append takes a record of a call that has been admitted. It does not block while Run runs; once that has been told to end, the
// last calls are written here.
func (w *Writer) Append(ctx context.Context, r *call.Record) {
	if !w.add(r) {
		w.last(ctx, r)
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// add answers false when nobody will write what it takes.
func (w *Writer) add(r *call.Record) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending {
		return false
	}
	w.pending = append(w.pending, r)
	w.unwritten[r.ID] = r
	w.bytes += r.Size()
	return true
}

// last writes a record that came after the end was announced.
func (w *Writer) last(ctx context.Context, r *call.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := w.options.Store.InsertCalls(ctx, []*call.Record{r}); err != nil {
		w.options.Log.ErrorContext(ctx, "audit row was not written", "audit_id", r.ID, "error", err)
	}
}

// Write writes a record before it returns. When the store does not take it in time, the record joins those that Run writes: the
// call has been made, and the database's trouble does not undo it.
func (w *Writer) Write(ctx context.Context, r *call.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := w.options.Store.InsertCalls(ctx, []*call.Record{r}); err != nil {
		w.options.Log.WarnContext(ctx, "audit row is written later", "audit_id", r.ID, "error", err)
		w.Append(ctx, r)
	}
}

// take answers the next batch, nil when nothing waits. The batch still counts as pending.
func (w *Writer) take() []*call.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, int64(0)
	for n < len(w.pending) && n < maxBatch && (n == 0 || size+w.pending[n].Size() <= maxBatchBytes) {
		size += w.pending[n].Size()
		n++
	}
	batch := w.pending[:n:n]
	w.pending = w.pending[n:]
	if len(w.pending) == 0 {
		w.pending = nil // the array goes with the batch
	}
	return batch
}

// written frees the room of a batch.
func (w *Writer) written(batch []*call.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range batch {
		w.bytes -= r.Size()
		delete(w.unwritten, r.ID)
	}
	close(w.room)
	w.room = make(chan struct{})
}
