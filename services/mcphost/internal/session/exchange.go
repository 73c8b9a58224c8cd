package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// Request is a request of the protocol as a caller wrote it.
type Request struct {
	Method string
	// Params is one JSON object; empty for none. All but what `_meta` says of a connection goes to the server as it is.
	Params []byte
	// Capabilities are the client's, one JSON object: what its caller can be asked for. Empty for nothing.
	Capabilities []byte
	// LogLevel is the least severe message that the caller wants; empty for none.
	LogLevel string
	// Owner names who asks; a call that is kept open goes on for nobody else.
	Owner string
	// Idle is how long the server may make no progress.
	Idle time.Duration
	// Notify is told each notification about the request, one after the other: method and params, JSON. An error gives the request
	// up. Nil for nobody.
	Notify func(notification []byte) error
}

// Reply is the end of a request: the result as the server wrote it, or the error of the protocol.
type Reply struct {
	Result, Error []byte
}

// Exchange sends a request and waits for its end. A list is answered whole. A result that asks for input is handed on, and made of
// the questions that an older server asks in the middle of a call: then that call is kept open behind the result's requestState.
// The error is a [*CallError].
func (s *Session) Exchange(ctx context.Context, r Request) (Reply, error) {
	entries, _ := listed(r.Method)
	switch {
	case entries != "":
		return s.whole(ctx, r)
	case r.Method == methodSubscribe || r.Method == methodUnsubscribe:
		return s.follow(ctx, r)
	default:
		return s.exchange(ctx, r)
	}
}

func orEmpty(object []byte) []byte {
	if len(object) == 0 {
		return []byte("{}")
	}
	return object
}

// invalid is the refusal of parameters that cannot be sent.
func invalid(format string, args ...any) Reply {
	return Reply{Error: wire.Refusal(codeInvalidParams, fmt.Sprintf(format, args...))}
}

func (s *Session) exchange(ctx context.Context, r Request) (Reply, error) {
	params, err := wire.Object(orEmpty(r.Params))
	if err != nil {
		return invalid("The parameters are no JSON object."), nil
	}
	if state := wire.Get(params, "requestState"); state != nil && !s.modern {
		return s.resume(ctx, r, params, state)
	}
	x := &exchange{session: s, call: s.newCall(r.Method), wake: make(chan struct{}, 1)}
	sent, err := x.prepare(r, params)
	if err != nil {
		return invalid("These parameters cannot be sent: %s.", err), nil
	}
	if !s.modern && r.LogLevel != "" {
		s.logAtLeast(ctx, r.LogLevel)
	}
	x.idle = time.AfterFunc(r.Idle, func() { s.abandon(x.call, ErrIdle) })
	if err := s.begin(x.call, sent); err != nil {
		x.idle.Stop()
		return Reply{}, &CallError{Lost: true, cause: err}
	}
	return x.wait(ctx)
}

// exchange is a request of somebody else under way. One goroutine at a time waits for it.
type exchange struct {
	session *Session
	call    *call
	idle    *time.Timer
	bound   []byte
	expiry  *time.Timer // while it is kept

	mu       sync.Mutex
	request  Request // of the round
	token    []byte  // the caller's progress token; nil for none
	kept     bool
	messages []wire.Message // notifications that nobody took yet
	asks     []wire.Message // questions that nobody answered yet
	wake     chan struct{}
}

// maxWaiting bounds the notifications that wait for a slow caller; later ones are dropped, as the protocol allows.
const maxWaiting = 1000

// prepare answers the parameters to send, and makes the call ready for what comes back.
func (x *exchange) prepare(r Request, params []wire.Member) ([]byte, error) {
	s, c := x.session, x.call
	meta, err := wire.Object(orEmpty(wire.Get(params, "_meta")))
	if err != nil {
		return nil, errors.New("`_meta` is no JSON object")
	}
	if len(r.Capabilities) > 0 {
		if _, err := wire.Object(r.Capabilities); err != nil {
			return nil, errors.New("the client's capabilities are no JSON object")
		}
	}
	x.request, x.token, x.bound = r, wire.Get(meta, "progressToken"), bound(r.Owner, r.Method, params)
	c.public, c.heed, c.accepts, c.withdraw = true, x.heed, x.accepts, x.withdraw
	c.touch = x.touch
	name, _ := wire.Text(wire.Get(params, "name"))
	if r.Method == methodRead {
		name, _ = wire.Text(wire.Get(params, "uri"))
	}
	if r.Method == methodCall || r.Method == methodPrompt || r.Method == methodRead {
		c.header = s.headers(r.Method, name, wire.Get(params, "arguments"))
	} else {
		c.header = s.headers(r.Method, "", nil)
	}
	meta = wire.Without(meta, "progressToken", metaVersion, metaClient, metaCapabilities, metaLogLevel)
	meta = append(meta, wire.Member{Name: "progressToken", Value: fmt.Appendf(nil, "%d", c.id)})
	if s.modern {
		meta = append(meta, wire.Member{Name: metaVersion, Value: wire.Quote(modern)}, wire.Member{Name: metaClient, Value: s.self()},
			wire.Member{Name: metaCapabilities, Value: orEmpty(r.Capabilities)})
		if r.LogLevel != "" {
			meta = append(meta, wire.Member{Name: metaLogLevel, Value: wire.Quote(r.LogLevel)})
		}
	}
	return wire.Build(wire.Set(params, "_meta", wire.Build(meta))), nil
}

