// Package follow keeps a current copy of a value that another service owns and
// announces.
//
// A service that answers from somebody else's data must neither ask for it on
// every call nor serve what is long past. A Follower loads the value at the
// start, again whenever a message arrives on the topic that announces changes,
// and by a slow poll in case a message is lost. A load that fails leaves the
// last good value in place: old knowledge beats none, and the next poll mends
// it.
//
// It is not a cache of many keys and not for values that must be exact at the
// moment of use: those are asked for.
package follow

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpenhq/bullpen/libs/bus"
)

// defaultPoll is how long a lost announcement can go unnoticed.
const defaultPoll = 5 * time.Second

// Options says what to follow.
type Options[T any] struct {
	// Bus carries the announcements; nil leaves only the poll.
	Bus bus.Bus
	// Topic announces that the value may have changed. What its messages say is
	// not read.
	Topic string
	// Group must be unique to the process: every process hears every
	// announcement.
	Group string
	// Load answers the value now. It is never called twice at a time.
	Load func(ctx context.Context) (T, error)
	// Poll is the time between loads without an announcement; 0 means 5 s.
	Poll time.Duration
	// Log is told when loading begins to fail and when it works again. Nil
	// discards.
	Log *slog.Logger
}

// Follower holds the current value. All methods are safe for concurrent use.
type Follower[T any] struct {
	options Options[T]
	value   atomic.Pointer[T]
	load    sync.Mutex // one load at a time
	failing bool       // guarded by load
	change  sync.Mutex
	changed chan struct{} // guarded by change
}

// New makes a Follower that has no value until Run or Refresh loads one.
func New[T any](o Options[T]) *Follower[T] {
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Follower[T]{options: o, changed: make(chan struct{})}
}

// Current answers the last value that was loaded, and false before the first.
func (f *Follower[T]) Current() (T, bool) {
	if value := f.value.Load(); value != nil {
		return *value, true
	}
	var none T
	return none, false
}

// Changed answers a channel that is closed after the next load that succeeds.
// Whoever waits asks for a new one each time.
func (f *Follower[T]) Changed() <-chan struct{} {
	f.change.Lock()
	defer f.change.Unlock()
	return f.changed
}

// Refresh loads the value now and answers why it could not.
func (f *Follower[T]) Refresh(ctx context.Context) error {
	f.load.Lock()
	defer f.load.Unlock()
	value, err := f.options.Load(ctx)
	if err != nil {
		if !f.failing && ctx.Err() == nil {
			f.failing = true
			f.options.Log.Warn("cannot load what is followed", "topic", f.options.Topic, "error", err)
		}
		return err
	}
	if f.failing {
		f.failing = false
		f.options.Log.Info("what is followed loads again", "topic", f.options.Topic)
	}
	f.value.Store(&value)
	f.change.Lock()
	close(f.changed)
	f.changed = make(chan struct{})
	f.change.Unlock()
	return nil
}

// Run follows until ctx ends and then answers nil. The first load happens at
// once; its failure is not an error of Run.
func (f *Follower[T]) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	var listening sync.WaitGroup
	if f.options.Bus != nil {
		subscription, err := f.options.Bus.Subscribe(f.options.Topic, f.options.Group)
		if err != nil {
			return err
		}
		listening.Go(func() { f.listen(ctx, subscription, wake) })
		defer listening.Wait()
		defer subscription.Close()
	}
	ticker := time.NewTicker(f.options.Poll)
	defer ticker.Stop()
	for {
		_ = f.Refresh(ctx) // said in the log, mended by the next round
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-ticker.C:
		}
	}
}

// listen turns announcements, however many wait, into one wake.
func (f *Follower[T]) listen(ctx context.Context, subscription bus.Subscription, wake chan<- struct{}) {
	const batch = 256
	for {
		messages, err := subscription.Fetch(ctx, batch)
		if err != nil {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, bus.ErrClosed) {
				f.options.Log.Warn("cannot hear announcements", "topic", f.options.Topic, "error", err)
			}
			return
		}
		select {
		case wake <- struct{}{}:
		default:
		}
		_ = subscription.Commit(ctx, messages...) // an announcement heard twice costs one load
	}
}
