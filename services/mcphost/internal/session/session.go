// Package session speaks MCP with one server, over the standard streams of a process or over HTTP, in whichever revision of the
// protocol the server knows.
//
// It is a client of its own on raw JSON-RPC ([wire]): whatever a server writes is handed on as it was written. A message takes this
// way:
//
//	Call, Exchange, Tools ─► pending, by id ─► link (stdio, http, sse) ─► server
//	        done ◄──────────── receive ◄───────────────────────┘
//
// A link sends and shows receive all that comes, with the call on whose stream it came where that is known. Finding out what a
// server speaks is in era.go, questions of a server in the middle of a call are in relay.go.
package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// Options say what to speak with. One of Start and HTTP is set.
type Options struct {
	// Start starts the process of a stdio server. It may be called twice.
	Start func() (*child.Process, error)
	// HTTP is the address of a server that somebody else runs.
	HTTP *HTTP
	// Protocol is what the server is declared to speak: "modern" or "legacy" skip the probe, anything else finds out.
	Protocol string
	// Legacy says that the server wanted the old handshake before. Unlike Protocol it is given up when the server does not.
	Legacy bool
	// Install is how long a program may take until it says its first word, or takes the first one from its input: a package that
	// is fetched, a cold start. 0 leaves that to the context of Open.
	Install time.Duration
	// Handshake is how long it may take from there until a protocol is agreed on; over HTTP it begins at once. 0 leaves that to the
	// context.
	Handshake time.Duration
	// Liveness is how long an address may be silent until it is asked whether it is there; 0 means 15 s.
	Liveness time.Duration
	// Version is ours, for the server's log.
	Version string
	// Started is called when the program is awake, or the address is about to be called; nil for nobody.
	Started func()
	// ResourceUpdated is told the address of a resource that changed; nil for nobody. It must not block.
	ResourceUpdated func(uri string)
	// Redact cleans what is logged; an error may quote an address or a header.
	Redact func(string) string
	Log    *slog.Logger
}

// link carries messages to a server, and hands what comes back to Session.receive.
type link interface {
	// send sends a call, and settles it when that fails. It does not wait.
	send(c *call)
	// tell sends what awaits no answer, and what is sent next comes after it. post does not wait for that.
	tell(ctx context.Context, message []byte)
	post(message []byte)
	// cancels says whether a call is given up with a notification, rather than by ending its stream.
	cancels() bool
	// agreed is told the revision; begin comes when the handshake is over: the link may listen and watch then.
	agreed(protocol string)
	begin()
	// close says goodbye with some last messages where the server outlives us, and lets go of the connections. Nothing uses them any
	// more.
	close(ctx context.Context, last [][]byte)
}

// Session is an open conversation. All methods are safe for concurrent use.
type Session struct {
	options Options
	process *child.Process // nil over HTTP
	link    link
	ids     atomic.Int64
	// heard is when the server last said something, in nanoseconds.
	heard atomic.Int64

	agreed atomic.Bool // on a protocol

	// Set before Open returns, and not changed then.
	modern   bool
	protocol string
	meta     []byte // members of `_meta` that every modern request bears
	greeting greeting
	seal     seal

	changed  chan struct{} // changes has something
	listener *listener
	bindings atomic.Pointer[map[string][]binding]
	relist   *time.Timer // under mu

	mu      sync.Mutex
	changes Changes // that nobody has taken yet
	pending map[int64]*call
	parked  map[int64]*exchange
	strays  strays
	over    bool
	cause   error
	logged  int            // the least severe level that the server was told to log
	follows map[string]int // followers by resource, of an old server

	lifetime context.Context // ends when over
	end      context.CancelFunc
	done     chan struct{}
	work     sync.WaitGroup
}

