package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// ErrIdle is the end of a call that the server neither answered nor made progress with for too long.
var ErrIdle = errors.New("the server made no progress with it")

// CallError is a call that the server did not answer.
type CallError struct {
	// Sent says that the server may have got the request.
	Sent bool
	// Lost says that the session is over, so that another one may be asked.
	Lost  bool
	cause error
}

// Error answers the reason.
func (e *CallError) Error() string { return e.cause.Error() }

// Unwrap answers the reason: [ErrIdle], an error of the context, or what broke the connection.
func (e *CallError) Unwrap() error { return e.cause }

// call is a request of ours that waits for its answer.
type call struct {
	id     int64
	method string
	// body is the whole message, header what HTTP needs beside it.
	body   []byte
	header http.Header
	// public says that somebody else than this package asks: then it may be what a question of the server is about.
	public bool
	// touch is told of progress, heed of everything else that belongs to the call; nil when nobody cares.
	touch func()
	heed  func(wire.Message)
	// accepts reports whether the caller can be asked something.
	accepts func(method string, params []byte) bool
	// withdraw is told the id of a question that the server takes back.
	withdraw func(id string)
	// release ends what the link does for it, and taken is closed when the server is known to have the request; both under the
	// session's lock, and nil where the link writes requests in their order.
	release context.CancelFunc
	taken   chan struct{}
	// take closes taken; it may be called often.
	take func()

	// sent says that the server may have got it.
	sent atomic.Bool
	// done is closed when reply is set.
	done  chan struct{}
	reply reply
}

// reply is the end of a call: a result, an error of the protocol, or a failure.
type reply struct {
	result, refusal []byte
	failure         error
}

func (s *Session) newCall(method string) *call {
	return &call{id: s.ids.Add(1), method: method, done: make(chan struct{})}
}

// begin makes a call known and hands it to the link, which settles it when it cannot be sent. The error says that the session is
// over.
func (s *Session) begin(c *call, params []byte) error {
	c.body = wire.Call(c.id, c.method, params)
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return s.Cause()
	}
	s.pending[c.id] = c
	s.mu.Unlock()
	s.link.send(c)
	return nil
}

// settle ends a call, once; what comes for it later belongs to nobody.
func (s *Session) settle(c *call, r reply) bool {
	s.mu.Lock()
	open := s.pending[c.id] == c
	if open {
		delete(s.pending, c.id)
	}
	s.mu.Unlock()
	if !open {
		return false
	}
	c.reply = r
	close(c.done)
	return true
}

// takeTime is how long a server may leave open whether it has a request before the request is cancelled all the same.
const takeTime = time.Second

// abandon gives a call up, and tells the server when it may have got it.
func (s *Session) abandon(c *call, why error) {
	if !s.settle(c, reply{failure: why}) {
		return
	}
	s.mu.Lock()
	if c.public && c.sent.Load() {
		s.strays.add(c.id, time.Now())
	}
	release, taken := c.release, c.taken
	s.mu.Unlock()
	cancels := c.sent.Load() && s.link.cancels()
	switch {
	case cancels && taken != nil:
		s.background(func(ctx context.Context) {
			defer release()
			s.cancelTaken(ctx, c, taken)
		})
	case cancels:
		s.link.post(cancellation(c))
	case release != nil:
		release()
	}
}

