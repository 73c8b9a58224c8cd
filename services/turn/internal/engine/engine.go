// Package engine runs seats: it holds their leases, takes their mail, and drives each turn from its journal.
//
// The one idea to hold: the loop has no memory of its own. What is next is always read off the journal, and what happened is
// committed before anything follows from it, so a turn that another worker takes up goes on exactly where it was. A model
// answer is committed before one of its calls is dispatched; a call is committed as dispatched before it leaves.
//
//	mail ─► claim ─► begin ─► ┌► ask ─► answer + calls committed ─► call ─► result committed ─┐ ─► submit ─► end
//	                          └───────────────────────────────────────────────────────────────┘
//
// A seat works on one turn at a time and is held by a lease that other workers can take once it has run out. A worker that
// has lost its lease finds that out from its next write, which changes nothing, and lets go.
package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// Tools is the tool registry.
type Tools interface {
	ListTools(context.Context, *toolregistryv1.ListToolsRequest) (*toolregistryv1.ListToolsResponse, error)
	ListToolSkills(context.Context, *toolregistryv1.ListToolSkillsRequest) (*toolregistryv1.ListToolSkillsResponse, error)
	CallTool(context.Context, *toolregistryv1.CallToolRequest) (*toolregistryv1.CallToolResponse, error)
	RestoreCalls(context.Context, *toolregistryv1.RestoreCallsRequest) (*toolregistryv1.RestoreCallsResponse, error)
}

// Models answers what a seat asks with, or refuses in words.
type Models interface {
	For(ctx context.Context, c *companyv1.Company, seat *companyv1.Seat) (model.Models, error)
}

// Company is the followed company document.
type Company interface {
	Current() (*companyv1.Company, bool)
	Changed() <-chan struct{}
}

// Presence tells which workers have died.
type Presence interface {
	Gone(ctx context.Context, nodes []string) ([]string, error)
}

// roundOfGraves is how often it is looked for workers that have died.
const roundOfGraves = time.Second

// Options tune an engine.
type Options struct {
	// Node is this worker's name, unique and new at each start.
	Node string
	// LeaseTTL is how long a dead worker keeps its seats. It is renewed three times in that.
	LeaseTTL time.Duration
	// MaxConcurrent turns at a time.
	MaxConcurrent int
	// DrainTimeout is how long running turns get to end when the engine is told to stop; after it, a quarter of that to reach
	// the next commit, which a model that is silent keeps them from.
	DrainTimeout time.Duration
	// Poll is how often the mailbox is looked at for mail that nobody announced here.
	Poll time.Duration
}

// Deps are what an engine works with.
type Deps struct {
	Store   *store.Store
	Tools   Tools
	Models  Models
	Company Company
	// Presence frees the seats of dead workers before their leases do.
	Presence Presence
	Log      *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Engine runs seats. Wake and HeldBecause are safe for concurrent use.
type Engine struct {
	Deps
	opts    Options
	metrics *metrics
	slots   chan struct{}
	kick    chan struct{}
	outage  chan struct{}
	// draining is closed when nothing new is begun, stopping when turns stop at their next commit.
	draining chan struct{}
	stopping chan struct{}
	workers  sync.WaitGroup
	// catalogues are what the seats could call when they last began a turn.
	catalogues catalogues

	mu     sync.Mutex
	seats  map[string]*seat
	reason string
	beaten time.Time
}

// New makes an engine that does nothing until it runs.
func New(d Deps, o Options) *Engine {
	return &Engine{
		Deps: d, opts: o, metrics: newMetrics(d.Metrics), slots: make(chan struct{}, o.MaxConcurrent),
		kick: make(chan struct{}, 1), outage: make(chan struct{}, 1), draining: make(chan struct{}), stopping: make(chan struct{}), seats: map[string]*seat{},
	}
}

// Run runs seats until ctx ends, then drains: nothing new is begun, running turns get DrainTimeout to end and then stop at
// their next commit, and the leases are given back. Run runs once.
func (e *Engine) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	beat := time.NewTicker(e.opts.LeaseTTL / 3)
	defer beat.Stop()
	poll := time.NewTicker(e.opts.Poll)
	defer poll.Stop()
	graves := time.NewTicker(roundOfGraves)
	defer graves.Stop()
	var audit sync.WaitGroup
	audit.Go(func() { e.audit(ctx) })
	defer audit.Wait()
	for {
		e.reconcile(ctx, work)
		changed := e.Company.Changed()
	wait:
		for {
			select {
			case <-ctx.Done():
				e.drain(work, cancel, beat)
				return nil
			case <-poll.C:
				e.lookForMail(ctx)
			case <-graves.C:
				if e.bury(ctx) {
					break wait
				}
			case <-beat.C:
				break wait
			case <-e.kick:
				break wait
			case <-changed:
				break wait
			}
		}
	}
}

// drain ends the work: first by itself, then at the next commit, then by force.
func (e *Engine) drain(work context.Context, cancel context.CancelFunc, beat *time.Ticker) {
	close(e.draining)
	ended := make(chan struct{})
	go func() {
		e.workers.Wait()
		close(ended)
	}()
	deadline := time.NewTimer(e.opts.DrainTimeout)
	defer deadline.Stop()
	for stage := 0; ; {
		select {
		case <-ended:
			if err := e.Store.Leave(work, e.opts.Node); err != nil {
				e.Log.Warn("cannot sign off", "error", err)
			}
			return
		case <-beat.C:
			// What still runs keeps its lease.
			e.renew(work)
		case <-deadline.C:
			switch stage++; stage {
			case 1:
				close(e.stopping)
				deadline.Reset(e.opts.DrainTimeout / 4)
			default:
				cancel()
			}
		}
	}
}

// Wake says that seats have mail. It never blocks.
func (e *Engine) Wake(handles ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, handle := range handles {
		if s := e.seats[handle]; s != nil {
			s.nudge()
		} else if e.reason != "" || !e.known(handle) {
			// Nobody will claim it: the next look at the mailbox says why.
			e.lookAgain()
		}
	}
}

func (e *Engine) known(handle string) bool {
	company, ok := e.Company.Current()
	return ok && seatOf(company, handle) != nil
}

func (e *Engine) lookAgain() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

func (e *Engine) lookForMail(ctx context.Context) {
	handles := e.handles()
	if len(handles) == 0 {
		return
	}
	due, err := e.Store.DueSeats(ctx, handles)
	if err != nil {
		return // the lease loop says that the database is away
	}
	e.Wake(due...)
}

// HeldBecause answers why nothing is worked at all, in words; empty when something is.
func (e *Engine) HeldBecause() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason != "" {
		return e.reason
	}
	held := ""
	for _, s := range e.seats {
		why := s.why()
		if why == "" {
			return ""
		}
		held = why
	}
	return held
}

// HeldSeats answers why each seat that waits here waits.
func (e *Engine) HeldSeats() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := map[string]string{}
	for handle, s := range e.seats {
		if why := s.why(); why != "" {
			held[handle] = why
		}
	}
	return held
}

func (e *Engine) handles() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	handles := make([]string, 0, len(e.seats))
	for handle := range e.seats {
		handles = append(handles, handle)
	}
	return handles
}

func seatOf(c *companyv1.Company, handle string) *companyv1.Seat {
	for _, s := range c.GetSeats() {
		if s.GetHandle() == handle && s.GetKind() == "agent" {
			return s
		}
	}
	return nil
}
