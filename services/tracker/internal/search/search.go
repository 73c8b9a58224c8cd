// Package search finds work items by their words: an index of its own for every process, derived from the tracker's tables and never
// a source of anything.
//
// It is built once by reading every item, and kept by following the history: rows by (txid, position), below the oldest running
// transaction, so that what commits late is never missed. What it has is kept in a folder of segments and a manifest that says which
// of them count and up to where the history was followed; after a crash it goes on from there, doing some of it again, which changes
// nothing. A folder that is damaged, of another format or of another database is built anew.
//
//	commit ─► Wake ─► pass: what changed since the cursor ─► a segment in memory ─► merged ─► kept in the folder
//
// Whoever searches waits for a pass that began after they came, so they find whatever was committed before.
package search

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Cursor is a place in the history, in the order in which it can be followed.
type Cursor struct {
	TxID     uint64 `json:"txid"`
	Position int64  `json:"position"`
}

// Before reports whether the cursor is before another one.
func (c Cursor) Before(other Cursor) bool {
	return c.TxID < other.TxID || c.TxID == other.TxID && c.Position < other.Position
}

// Change is a row of history.
type Change struct {
	Cursor Cursor
	// Item is nil for a change of a project alone.
	Item uuid.UUID
	// Settled says that no row will ever come before this one.
	Settled bool
}

// Source is the tracker's tables.
type Source interface {
	// Identity names the database and its life: an index of another one is of no use.
	Identity(ctx context.Context) (string, error)
	// Now answers the place from which following misses nothing that is not in the tables already.
	Now(ctx context.Context) (Cursor, error)
	// Knows reports whether a place is one that this history has had.
	Knows(ctx context.Context, at Cursor) (bool, error)
	// Changes answers up to limit rows after a place, in order.
	Changes(ctx context.Context, after Cursor, limit int) ([]Change, error)
	// Behind counts the rows after a place, up to limit.
	Behind(ctx context.Context, after Cursor, limit int) (int, error)
	// Documents answers those of some items that are to be found; removed ones are not.
	Documents(ctx context.Context, ids []uuid.UUID) ([]Document, error)
	// DocumentsAfter answers up to limit items by id, and the last id that was read; fewer than limit only at the end.
	DocumentsAfter(ctx context.Context, after uuid.UUID, limit int) (documents []Document, last uuid.UUID, read int, err error)
	// Count answers about how many items there are.
	Count(ctx context.Context) (int, error)
}

// patience is how long a search waits for the index, and how far behind it may be before that is said.
const patience = 5 * time.Second

// ErrBuilding is answered as long as not every item has been read.
var ErrBuilding = errors.New("the search index is being built")

// Options says what is indexed and where.
type Options struct {
	Source Source
	// Dir is the folder; empty for a temporary one.
	Dir string
	Log *slog.Logger
	Now func() time.Time
	// Poll is how often writes of other processes are looked for; 0 means every second.
	Poll time.Duration
	// Keep is how often the index is put into the folder; 0 means every 30 s.
	Keep time.Duration
}

// Index is the search index of one process. Its methods are safe for concurrent use.
type Index struct {
	options Options
	wake    chan struct{}
	// pending is since when there is something that no pass has begun with, in Unix nanoseconds; running, since when there is something
	// that the pass under way is about. 0 for nothing.
	pending, running atomic.Int64
	collection       atomic.Pointer[collection] // nil until the folder is open
	progress         atomic.Pointer[Progress]
	cursor           atomic.Pointer[Cursor]

	turn sync.Mutex
	next *pass // the one that has not begun; guarded by turn
}

// Progress is how far building has come.
type Progress struct {
	Built       bool
	Read, Items int
}

// pass is one look at what changed.
type pass struct {
	done chan struct{}
	err  error // set before done is closed
}

func newPass() *pass { return &pass{done: make(chan struct{})} }

// New makes an index that does nothing until Run.
func New(o Options) *Index {
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Keep == 0 {
		o.Keep = 30 * time.Second
	}
	x := &Index{options: o, wake: make(chan struct{}, 1), next: newPass()}
	x.progress.Store(&Progress{})
	x.cursor.Store(&Cursor{})
	return x
}

// Wake says that something was committed. It never waits.
func (x *Index) Wake() {
	x.pending.CompareAndSwap(0, x.options.Now().UnixNano())
	x.nudge()
}

func (x *Index) nudge() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Progress answers how far building has come.
func (x *Index) Progress() Progress { return *x.progress.Load() }

// Lagging reports whether searches do not show what was written more than five seconds ago.
func (x *Index) Lagging() bool {
	limit := x.options.Now().Add(-patience).UnixNano()
	late := func(since int64) bool { return since != 0 && since < limit }
	return late(x.pending.Load()) || late(x.running.Load())
}

// Fresh waits until the index has everything that was committed before the call, for at most five seconds. It answers what kept it
// from that, and about how many changes are missing, -1 when that is not known.
func (x *Index) Fresh(ctx context.Context) (behind int, err error) {
	if !x.Progress().Built {
		return -1, ErrBuilding
	}
	x.turn.Lock()
	p := x.next
	x.turn.Unlock()
	x.nudge()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-p.done:
		if p.err == nil {
			return 0, nil
		}
		err = p.err
	case <-waiting.Done():
		err = waiting.Err()
	}
	if ctx.Err() != nil {
		return -1, ctx.Err()
	}
	counting, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	behind, failed := x.options.Source.Behind(counting, *x.cursor.Load(), maxBehind)
	if failed != nil {
		behind = -1
	}
	return behind, err
}

// Where counting what is missing ends.
const (
	maxBehind = 10_000
	countTime = time.Second
)

// Search answers what the index has now. ErrBuilding as long as it is being built: what it has then says nothing.
func (x *Index) Search(ctx context.Context, q Query) (Result, error) {
	c := x.collection.Load()
	if c == nil || !x.Progress().Built {
		return Result{}, ErrBuilding
	}
	return c.current.Load().search(ctx, q, &c.scratch)
}
