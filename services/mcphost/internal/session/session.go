// Package session speaks MCP with one server, over the standard streams of a process or over Streamable HTTP, in whichever
// revision of the protocol the server knows.
//
// The SDK does the protocol. What it decodes, though, is not what the server wrote: large integers, unset hints, unknown members
// and icons get lost on the way. So this package listens beside it, on the wire, and answers results and tools as raw JSON
// (recorder). The SDK's own reading of them is not used.
//
// Finding out what a server speaks:
//
//	server/discover ─► answered: modern, or the server's word that it is not ─► initialize
//	               └─► silence: initialize on the same process, which may only be slow to start
//	                          └─► silence, exit: a new process, and initialize as the first thing it hears
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
)

const (
	// probeTime is how long a server has for its answer to the first question of the newest protocol.
	probeTime = 3 * time.Second
	// modern is the first revision without a handshake; legacy the last with one.
	modern, legacy = "2026-07-28", "2025-11-25"
)

// Options say what to speak with. One of Start and HTTP is set.
type Options struct {
	// Start starts the process of a stdio server. It may be called twice.
	Start func() (*child.Process, error)
	// HTTP is the address of a server that somebody else runs.
	HTTP *HTTP
	// Legacy skips the probe: the server is known to want the old handshake.
	Legacy bool
	// Version is ours, for the server's log.
	Version string
	// Started is called when the process runs or the address is about to be called; nil for nobody.
	Started func()
	// Redact cleans what is logged; an error may quote an address or a header.
	Redact func(string) string
	Log    *slog.Logger
}

// Session is an open conversation. All methods are safe for concurrent use.
type Session struct {
	options Options
	client  *mcp.ClientSession
	process *child.Process // nil over HTTP
	http    *httpTransport // nil over stdio
	records *recorder
	changed chan struct{}
	tokens  counter
	done    chan struct{}
	once    sync.Once
}

// Open starts what must be started and agrees on a protocol, within ctx. What it started is ended when it fails.
func Open(ctx context.Context, o Options) (*Session, error) {
	if o.Legacy {
		return open(ctx, o, legacy)
	}
	probe, cancel := halfOf(ctx)
	defer cancel()
	s, err := open(probe, o, modern)
	if err == nil || ctx.Err() != nil || errors.Is(err, errStart) {
		return s, err
	}
	o.Log.Debug("server did not take the probe and is started anew without it", "error", o.Redact(err.Error()))
	return open(ctx, o, legacy)
}

// halfOf leaves half of the time for a second start.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	now := time.Now()
	return context.WithDeadline(ctx, now.Add(deadline.Sub(now)/2))
}

// errStart marks what cannot go better the second time: there is no program, or no address.
var errStart = errors.New("it could not be started")

func open(ctx context.Context, o Options, version string) (*Session, error) {
	s := &Session{options: o, records: newRecorder(), changed: make(chan struct{}, 1), done: make(chan struct{})}
	transport, err := s.transport()
	if err != nil {
		return nil, err
	}
	if o.Started != nil {
		o.Started()
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "bullpen", Version: o.Version}, &mcp.ClientOptions{
		Logger:                 slog.New(slog.DiscardHandler), // it would quote messages, secrets included
		Capabilities:           &mcp.ClientCapabilities{},
		MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { s.toolsChanged() },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.records.progress(r.Params.ProgressToken)
		},
	})
	s.client, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, s.abort(ctx, err)
	}
	go func() {
		_ = s.client.Wait()
		s.end()
		close(s.done)
	}()
	return s, nil
}

func (s *Session) transport() (mcp.Transport, error) {
	if s.options.HTTP != nil {
		var err error
		s.http, err = newHTTPTransport(*s.options.HTTP, s.records)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errStart, err)
		}
		return s.http.sdk(), nil
	}
	var err error
	if s.process, err = s.options.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", errStart, err)
	}
	return &stdio{process: s.process, records: s.records}, nil
}

// abort ends what a failed handshake left, and answers why it failed. A process that ended is the reason, whatever the SDK saw.
func (s *Session) abort(ctx context.Context, err error) error {
	var cause error
	if s.process != nil {
		cause = s.process.Cause()
	}
	s.end()
	switch {
	case cause != nil && !errors.Is(cause, child.ErrStopped):
		return &HandshakeError{cause: cause, Tail: s.tail()}
	case ctx.Err() != nil:
		return &HandshakeError{cause: errors.New("it did not answer the handshake in time"), Tail: s.tail()}
	default:
		return &HandshakeError{cause: fmt.Errorf("the handshake failed: %w", err), Tail: s.tail()}
	}
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

func (s *Session) tail() []string {
	if s.process == nil {
		return nil
	}
	return s.process.Tail()
}

// Protocol answers the revision that was agreed on.
func (s *Session) Protocol() string {
	if r := s.client.InitializeResult(); r != nil {
		return r.ProtocolVersion
	}
	return ""
}

// Legacy reports whether the server wanted the old handshake.
func (s *Session) Legacy() bool { return s.Protocol() < modern }

// Changed gets a value when the server says that its tools changed; many such words in a row are one.
func (s *Session) Changed() <-chan struct{} { return s.changed }

func (s *Session) toolsChanged() {
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
	return errors.New("the connection to it was lost")
}

// Tail answers the last lines of standard error; none over HTTP.
func (s *Session) Tail() []string { return s.tail() }

// Close ends the conversation and the process, and answers when both have ended.
func (s *Session) Close() {
	if s.process != nil {
		s.process.Stop() // first: the SDK would wait for answers that no longer come
	}
	_ = s.client.Close()
	<-s.done
}

// end lets go of the process or the connections.
func (s *Session) end() {
	s.once.Do(func() {
		if s.process != nil {
			s.process.Stop()
		}
		if s.http != nil {
			s.http.close()
		}
	})
}