// touch moves the idle deadline, unless the server waits for us.
func (x *exchange) touch() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.kept {
		x.idle.Reset(x.request.Idle)
	}
}

// maxAsks bounds the questions of a call that are open.
const maxAsks = 64

func (x *exchange) takesAsk() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.asks) < maxAsks
}

// heed takes what the server says about the call.
func (x *exchange) heed(m wire.Message) {
	if m.Request() && !x.takesAsk() {
		x.session.refuse(m.ID, codeInternal, "Too many questions are open in this call.")
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case m.Request():
		x.asks = append(x.asks, m)
	case x.request.Notify == nil || len(x.messages) >= maxWaiting:
		return
	case m.Method == notificationProgress:
		if x.token == nil {
			return
		}
		members, err := wire.Object(m.Params)
		if err != nil {
			return
		}
		m.Params = wire.Build(wire.Set(members, "progressToken", x.token))
		x.messages = append(x.messages, m)
	case m.Method == notificationMessage && !severe(m.Params, x.request.LogLevel):
		return
	default:
		x.messages = append(x.messages, m)
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// wait answers the end of a round: the call's own, or questions to whoever makes it.
func (x *exchange) wait(ctx context.Context) (Reply, error) {
	for {
		ended := false
		select {
		case <-x.call.done:
			ended = true
		case <-x.wake:
		case <-ctx.Done():
			x.giveUp(context.Cause(ctx))
			ended = true
		}
		asked, err := x.tell()
		if err != nil && !ended {
			x.giveUp(err)
			ended = true
		}
		switch {
		case ended || x.call.isDone():
			x.idle.Stop()
			return x.end()
		case asked:
			if reply, ok := x.keep(); ok {
				return reply, nil
			}
		}
	}
}

// tell hands on the notifications that wait, and answers whether there are questions.
func (x *exchange) tell() (asked bool, err error) {
	x.mu.Lock()
	messages, notify := x.messages, x.request.Notify
	x.messages = nil
	asked = len(x.asks) > 0
	x.mu.Unlock()
	for _, m := range messages {
		if err := notify(notification(m)); err != nil {
			return asked, fmt.Errorf("the caller does not listen: %w", err)
		}
	}
	return asked, nil
}

func notification(m wire.Message) []byte {
	members := []wire.Member{{Name: "method", Value: wire.Quote(m.Method)}}
	if m.Params != nil {
		members = append(members, wire.Member{Name: "params", Value: m.Params})
	}
	return wire.Build(members)
}

func (x *exchange) end() (Reply, error) {
	x.refuseAsks("The call is over.")
	switch r := x.call.reply; {
	case r.failure != nil:
		return Reply{}, x.session.failed(x.call)
	case r.refusal != nil:
		return Reply{Error: r.refusal}, nil
	default:
		return Reply{Result: r.result}, nil
	}
}

// giveUp ends the call at the server as well.
func (x *exchange) giveUp(why error) {
	x.session.abandon(x.call, why)
	<-x.call.done
}

// severities are the levels of log messages, least severe first.
func severities() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// severe reports whether a log message is at least as severe as a level; none is where no level is asked for.
func severe(params []byte, level string) bool {
	members, err := wire.Object(params)
	if err != nil || level == "" {
		return false
	}
	its, _ := wire.Text(wire.Get(members, "level"))
	return slices.Index(severities(), its) >= slices.Index(severities(), level)
}

// logAtLeast has an older server log what a caller wants: there the level is the session's, and only ever lowered.
func (s *Session) logAtLeast(ctx context.Context, level string) {
	wanted := slices.Index(severities(), level)
	s.mu.Lock()
	lower := wanted >= 0 && wanted < s.logged && s.greeting.can("logging", "")
	if lower {
		s.logged = wanted
	}
	s.mu.Unlock()
	if lower {
		s.request(ctx, methodSetLevel, []wire.Member{{Name: "level", Value: wire.Quote(level)}})
	}
}
