package bus

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// link remembers whether one use of the cluster works, and logs only when
// that changes. It is safe for concurrent use.
type link struct {
	log  *slog.Logger
	mu   sync.Mutex
	down bool
	// since is when the first failure of the outage was seen.
	since time.Time
}

func newLink(log *slog.Logger) *link { return &link{log: log} }

// lost notes a failure, and answers whether it is the first of an outage.
func (l *link) lost(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return false
	}
	l.down, l.since = true, time.Now()
	l.log.Warn("kafka unavailable", "error", err)
	return true
}

func (l *link) found() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.down {
		return
	}
	l.down = false
	l.log.Info("kafka available again", "after", time.Since(l.since).Round(time.Millisecond))
}

const (
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
	// patience is how long a call outlasts a broker that restarts or a leader
	// that moves before it reports the failure.
	patience = 5 * time.Second
)

// pauses yields growing waits between attempts.
type pauses struct{ last time.Duration }

func (p *pauses) reset() { p.last = 0 }

// wait sleeps the next pause; false means that ctx ended first.
func (p *pauses) wait(ctx context.Context) bool {
	p.last = min(max(2*p.last, pauseMin), pauseMax)
	t := time.NewTimer(p.last)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// persist repeats fn while it fails in a way that time may heal, until
// patience or ctx runs out. It answers fn's last error, and ctx's with it if
// that was what ended the attempts.
func (c *client) persist(ctx context.Context, fn func(context.Context) error) error {
	var p pauses
	deadline := time.Now().Add(patience)
	for {
		err := fn(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if !temporary(err) {
			return err
		}
		// A broker that answers with a code is there; the caller hears of it if
		// it stays.
		if _, answered := errors.AsType[kafka.Error](err); !answered {
			c.link.lost(err)
		}
		if time.Now().After(deadline) || c.usable() != nil {
			return err
		}
		if !p.wait(ctx) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// temporary tells whether repeating a request may help. What is not the
// broker's own word is a connection's failure, and those heal.
func temporary(err error) bool {
	if _, ours := fault.As(err); ours || errors.Is(err, ErrClosed) {
		return false
	}
	if code, ok := errors.AsType[kafka.Error](err); ok {
		return code.Temporary()
	}
	return true
}
