// Package seatcache keeps the surface of every seat current, so that listing tools and calling one cost no look at mcphost.
//
//	event or new revision ─► stale ─► the next caller asks mcphost ─► same digest: the surface stays
//	                                                               └► another: read, judged, built anew
//
// A surface that cannot be refreshed is served as it was: old knowledge beats none. A seat that was never seen gets the suite's
// own tools, and every server as missing with the reason. Nothing waits for mcphost twice: callers of one seat share the look.
// Definitions are read once, however many seats see them.
package seatcache

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/sighting"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

const (
	// startWait is how long a first look waits for servers that start. What is ready later arrives by event.
	startWait = 5 * time.Second
	// lookTimeout bounds a look beyond the wait.
	lookTimeout = 5 * time.Second
	// settledFor is how long a surface is believed without an event; startingFor while a server of it is starting.
	settledFor, startingFor = 30 * time.Second, time.Second
	// failedFor is how long a look that failed is not repeated: calls of the suite's own tools must not wait for it each time.
	failedFor = 2 * time.Second
)

// Host is what the cache asks of mcphost; its generated client is one.
type Host interface {
	ListServerTools(ctx context.Context, req *mcphostv1.ListServerToolsRequest) (*mcphostv1.ListServerToolsResponse, error)
}

// Memory knows what servers' tools were, so that one that changed is noticed.
type Memory interface {
	// JudgeTools answers which of the definitions that are shown are not known.
	JudgeTools(ctx context.Context, listings []sighting.Listing) (map[sighting.Entry]bool, error)
	// Acceptances answers a number that moves when what is known does, by somebody's decision.
	Acceptances(ctx context.Context) (int64, error)
}

// Options are what a cache needs.
type Options struct {
	Host   Host
	Memory Memory
	// Builtins answers the suite's own tools that a company runs.
	Builtins func(*companyv1.Company) []*surface.Tool
	Log      *slog.Logger
	Now      func() time.Time
}

// Cache holds a surface a seat. Safe for concurrent use.
type Cache struct {
	options Options
	reader  surface.Reader

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is one seat's surface; "" is the company's without a seat.
type entry struct {
	look sync.Mutex // one look at a time

	mu      sync.Mutex
	surface *surface.Surface
	basis   basis
	stale   bool
	until   time.Time
}

// basis is what a surface was built of.
type basis struct {
	servers     []surface.Server
	digest      string // of mcphost's answer; empty for none
	revision    string
	acceptances int64
}

// New makes an empty cache.
func New(o Options) *Cache {
	return &Cache{options: o, entries: map[string]*entry{}}
}

// Surface answers what a seat sees in a company; an empty seat sees the shared servers only. It fails never: what is missing is
// on the surface, with the reason.
func (c *Cache) Surface(ctx context.Context, company *companyv1.Company, seat string) *surface.Surface {
	e := c.entry(seat)
	if s := e.current(company.GetRevisionId(), c.options.Now()); s != nil {
		return s
	}
	e.look.Lock()
	defer e.look.Unlock()
	if s := e.current(company.GetRevisionId(), c.options.Now()); s != nil {
		return s
	}
	return c.refresh(ctx, e, company, seat)
}

// Refresh brings the company's own surface and every one that was asked for before up to date, so that what changed is noticed.
func (c *Cache) Refresh(ctx context.Context, company *companyv1.Company) {
	c.entry("")
	c.mu.Lock()
	seats := slices.Sorted(maps.Keys(c.entries))
	c.mu.Unlock()
	for _, seat := range seats {
		c.Surface(ctx, company, seat)
	}
}

// Invalidate makes the next caller of a seat look again; an empty seat means every one.
func (c *Cache) Invalidate(seat string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, e := range c.entries {
		if seat == "" || name == seat {
			e.invalidate()
		}
	}
}

// Keep forgets every seat that a company does not have.
func (c *Cache) Keep(company *companyv1.Company) {
	has := map[string]bool{"": true}
	for _, seat := range company.GetSeats() {
		has[seat.GetHandle()] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.entries {
		if !has[name] {
			delete(c.entries, name)
		}
	}
}

// Seen answers the surfaces that are known now, by seat in order, without looking at mcphost.
func (c *Cache) Seen() []*surface.Surface {
	c.mu.Lock()
	defer c.mu.Unlock()
	var known []*surface.Surface
	for _, seat := range slices.Sorted(maps.Keys(c.entries)) {
		if s := c.entries[seat].known(); s != nil {
			known = append(known, s)
		}
	}
	return known
}

func (c *Cache) entry(seat string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[seat]
	if !ok {
		e = &entry{}
		c.entries[seat] = e
	}
	return e
}

// current answers the surface if it may still be believed.
func (e *entry) current(revision string, now time.Time) *surface.Surface {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.surface == nil || e.stale || e.basis.revision != revision || !now.Before(e.until) {
		return nil
	}
	return e.surface
}

func (e *entry) known() *surface.Surface {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.surface
}

func (e *entry) invalidate() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stale = true
}

// begin answers what there is, and takes the mark of staleness: an event that arrives during the look sets it again.
func (e *entry) begin() (seen bool, was basis) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stale = false
	return e.surface != nil, e.basis
}

func (c *Cache) refresh(ctx context.Context, e *entry, company *companyv1.Company, seat string) *surface.Surface {
	// The look serves every caller of the seat, so it is on nobody's deadline but its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startWait+lookTimeout)
	defer cancel()
	seen, was := e.begin()
	now, believed, err := c.look(ctx, company, seat, seen, was)
	if err != nil {
		c.options.Log.WarnContext(ctx, "tools of mcp servers cannot be listed", "seat", seat, "error", err)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.surface == nil || e.basis.revision != company.GetRevisionId() {
			e.surface = surface.Build(c.options.Builtins(company), unreachable(company, err))
			e.basis = basis{revision: company.GetRevisionId()}
		}
		e.until = c.options.Now().Add(failedFor)
		return e.surface
	}
	built := e.known()
	if !seen || was.digest == "" || now.digest != was.digest || now.revision != was.revision || now.acceptances != was.acceptances {
		built = surface.Build(c.options.Builtins(company), now.servers)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.surface, e.basis, e.until = built, now, c.options.Now().Add(believed)
	return e.surface
}
