// Package mcp serves the company's operator catalogue as an MCP server, to AI assistants that bear an API token.
//
// One address speaks every revision of the protocol. A request of 2026-07-28 carries all that it needs and is answered by itself
// (modern.go); one of an older revision belongs to a session, which is bound to the token that opened it (legacy.go). Behind both
// stands one table of methods (methods.go): tools are called through the door, and prompts and resources are those of the shared
// servers (operator/upstream).
//
//	            ┌─ modern ─ headers ─ state ─┐             ┌─ tools ────────► door ─► owner, or mcphost
//	POST ─ era ─┤                            ├─ methods ───┤
//	            └─ legacy ─ session ─ ask ───┘             └─ prompts, … ───► upstream ─► mcphost
//
// What servers wrote goes to the client as they wrote it: numbers, members that nobody here knows, hints that are not set. That is
// why messages are handled as raw JSON and not as the SDK's types, which lose all three.
//
// A server that asks for something in the middle of a call is handed on to the client: as a result that asks for input where the
// revision knows that, with the server's state sealed to token, tool and arguments; as a request over the session where it does not.
package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/opid"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/upstream"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// Door calls tools.
type Door interface {
	Call(ctx context.Context, from *rpc.Principal, request door.Request) (*door.Answer, error)
}

// Options are what a server needs. Times and limits that are zero are the defaults below.
type Options struct {
	Door Door
	// Surface answers the company's tools as an operator sees them, those that cannot be called included; nil when no company is
	// active.
	Surface func(ctx context.Context) *surface.Surface
	// Resumable reports the suite's own tools that take an `op_id`.
	Resumable func(tool string) bool
	Upstreams *upstream.Upstreams
	// Identify answers who makes a request; its errors are faults.
	Identify func(ctx context.Context, header http.Header) (*rpc.Principal, error)
	Keys     opid.Keys
	Cleaner  *hygiene.Cleaner
	Log      *slog.Logger
	Now      func() time.Time

	// Hold is how long an answer may take before it becomes a stream; KeepAlive the pause between signs of life on a stream.
	Hold, KeepAlive time.Duration
	// SessionIdle ends a session that nobody uses.
	SessionIdle time.Duration
	// SessionsPerToken and Sessions bound sessions; ListensPerToken the streams that wait for changes, CallsPerToken the requests
	// under way.
	SessionsPerToken, Sessions, ListensPerToken, CallsPerToken int
}

const (
	defaultHold             = 5 * time.Second
	defaultKeepAlive        = 15 * time.Second
	defaultSessionIdle      = 30 * time.Minute
	defaultSessionsPerToken = 64
	defaultSessions         = 1024
	defaultListensPerToken  = 64
	defaultCallsPerToken    = 64

	// lookEvery is how long a change that nothing announced may go unnoticed, such as a definition that an operator accepted.
	lookEvery = 30 * time.Second
)

func (o Options) complete() Options {
	setDuration(&o.Hold, defaultHold)
	setDuration(&o.KeepAlive, defaultKeepAlive)
	setDuration(&o.SessionIdle, defaultSessionIdle)
	setCount(&o.SessionsPerToken, defaultSessionsPerToken)
	setCount(&o.Sessions, defaultSessions)
	setCount(&o.ListensPerToken, defaultListensPerToken)
	setCount(&o.CallsPerToken, defaultCallsPerToken)
	return o
}

func setDuration(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}

func setCount(n *int, otherwise int) {
	if *n == 0 {
		*n = otherwise
	}
}

// Server serves the catalogue. Safe for concurrent use; [Server.Run] watches for changes and ends what lasts.
type Server struct {
	Options
	opIDs   *opid.Minter
	version string

	sessions sessions
	load     load
	follow   followers
	listed   atomic.Pointer[listing]

	changed chan struct{}
	// promptNews and resourceNews count what servers said of changes.
	promptNews, resourceNews atomic.Int64

	draining chan struct{}
	gate     sync.Mutex // held to begin something, and to close the gate
	running  sync.WaitGroup
}

// New makes a server.
func New(o Options) *Server {
	o = o.complete()
	s := &Server{
		Options: o, opIDs: opid.New(o.Keys, o.Now), version: buildVersion(),
		changed: make(chan struct{}, 1), draining: make(chan struct{}),
	}
	s.sessions.byID, s.load.of = map[string]*session{}, map[string]int{}
	s.follow.all, s.follow.upstream, s.follow.turns = map[*follower]bool{}, map[watched]int{}, map[string]chan struct{}{}
	return s
}

// buildVersion is what the program says of itself.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Run watches for changes until ctx ends, and ends sessions and streams then. Calls that are under way are waited for.
func (s *Server) Run(ctx context.Context) error {
	const looks = 4 // in the time that ends a session
	idle := time.NewTicker(max(s.SessionIdle/looks, time.Millisecond))
	defer idle.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-s.changed:
			s.announce(ctx)
		case <-look.C:
			s.announce(ctx)
		case <-idle.C:
			s.sessions.sweep(s.Now(), s.SessionIdle)
		case <-ctx.Done():
			s.gate.Lock()
			close(s.draining)
			s.gate.Unlock()
			s.running.Wait()
			s.sessions.endAll()
			return nil
		}
	}
}

// isDraining reports that the server takes nothing new.
func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// beside runs something that Run waits for, unless the server drains already.
func (s *Server) beside(run func()) bool {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.isDraining() {
		return false
	}
	s.running.Go(run)
	return true
}

// Changed says that tools or servers may not be what they were.
func (s *Server) Changed() {
	s.Upstreams.Invalidate()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
