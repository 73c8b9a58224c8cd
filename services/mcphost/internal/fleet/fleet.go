// Package fleet decides which instances of MCP servers run on this node, and finds the one that a call is for.
//
//	shared server            one instance, from the revision that declares it to the one that does not
//	shared: false, a seat    an instance for each seat with credentials, from its first use until it was idle, was released,
//	                         lost its lease, or is declared otherwise
//
// A new revision touches only what it changes. An instance that goes lets the calls under way finish first, so a turn ends on what
// it began with.
package fleet

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/secrets"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

const (
	// patience is how long an instance that goes waits for its calls.
	patience = time.Minute
	// drain is how long a process that ends waits for calls.
	drain = 10 * time.Second
	// defaultSettle joins the words about changed tools that come within it.
	defaultSettle = 200 * time.Millisecond
)

// Options are what a fleet needs; Settle, Grace and Policy have defaults.
type Options struct {
	Company secrets.Company
	Store   *store.Store
	// Current answers the company in force, nil for none; Changed is closed when that may be another one.
	Current func() (*companyv1.Company, bool)
	Changed func() <-chan struct{}
	Log     *slog.Logger
	Now     func() time.Time
	Getenv  func(string) string
	// Node is unique to the process, Version is the program's.
	Node, Version string
	// SeatIdle, MaxChildren and ParallelStarts are settings; see the service's Config.
	SeatIdle       time.Duration
	MaxChildren    int
	ParallelStarts int
	// Lease is how long a seat is held without renewal.
	Lease  time.Duration
	Settle time.Duration
	Grace  time.Duration
	Policy server.Policy
}

// Fleet runs instances. Safe for concurrent use.
type Fleet struct {
	options  Options
	launcher *child.Launcher
	starts   chan struct{} // taken while an instance starts
	leases   *leases
	reporter *reporter

	mu        sync.Mutex
	company   *companyv1.Company // as applied
	instances map[identity]*instance
	alive     map[*instance]struct{} // those that go included
	// launch runs an instance; nil while the fleet is not running.
	launch func(*instance)
}

// New makes a fleet that runs nothing until Run.
func New(o Options) *Fleet {
	if o.Settle == 0 {
		o.Settle = defaultSettle
	}
	if o.Policy == (server.Policy{}) {
		o.Policy = server.DefaultPolicy()
	}
	f := &Fleet{
		options: o, starts: make(chan struct{}, o.ParallelStarts),
		instances: map[identity]*instance{}, alive: map[*instance]struct{}{},
	}
	f.leases = newLeases(o)
	f.reporter = newReporter(o)
	return f
}

// Run follows the company until ctx ends, and answers when every instance has ended.
func (f *Fleet) Run(ctx context.Context) error {
	f.launcher = child.NewLauncher()
	defer f.launcher.Close()
	// Instances outlive ctx by the time their calls need.
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var running sync.WaitGroup
	f.mu.Lock()
	f.launch = func(i *instance) {
		f.alive[i] = struct{}{}
		running.Go(func() {
			i.run(lifetime)
			f.forget(i)
		})
	}
	f.mu.Unlock()
	var background sync.WaitGroup
	background.Go(func() { f.reporter.run(lifetime) })
	background.Go(func() { f.keepLeases(ctx) })
	f.follow(ctx)
	f.retireAll()
	late := time.AfterFunc(drain, end) // also for those that a revision gave more patience
	running.Wait()
	late.Stop()
	end()
	background.Wait()
	f.leave(ctx)
	return nil
}

// follow applies every new revision, and ends what is idle, until ctx ends.
func (f *Fleet) follow(ctx context.Context) {
	ticker := time.NewTicker(max(f.options.SeatIdle/4, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		changed := f.options.Changed()
		if company, known := f.options.Current(); known {
			f.Apply(company)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
			f.retireIdle()
		}
	}
}

// Apply makes the fleet what a revision says. What the revision does not change is left alone.
func (f *Fleet) Apply(company *companyv1.Company) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.launch == nil || same(f.company, company) {
		return
	}
	f.company = company
	wanted := map[identity]spec{}
	for _, s := range company.GetMcpServers() {
		if s.GetShared() {
			wanted[identity{server: s.GetName()}] = specOf(s, nil)
		}
	}
	for id, i := range f.instances {
		if want, ok := f.want(wanted, id); !ok || want.digest != i.spec.digest {
			f.retire(i, patience)
		}
	}
	for _, s := range company.GetMcpServers() {
		id := identity{server: s.GetName()}
		if _, runs := f.instances[id]; s.GetShared() && !runs {
			f.begin(newInstance(f, id, wanted[id]))
		}
	}
}

func same(a, b *companyv1.Company) bool {
	return a != nil && b != nil && a.GetRevisionId() == b.GetRevisionId() && a.GetEpoch() == b.GetEpoch()
}