func newSession(ctx context.Context, o Options) *Session {
	s := &Session{
		options: o, pending: map[int64]*call{}, parked: map[int64]*exchange{}, strays: strays{}, follows: map[string]int{}, logged: len(severities()),
		changed: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.lifetime, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.seal = newSeal(rand.Reader)
	s.listener = newListener(s)
	s.meta = fmt.Appendf(nil, `"%s":"%s","%s":%s`, metaVersion, modern, metaClient, s.self())
	return s
}

// self is who we are.
func (s *Session) self() []byte {
	return fmt.Appendf(nil, `{"name":"bullpen","version":%s}`, wire.Quote(s.options.Version))
}

// HandshakeError says why a server did not become ready.
type HandshakeError struct {
	cause error
	// Tail are the last lines of the process's standard error.
	Tail []string
}

// Error answers the reason in a half sentence.
func (e *HandshakeError) Error() string { return e.cause.Error() }

// Unwrap answers the reason.
func (e *HandshakeError) Unwrap() error { return e.cause }

// ErrUnreachable marks the end of a session with an address that does not answer any more, or that never did.
var ErrUnreachable = errors.New("it cannot be reached")

// Protocol answers the revision that was agreed on.
func (s *Session) Protocol() string { return s.protocol }

// Legacy reports whether the server wanted the old handshake.
func (s *Session) Legacy() bool { return !s.modern }

// Capabilities answers what the server says it can do, one JSON object as it wrote it.
func (s *Session) Capabilities() []byte { return s.greeting.capabilities }

// Instructions answers the server's word to its users; it may be empty.
func (s *Session) Instructions() string { return s.greeting.instructions }

// Changes are the lists that may be others than before.
type Changes struct{ Tools, Prompts, Resources bool }

// Changed gets a value when the server says that one of its lists changed, or when its word on how long its tools hold ran out;
// many such words in a row are one. [Session.TakeChanges] says which.
func (s *Session) Changed() <-chan struct{} { return s.changed }

// TakeChanges answers what changed since it was called last.
func (s *Session) TakeChanges() Changes {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.changes
	s.changes = Changes{}
	return taken
}

func (s *Session) listsChanged(c Changes) {
	s.mu.Lock()
	s.changes.Tools = s.changes.Tools || c.Tools
	s.changes.Prompts = s.changes.Prompts || c.Prompts
	s.changes.Resources = s.changes.Resources || c.Resources
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Done is closed when the conversation is over and everything that belonged to it has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Cause answers why it is over.
func (s *Session) Cause() error {
	if s.process != nil {
		if cause := s.process.Cause(); cause != nil {
			return cause
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return s.cause
	}
	return errors.New("the connection to it was lost")
}

// Tail answers the last lines of standard error; none over HTTP.
func (s *Session) Tail() []string {
	if s.process == nil {
		return nil
	}
	return s.process.Tail()
}

// Close ends the conversation and the process, and answers when both have ended.
func (s *Session) Close() {
	s.fail(errors.New("it was closed"))
	<-s.done
}

func (s *Session) isOver() bool { return s.lifetime.Err() != nil }

// fail ends the conversation: calls under way fail, and what belongs to it is let go of in the background.
func (s *Session) fail(why error) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over, s.cause = true, why
	if s.relist != nil {
		s.relist.Stop()
	}
	left, parked := s.pending, s.parked
	s.pending, s.parked = map[int64]*call{}, map[int64]*exchange{}
	s.mu.Unlock()
	s.end()
	for _, x := range parked {
		x.expiry.Stop()
	}
	go func() {
		if s.process != nil {
			s.process.Stop() // its end is the better reason
			why = s.Cause()
		}
		for _, c := range left {
			c.reply = reply{failure: why}
			close(c.done)
		}
		s.work.Wait()
		if s.link != nil {
			s.link.close(context.WithoutCancel(s.lifetime), farewell(left, parked))
		}
		close(s.done)
	}()
}

// farewell cancels the calls that a server may be at and takes back the questions it waits for, so that it can let go of them.
func farewell(calls map[int64]*call, kept map[int64]*exchange) [][]byte {
	var last [][]byte
	for _, c := range calls {
		if c.public && c.sent.Load() {
			last = append(last, cancellation(c))
		}
	}
	for _, x := range kept {
		for _, ask := range x.drop() {
			last = append(last, wire.Failure(ask.ID, wire.Refusal(codeInternal, "The session is over.")))
		}
	}
	return last
}

// receive takes a message of the server. via is the call on whose stream it came, nil where all share one.
func (s *Session) receive(m wire.Message, via *call) {
	s.heard.Store(time.Now().UnixNano())
	switch {
	case m.Response():
		s.answered(m)
	case m.Request():
		s.asked(m, via)
	default:
		s.notified(m, via)
	}
}

func (s *Session) answered(m wire.Message) {
	if id, ok := number(m.ID); ok {
		if c := s.open(id); c != nil && s.conclude(c, reply{result: m.Result, refusal: m.Error}) {
			return
		}
		s.mu.Lock()
		delete(s.strays, id)
		s.mu.Unlock()
	}
	// Late, twice, or with an id that is none of ours.
	s.options.Log.Debug("server answers what nobody asks; it is dropped", "id", string(m.ID[:min(len(m.ID), 40)]))
}

// conclude settles a call with the server's word. A server that refuses the revision which it agreed on is asked anew what it speaks,
// in a new session.
func (s *Session) conclude(c *call, r reply) bool {
	settled := s.settle(c, r)
	if r.refusal != nil && s.agreed.Load() {
		if code := readRefusal(r.refusal).Code; code == codeNoVersion || code == codeHeaderMismatch && !s.modern {
			s.fail(errors.New("it does not speak the protocol any more that it agreed on"))
		}
	}
	return settled
}

func (s *Session) open(id int64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id]
}

// only answers the one public call under way, and nil when there is none or more than one, those included that were given up a moment
// ago: then nobody can say whose a message is.
func (s *Session) only() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strays.any(time.Now()) {
		return nil
	}
	var one *call
	for _, c := range s.pending {
		if !c.public {
			continue
		}
		if one != nil {
			return nil
		}
		one = c
	}
	return one
}

// background runs f, whose context ends with the session; done waits for it.
func (s *Session) background(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.work.Go(func() { f(s.lifetime) })
	}
}
