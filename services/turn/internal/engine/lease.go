package engine

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

const (
	noAnswer  = "The company service has not answered yet. Mail waits until it does."
	noCompany = "No company is active, so nobody can answer. Mail waits until one is put with `bullpen up --company` or PutCompany."
	stranger  = "The active company has no agent seat of this handle. Mail waits until it has."
)

// reconcile brings what this worker holds in line with the company and the other workers.
func (e *Engine) reconcile(ctx, work context.Context) {
	if !e.renew(ctx) {
		return
	}
	company, loaded := e.Company.Current()
	if !loaded {
		e.setReason(noAnswer)
		return
	}
	if company == nil {
		e.setReason(noCompany)
		if err := e.Store.HoldAll(ctx, noCompany); err != nil {
			e.Log.Warn("cannot mark mail as held", "error", err)
		}
		return
	}
	e.setReason("")
	var agents []string
	for _, s := range company.GetSeats() {
		if s.GetKind() == "agent" {
			agents = append(agents, s.GetHandle())
		}
	}
	if err := e.Store.HoldStrangers(ctx, agents, stranger); err != nil {
		e.Log.Warn("cannot mark mail as held", "error", err)
	}
	e.retire(agents)
	e.acquire(ctx, work, agents)
}

// bury frees the seats of workers that have died, and reports whether there were any: their leases would free them too, but later.
func (e *Engine) bury(ctx context.Context) bool {
	others, err := e.Store.Others(ctx, e.opts.Node)
	if err != nil || len(others) == 0 {
		return false // the lease loop says that the database is away
	}
	gone, err := e.Presence.Gone(ctx, others)
	if err != nil || len(gone) == 0 {
		return false
	}
	if err := e.Store.Bury(ctx, gone); err != nil {
		e.Log.Warn("cannot free the seats of workers that are gone", "error", err)
		return false
	}
	e.Log.Info("workers are gone, their seats are free", "nodes", gone)
	return true
}

// renew says that this worker lives and learns which leases it still has. Workers of lost ones are ended, and leases that
// nobody works under are given back. It answers false when the database cannot be asked; leases that have run out meanwhile
// are let go of.
func (e *Engine) renew(ctx context.Context) bool {
	held, live, err := e.Store.Beat(ctx, e.opts.Node, e.opts.LeaseTTL)
	if err != nil {
		if ctx.Err() == nil {
			e.Log.Warn("cannot renew the leases", "error", err)
		}
		e.loseLapsed()
		return false
	}
	e.metrics.nodes.Set(float64(live))
	for handle, epoch := range e.loseTaken(held) {
		// Its release failed when its worker ended. Renewed with the others, it would never lapse.
		if err := e.Store.Release(ctx, e.opts.Node, store.Fence{Seat: handle, Epoch: epoch}); err != nil {
			e.Log.Warn("cannot release the seat yet", "seat", handle, "error", err)
		}
	}
	return true
}

// loseLapsed ends all workers once no lease can hold any more.
func (e *Engine) loseLapsed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.beaten.IsZero() || e.Now().Sub(e.beaten) <= e.opts.LeaseTTL {
		return
	}
	for _, s := range e.seats {
		s.lose()
	}
}

// loseTaken ends the workers whose lease is not held any more, and answers the leases without a worker.
func (e *Engine) loseTaken(held map[string]int64) (idle map[string]int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.beaten = e.Now()
	idle = maps.Clone(held)
	for handle, s := range e.seats {
		if held[handle] != s.fence.Epoch {
			s.lose()
		}
		delete(idle, handle)
	}
	return idle
}

// retire ends the workers of seats that the company has no more, and of those beyond a fair share, once they are idle.
func (e *Engine) retire(agents []string) {
	live := e.metrics.live()
	share := (len(agents) + live - 1) / live
	e.mu.Lock()
	defer e.mu.Unlock()
	surplus := len(e.seats) - share
	for handle, s := range e.seats {
		if !slices.Contains(agents, handle) {
			s.retire()
			surplus--
		}
	}
	for _, s := range e.seats {
		if surplus <= 0 {
			return
		}
		if s.idle() {
			s.retire()
			surplus--
		}
	}
}

// acquire takes free seats up to a fair share.
func (e *Engine) acquire(ctx, work context.Context, agents []string) {
	live := e.metrics.live()
	share := (len(agents) + live - 1) / live
	mine := e.handles()
	wanted := slices.DeleteFunc(slices.Clone(agents), func(handle string) bool { return slices.Contains(mine, handle) })
	room := share - len(mine)
	if room <= 0 || len(wanted) == 0 {
		return
	}
	// Each worker begins elsewhere, so that two do not reach for the same seats.
	slices.SortFunc(wanted, func(a, b string) int {
		if x, y := e.order(a), e.order(b); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	taken, err := e.Store.Acquire(ctx, e.opts.Node, wanted, e.opts.LeaseTTL, room)
	if err != nil {
		e.Log.Warn("cannot acquire seats", "error", err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for handle, epoch := range taken {
		ctx, lose := context.WithCancel(work)
		s := newSeat(e, store.Fence{Seat: handle, Epoch: epoch}, lose)
		e.seats[handle] = s
		e.workers.Go(func() { s.run(ctx) })
	}
	e.metrics.seats.Set(float64(len(e.seats)))
}

func (e *Engine) order(handle string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.opts.Node + "\x00" + handle))
	return h.Sum32()
}

// gone takes a seat whose worker has ended off the list, gives its lease back, and looks for work again.
func (e *Engine) gone(ctx context.Context, s *seat) {
	if err := e.Store.Release(ctx, e.opts.Node, s.fence); err != nil {
		e.Log.Warn("cannot release the seat, it is given back later", "seat", s.fence.Seat, "error", err)
	}
	e.mu.Lock()
	delete(e.seats, s.fence.Seat)
	e.metrics.seats.Set(float64(len(e.seats)))
	e.mu.Unlock()
	if s.failed {
		e.lookAgain()
	}
}

func (e *Engine) setReason(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reason = reason
}