// cancelTaken cancels a request that travels on a connection of its own. A cancellation that overtook it would be of nothing.
func (s *Session) cancelTaken(ctx context.Context, c *call, taken <-chan struct{}) {
	timer := time.NewTimer(takeTime)
	defer timer.Stop()
	select {
	case <-taken:
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	if c.sent.Load() {
		s.link.tell(ctx, cancellation(c))
	}
}

func cancellation(c *call) []byte {
	return wire.Notification(notificationCancelled, fmt.Appendf(nil, `{"requestId":%d,"reason":"the caller gave up"}`, c.id))
}

// run does what a link does for a call, in the background; it ends with the call's being given up, and is not begun after that.
func (s *Session) run(c *call, f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(s.lifetime)
	taken := make(chan struct{})
	c.take = sync.OnceFunc(func() { close(taken) })
	s.mu.Lock()
	c.release, c.taken = cancel, taken
	s.mu.Unlock()
	s.background(func(context.Context) {
		defer cancel()
		defer c.take()
		if !c.isDone() {
			f(ctx)
		}
	})
}

// request makes a call of this package's own, with members for its parameters, and waits.
func (s *Session) request(ctx context.Context, method string, params []wire.Member) reply {
	c := s.newCall(method)
	c.header = s.headers(method, "", nil)
	if err := s.begin(c, s.ownParams(params)); err != nil {
		return reply{failure: err}
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandon(c, context.Cause(ctx))
		<-c.done
	}
	return c.reply
}

// Answer is what a server said to a call.
type Answer struct {
	// Result is the result of `tools/call` as the server wrote it, or one that says what the server refused it with.
	Result json.RawMessage
	// Failed says that the server calls it a failure.
	Failed bool
}

// Call calls a tool. Progress that the server reports moves the idle deadline; the deadline of ctx stands. A call that is given up
// is cancelled at the server, and the session stays. Nobody is there to be asked: a tool that wants input fails. The error is a
// [*CallError].
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage, idle time.Duration) (Answer, error) {
	c := s.newCall(methodCall)
	c.public = true
	c.header = s.headers(methodCall, tool, arguments)
	timer := time.AfterFunc(idle, func() { s.abandon(c, ErrIdle) })
	defer timer.Stop()
	c.touch = func() { timer.Reset(idle) }
	if err := s.begin(c, s.callParams(c.id, tool, arguments)); err != nil {
		return Answer{}, &CallError{Lost: true, cause: err}
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandon(c, context.Cause(ctx))
		<-c.done
	}
	switch r := c.reply; {
	case r.failure != nil:
		return Answer{}, s.failed(c)
	case r.refusal != nil:
		return refused(r.refusal), nil
	default:
		return answered(r.result), nil
	}
}

// ownParams adds what a modern request bears.
func (s *Session) ownParams(params []wire.Member) []byte {
	if s.modern {
		params = wire.Set(params, "_meta", fmt.Appendf(nil, `{%s,"%s":{}}`, s.meta, metaCapabilities))
	}
	return wire.Build(params)
}

// callParams writes the parameters of a tool's call, whose progress token is its id.
func (s *Session) callParams(id int64, tool string, arguments []byte) []byte {
	const rest = 96
	b := make([]byte, 0, len(arguments)+len(tool)+len(s.meta)+rest)
	b = append(b, `{"name":`...)
	b = append(b, wire.Quote(tool)...)
	b = append(b, `,"arguments":`...)
	b = append(b, arguments...)
	b = append(b, `,"_meta":{"progressToken":`...)
	b = strconv.AppendInt(b, id, 10)
	if s.modern {
		b = append(b, ',')
		b = append(b, s.meta...)
		b = append(b, `,"`+metaCapabilities+`":{}`...)
	}
	return append(b, `}}`...)
}

func (s *Session) failed(c *call) *CallError {
	sent := c.sent.Load()
	return &CallError{Sent: sent, Lost: !sent && (s.process != nil || s.isOver()), cause: c.reply.failure}
}

const (
	resultComplete = "complete"
	resultInput    = "input_required"
)

func answered(result []byte) Answer {
	members, err := wire.Object(result)
	if err != nil {
		return Failure("The server's answer is no result of a tool.")
	}
	switch kind, _ := wire.Text(wire.Get(members, "resultType")); kind {
	case "", resultComplete:
		return Answer{Result: result, Failed: string(wire.Get(members, "isError")) == "true"}
	case resultInput:
		return Failure("The server did not run the tool: it asks for input first, and nobody can give it here.")
	default:
		return Failure(fmt.Sprintf("The server answered with a result of the kind %q, which cannot be used here.", kind))
	}
}

// refused answers an error of the protocol as a failed result, so that its reader finds the server's words in the usual place.
func refused(refusal []byte) Answer {
	e := readRefusal(refusal)
	return Failure("The server refused the call: " + e.Message + " (" + strconv.FormatInt(e.Code, 10) + ")")
}

// refusal is an error of the protocol.
type refusal struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func readRefusal(data []byte) refusal {
	var r refusal
	if json.Unmarshal(data, &r) != nil && r.Message == "" {
		r.Message = "an error that cannot be read"
	}
	return r
}

// Failure is an answer of ours in the server's place, in the shape of a failed result.
func Failure(text string) Answer {
	return Answer{Result: fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"isError":true}`, wire.Quote(text)), Failed: true}
}
