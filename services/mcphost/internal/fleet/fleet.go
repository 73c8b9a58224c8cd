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
	"sync"
	"sync/atomic"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
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
	// Authorizer gets tokens for servers that want one.
	Authorizer *authorize.Authorizer
	// Current answers the company in force, nil for none; Changed is closed when that may be another one.
	Current func() (*companyv1.Company, bool)
	Changed func() <-chan struct{}
	Log     *slog.Logger
	Now     func() time.Time
	Getenv  func(string) string
	// Node is unique to the process, Version is the program's.
	Node, Version string
	// Presence answers which other nodes are absent from the database, and Ended whether the process of one is known to have ended.
	Presence Presence
	Ended    func(context.Context, store.Node) bool
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
	verdicts *verdicts
	// handOver gets a value when seats may be let go of at once.
	handOver chan struct{}
	// queue counts who waits for room.
	queue atomic.Int32

	mu        sync.Mutex
	company   *companyv1.Company // as applied
	instances map[identity]*instance
	alive     map[*instance]struct{} // those that go included
	seats     map[string]int         // of alive, by seat
	freed     chan struct{}          // closed when there may be room
	// launch runs an instance; nil while the fleet is not running.
	launch func(*instance)
	// ending says that the fleet takes nothing more.
	ending bool
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
		instances: map[identity]*instance{}, alive: map[*instance]struct{}{}, seats: map[string]int{}, freed: make(chan struct{}),
		handOver: make(chan struct{}, 1), verdicts: newVerdicts(o.Now),
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
		f.seats[i.id.seat]++
		running.Go(func() {
			i.run(lifetime)
			f.forget(i)
		})
	}
	f.mu.Unlock()
	var background sync.WaitGroup
	background.Go(func() { f.reporter.run(lifetime) })
	background.Go(func() { f.keepLeases(lifetime) }) // seats are handed over one by one, as their calls end
	background.Go(func() { f.watch(lifetime) })
	f.follow(ctx)
	f.withdraw()
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
	if f.seats[i.id.seat]--; f.seats[i.id.seat] == 0 {
		delete(f.seats, i.id.seat)
		f.letGo()
	}
	f.announceRoom()
}

// letGo hands over the seats that nobody works under without waiting for the next renewal.
func (f *Fleet) letGo() {
	select {
	case f.handOver <- struct{}{}:
	default:
	}
}

func (f *Fleet) retireAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.launch, f.ending = nil, true
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

// leave tells the others that this node is gone.
func (f *Fleet) leave(ctx context.Context) {
	const limit = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := f.options.Store.Leave(ctx); err != nil {
		f.options.Log.Warn("cannot say goodbye; the node's reports end by themselves", "error", err)
	}
}
