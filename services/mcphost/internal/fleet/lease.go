package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	defaultLease = 15 * time.Second
	// leasePoll is how often a seat that another node holds is asked for again.
	leasePoll = 250 * time.Millisecond
)

// leases are the seats that this node holds, by its own clock, which is asked before the store's is, so that it ends first.
type leases struct {
	options Options

	mu    sync.Mutex
	until map[string]time.Time
}

func newLeases(o Options) *leases {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	return &leases{options: o, until: map[string]time.Time{}}
}

// hold answers when this node holds the seat, or why it does not when ctx ends.
func (l *leases) hold(ctx context.Context, seat string) error {
	if l.held(seat) {
		return nil
	}
	ticker := time.NewTicker(leasePoll)
	defer ticker.Stop()
	known := "" // the holder, as far as it was ever seen
	for {
		began := l.options.Now()
		holder, err := l.options.Store.AcquireLease(ctx, seat, l.options.Lease)
		if err == nil {
			known = holder
		}
		if err == nil && holder == l.options.Node {
			l.mu.Lock()
			l.until[seat] = began.Add(l.options.Lease)
			l.mu.Unlock()
			return nil
		}
		select {
		case <-ctx.Done():
			if known == "" {
				return fault.New(fault.Unavailable, "It cannot be found out which node runs the MCP servers of %s: try again.", seat).WithCause(err)
			}
			return fault.New(fault.Unavailable, "Another node runs the MCP servers of %s; they move here when it lets go.", seat).WithReason("SEAT_HELD")
		case <-ticker.C:
		}
	}
}

func (l *leases) held(seat string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, ok := l.until[seat]
	return ok && l.options.Now().Before(until)
}

// renew keeps what is held, and answers the seats that are lost.
func (l *leases) renew(ctx context.Context) (lost []string, err error) {
	began := l.options.Now()
	renewed, err := l.options.Store.RenewLeases(ctx, l.options.Lease)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		kept := map[string]bool{}
		for _, seat := range renewed {
			kept[seat] = true
			if _, ours := l.until[seat]; ours {
				l.until[seat] = began.Add(l.options.Lease)
			}
		}
		for seat, until := range l.until {
			if !kept[seat] && until.Before(began.Add(l.options.Lease)) {
				delete(l.until, seat)
				lost = append(lost, seat)
			}
		}
		return lost, nil
	}
	for seat, until := range l.until {
		if !began.Before(until) {
			delete(l.until, seat)
			lost = append(lost, seat)
		}
	}
	return lost, err
}

func (l *leases) release(ctx context.Context, seat string) error {
	l.mu.Lock()
	delete(l.until, seat)
	l.mu.Unlock()
	return l.options.Store.ReleaseLease(ctx, seat)
}

// keepLeases renews until ctx ends. A seat that is lost loses its instances at once: another node may act as it already.
func (f *Fleet) keepLeases(ctx context.Context) {
	ticker := time.NewTicker(f.leases.options.Lease / 3)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		lost, err := f.leases.renew(ctx)
		if err != nil != failing && ctx.Err() == nil {
			failing = err != nil
			f.options.Log.Warn("leases of seats", "renewed", !failing, "error", err)
		}
		f.mu.Lock()
		for _, seat := range lost {
			for _, i := range f.seatInstances(seat) {
				f.retire(i, 0)
			}
		}
		f.mu.Unlock()
	}
}
