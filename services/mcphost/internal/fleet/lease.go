package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

const (
	defaultLease = 15 * time.Second
	// renewal is how often leases are renewed, and so how soon one that was taken away is noticed.
	renewal = time.Second
	// renewTimeout is shorter than the margin that fence leaves for it.
	renewTimeout = 2 * time.Second
	// fence is how long before its end a lease that cannot be renewed counts as lost: its children need that time to end, and
	// must have ended when another node may start them.
	fence = 7 * time.Second
)

// leases are the seats that this node holds, by its own clock, which is asked before the store's is, so that it ends first.
//
//	pin ─► take ─► held ─► renewed while pinned or worked under ─► let go of, by the next renewal
//	                  └──► not renewed, taken away ─► lost
type leases struct {
	options Options

	mu    sync.Mutex
	seats map[string]*lease
}

// lease is what is known of one seat.
type lease struct {
	// until is how long this node holds the seat; the zero time when it does not. since is when that became known.
	until, since time.Time
	// pins counts who is about to work under the lease.
	pins int
	// leaving is closed when the store knows that the lease was let go of; nil while it is not being let go of.
	leaving chan struct{}
}

func newLeases(o Options) *leases {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	return &leases{options: o, seats: map[string]*lease{}}
}

// entry is called under the lock.
func (l *leases) entry(seat string) *lease {
	e := l.seats[seat]
	if e == nil {
		e = &lease{}
		l.seats[seat] = e
	}
	return e
}

// pin keeps a seat from being let go of, once it is held, until unpin.
func (l *leases) pin(seat string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(seat).pins++
}

func (l *leases) unpin(seat string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(seat).pins--
}

func (l *leases) held(seat string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.seats[seat]
	return e != nil && l.options.Now().Before(e.until)
}

// take asks for a seat once and answers its holder: this node, another, or for the moment none. The seat should be pinned.
func (l *leases) take(ctx context.Context, seat string) (holder store.Node, err error) {
	if err := l.settled(ctx, seat); err != nil {
		return store.Node{}, err
	}
	// What is handed on to the holder, call by call, must not lock the row each time.
	if holder, err = l.options.Store.Holder(ctx, seat); err != nil || holder.Name != "" && holder.Name != l.options.Node {
		return holder, err
	}
	began := l.options.Now()
	if holder, err = l.options.Store.AcquireLease(ctx, seat, l.options.Lease); err != nil {
		return store.Node{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if holder.Name == l.options.Node {
		e := l.entry(seat)
		e.until, e.since = began.Add(l.options.Lease), l.options.Now()
	}
	return holder, nil
}

// settled waits for a seat that is being let go of.
func (l *leases) settled(ctx context.Context, seat string) error {
	for {
		l.mu.Lock()
		leaving := l.entry(seat).leaving
		l.mu.Unlock()
		if leaving == nil {
			return nil
		}
		select {
		case <-leaving:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// split answers the seats to renew, and those that nobody works under; these are not held from now on. used says whether a seat
// has instances; whoever begins one has the seat pinned, so the caller sees to it that none begins between used and here.
func (l *leases) split(used func(seat string) bool) (keep, drop []string) {
	keep, drop = []string{}, []string{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for seat, e := range l.seats {
		switch {
		case e.pins > 0 || used(seat):
			keep = append(keep, seat)
		case !e.until.IsZero():
			e.until, e.leaving = time.Time{}, make(chan struct{})
			drop = append(drop, seat)
		case e.leaving == nil:
			delete(l.seats, seat)
		}
	}
	return keep, drop
}

// renew writes a split, and answers the seats that are lost.
func (l *leases) renew(ctx context.Context, keep, drop []string) (lost []string, err error) {
	began := l.options.Now()
	bounded, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	kept, err := l.options.Store.RenewLeases(bounded, keep, drop, l.options.Lease)
	renewed := make(map[string]bool, len(kept))
	for _, seat := range kept {
		renewed[seat] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seat := range drop { // even when that failed: a later renewal gives it back
		e := l.seats[seat]
		close(e.leaving)
		e.leaving = nil
	}
	for seat, e := range l.seats {
		switch {
		case e.until.IsZero():
		case err == nil && renewed[seat]:
			e.until = began.Add(l.options.Lease)
		case err == nil && e.since.Before(began), err != nil && !l.options.Now().Before(e.until.Add(-fence)):
			e.until = time.Time{}
			lost = append(lost, seat)
		}
	}
	return lost, err
}

// keepLeases renews until ctx ends. A seat that is lost loses its instances at once: another node may act as it soon.
func (f *Fleet) keepLeases(ctx context.Context) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-f.handOver:
		}
		f.mu.Lock()
		keep, drop := f.leases.split(func(seat string) bool { return f.seats[seat] > 0 })
		f.mu.Unlock()
		if len(keep)+len(drop) == 0 && !failing {
			continue // what a lost answer left lapses
		}
		lost, err := f.leases.renew(ctx, keep, drop)
		if err != nil != failing && ctx.Err() == nil {
			failing = err != nil
			f.options.Log.Warn("leases of seats", "renewed", !failing, "error", err)
		}
		f.lose(lost)
	}
}

// lose ends the instances of seats that this node does not hold any more.
func (f *Fleet) lose(seats []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seat := range seats {
		f.options.Log.Warn("the lease of a seat is lost, its servers end", "seat", seat)
		for i := range f.alive {
			if i.id.seat != seat {
				continue
			}
			if f.instances[i.id] == i {
				delete(f.instances, i.id)
			}
			i.retire(0)
		}
	}
}