// want answers what an instance should be started from, and false when it should not be; it is called under the lock.
func (f *Fleet) want(shared map[identity]spec, id identity) (spec, bool) {
	if id.seat == "" {
		p, ok := shared[id]
		return p, ok
	}
	s := declaredServer(f.company, id.server)
	own, ok := credentials(f.company, id.seat, id.server)
	if s == nil || s.GetShared() || !ok {
		return spec{}, false
	}
	return specOf(s, own), true
}

// begin and retire are called under the lock.
func (f *Fleet) begin(i *instance) {
	f.instances[i.id] = i
	f.reporter.own(i)
	f.launch(i)
}

func (f *Fleet) retire(i *instance, patience time.Duration) {
	delete(f.instances, i.id)
	i.retire(patience)
}

func (f *Fleet) forget(i *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.alive, i)
}

func (f *Fleet) retireAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.launch = nil
	for _, i := range f.instances {
		f.retire(i, drain)
	}
}

func (f *Fleet) retireIdle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, i := range f.instances {
		if id.seat != "" && i.idleSince().Add(f.options.SeatIdle).Before(f.options.Now()) {
			f.retire(i, patience)
		}
	}
}

// seatInstances are called under the lock.
func (f *Fleet) seatInstances(seat string) []*instance {
	var all []*instance
	for id, i := range f.instances {
		if id.seat == seat {
			all = append(all, i)
		}
	}
	return all
}

// Release ends a seat's own instances, waits for their end, and lets the seat go to another node.
func (f *Fleet) Release(ctx context.Context, seat string) (int, error) {
	f.mu.Lock()
	all := f.seatInstances(seat)
	for _, i := range all {
		f.retire(i, patience)
	}
	f.mu.Unlock()
	for _, i := range all {
		select {
		case <-i.done:
		case <-ctx.Done():
			return len(all), fault.New(fault.Unavailable, "The servers of %s are ending, but calls under way keep them: ask again.", seat).WithCause(ctx.Err())
		}
	}
	return len(all), f.leases.release(ctx, seat)
}

// instanceOf answers the instance for a server and, when it is a template, a seat, starting it when it does not run.
func (f *Fleet) instanceOf(ctx context.Context, name, seat string) (*instance, error) {
	f.mu.Lock()
	s := declaredServer(f.company, name)
	own, has := credentials(f.company, seat, name)
	id := identity{server: name}
	if !s.GetShared() {
		id.seat = seat
	}
	i := f.instances[id]
	running := f.launch != nil
	f.mu.Unlock()
	switch {
	case !running:
		return nil, fault.New(fault.Unavailable, "The host of MCP servers is starting or ending: try again in a moment.")
	case s == nil:
		return nil, fault.New(fault.NotFound, "The company declares no MCP server %q.", name).WithField("server")
	case s.GetShared():
		if i == nil {
			return nil, fault.New(fault.Unavailable, "The MCP server %q is being started: try again in a moment.", name)
		}
		return i, nil
	case seat == "" || !has:
		return nil, fault.New(fault.NotFound, "The MCP server %q runs once for each seat that has credentials for it, and %s.", name, without(seat)).WithField("seat")
	}
	if err := f.leases.hold(ctx, seat); err != nil {
		return nil, err
	}
	if i != nil {
		return i, nil
	}
	return f.beginSeat(id, specOf(s, own))
}

func without(seat string) string {
	if seat == "" {
		return "none was named"
	}
	return "the seat " + seat + " has none"
}

// beginSeat starts a seat's instance, unless somebody else just did.
func (f *Fleet) beginSeat(id identity, p spec) (*instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.launch == nil {
		return nil, fault.New(fault.Unavailable, "The host of MCP servers is ending.")
	}
	if i := f.instances[id]; i != nil {
		return i, nil
	}
	if len(f.alive) >= f.options.MaxChildren && !f.makeRoom() {
		return nil, fault.New(fault.Unavailable, "This node runs %d MCP servers, which is its limit: try again when others have ended.", len(f.alive)).
			WithReason("TOO_MANY_SERVERS")
	}
	i := newInstance(f, id, p)
	f.begin(i)
	return i, nil
}

// makeRoom ends the seat's instance that was not used for longest. It is called under the lock.
func (f *Fleet) makeRoom() bool {
	var idle []*instance
	for id, i := range f.instances {
		if id.seat != "" && !i.busy() {
			idle = append(idle, i)
		}
	}
	if len(idle) == 0 {
		return false
	}
	oldest := slices.MinFunc(idle, func(a, b *instance) int { return a.idleSince().Compare(b.idleSince()) })
	f.retire(oldest, patience)
	return true
}

// leave tells the others that this node is gone.
func (f *Fleet) leave(ctx context.Context) {
	const limit = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := f.options.Store.Leave(ctx); err != nil {
		f.options.Log.Warn("cannot say goodbye; the node's reports end by themselves", "error", err)
	}
}
