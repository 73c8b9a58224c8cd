package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// batchVersion is the one revision that had batches.
const batchVersion = "2025-03-26"

func itoa(n int) string { return strconv.Itoa(n) }

// legacy answers messages of a session, or opens one.
func (s *Server) legacy(w http.ResponseWriter, r *http.Request, from *rpc.Principal, messages []jsonrpc.Message, batch bool) {
	if m := messages[0]; !batch && m.Method == "initialize" && m.IsRequest() {
		s.initialize(w, r, from, m)
		return
	}
	c, ok := s.session(w, r, from)
	if !ok {
		return
	}
	if batch && c.version != batchVersion {
		fail(w, http.StatusBadRequest, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The revision %s has no batches.", c.version))
		return
	}
	leave := c.enter(s.Now())
	defer func() { leave(s.Now()) }()
	var requests []jsonrpc.Message
	for _, m := range messages {
		switch {
		case m.IsRequest():
			requests = append(requests, m)
		case m.IsResponse():
			c.answer(m)
		case m.Method == "notifications/cancelled":
			c.cancel(m.Params.Get("requestId"))
		}
	}
	if len(requests) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.serve(w, r, holderOf(from), requests, false, func(a *answer) { s.answerAll(r.Context(), c, from, a, requests, batch) })
}

// answerAll answers requests side by side. A single one may be answered by a document; a batch is a stream.
func (s *Server) answerAll(ctx context.Context, c *session, from *rpc.Principal, a *answer, requests []jsonrpc.Message, batch bool) {
	if !batch {
		status, message := s.legacyAnswer(ctx, c, from, a, requests[0])
		a.finish(status, message)
		return
	}
	var running sync.WaitGroup
	for _, m := range requests {
		running.Go(func() {
			_, message := s.legacyAnswer(ctx, c, from, a, m)
			a.send(message)
		})
	}
	running.Wait()
}

func (s *Server) legacyAnswer(ctx context.Context, c *session, from *rpc.Principal, a *answer, m jsonrpc.Message) (status int, message []byte) {
	ctx, done, ok := c.begin(ctx, m.ID)
	if !ok {
		return http.StatusBadRequest, jsonrpc.Failure(m.ID, jsonrpc.Errorf(jsonrpc.InvalidRequest, "A request with this id is under way."))
	}
	defer done()
	meta := metaOf(m)
	q := &request{
		from: from, method: m.Method, params: m.Params, capabilities: c.capabilities, logLevel: c.level(), progressToken: meta.Get("progressToken"),
		notify: func(method string, params json.RawMessage) { a.send(jsonrpc.Notification(method, params)) },
	}
	result, failed := s.legacyResult(ctx, c, a, q)
	if failed != nil {
		return http.StatusOK, jsonrpc.Failure(m.ID, failed)
	}
	return http.StatusOK, jsonrpc.Result(m.ID, result.Bytes())
}

// maxRounds is how often one request may ask its client for something.
const maxRounds = 16

// legacyResult answers the methods of older revisions. A result that asks for input becomes requests to the client, and the
// request is made again with what it answered.
func (s *Server) legacyResult(ctx context.Context, c *session, a *answer, q *request) (rawjson.Object, *jsonrpc.Error) {
	switch q.method {
	case "ping":
		return rawjson.Object{}, nil
	case "logging/setLevel":
		return s.setLevel(c, q)
	case "resources/subscribe":
		return s.subscribe(ctx, c, q)
	case "resources/unsubscribe":
		return s.unsubscribe(ctx, c, q)
	case "server/discover", "initialize":
		return nil, unknownMethod(q.method)
	}
	for range maxRounds {
		reply, failed := s.handle(ctx, q)
		if failed != nil {
			return nil, failed
		}
		if !reply.inputRequired {
			return reply.result.Without("resultType"), nil
		}
		if failed := undeclared(q, reply.result); failed != nil {
			return nil, failed
		}
		if q.inputResponses, failed = s.askClient(ctx, c, a, reply.result); failed != nil {
			return nil, failed
		}
		q.requestState = reply.result.Get("requestState")
	}
	return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The server asked for something %d times; that is enough.", maxRounds)
}

// answerWithin is how long a client, and the person at it, may take.
const answerWithin = 10 * time.Minute

// askClient sends what a result asks for over the stream of the request, all at once, and waits for the answers.
func (s *Server) askClient(ctx context.Context, c *session, a *answer, result rawjson.Object) (json.RawMessage, *jsonrpc.Error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	asked, _ := result.Object("inputRequests")
	type pending struct {
		name     string
		answered <-chan jsonrpc.Message
	}
	var waiting []pending
	for _, ask := range asked {
		wants, err := rawjson.Parse(ask.Value)
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The server asks for something that cannot be read: %s.", err)
		}
		method, _ := wants.Text("method")
		params := wants.Get("params")
		if params == nil {
			params = json.RawMessage("{}")
		}
		id, answered, forget := c.question()
		defer forget()
		if !a.send(jsonrpc.Request(id, method, params)) {
			return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The client cannot be asked: it has hung up.")
		}
		waiting = append(waiting, pending{ask.Name, answered})
	}
	responses := rawjson.Object{}
	for _, p := range waiting {
		select {
		case m := <-p.answered:
			if m.Failure != nil {
				return nil, declined(m.Failure)
			}
			responses = responses.With(p.name, m.Result)
		case <-ctx.Done():
			return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The client did not answer what it was asked.")
		case <-s.draining:
			return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The server is being stopped and waits for no answer any more.")
		}
	}
	return responses.Bytes(), nil
}

// declined hands a client's own error back to it.
func declined(failure json.RawMessage) *jsonrpc.Error {
	failed := &jsonrpc.Error{}
	if err := json.Unmarshal(failure, failed); err != nil || failed.Code == 0 {
		return jsonrpc.Errorf(jsonrpc.InternalError, "The client refused what it was asked.")
	}
	failed.Message = "The client refused what it was asked: " + failed.Message
	return failed
}

// initialize opens a session.
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, from *rpc.Principal, m jsonrpc.Message) {
	version, ok := m.Params.Text("protocolVersion")
	if !ok {
		fail(w, http.StatusBadRequest, []jsonrpc.Message{m}, jsonrpc.Errorf(jsonrpc.InvalidParams, "`protocolVersion` must be a string."))
		return
	}
	if !slices.Contains(versions(), version) || modernVersion(version) {
		version = versions()[1]
	}
	capabilities := json.RawMessage("{}")
	if declared, ok := m.Params.Object("capabilities"); ok {
		capabilities = declared.Bytes()
	}
	c := &session{
		id: newSessionID(), holder: holderOf(from), version: version, capabilities: string(capabilities), done: make(chan struct{}), used: s.Now(),
		calls: map[string]context.CancelFunc{}, asked: map[string]chan jsonrpc.Message{},
	}
	c.follower = newFollower(c.holder)
	lasting := context.WithoutCancel(r.Context())
	c.ended = func() { s.beside(func() { s.unfollow(lasting, c.follower) }) }
	if !s.sessions.add(c, s.SessionsPerToken, s.Sessions) {
		w.Header().Set("Retry-After", "30")
		fail(w, http.StatusServiceUnavailable, []jsonrpc.Message{m}, jsonrpc.Errorf(jsonrpc.InternalError, "Too many sessions are open, all of them in use; end one first."))
		return
	}
	declared := s.capabilities(r.Context(), false)
	for _, l := range lists() {
		if declared.Has(string(l)) {
			c.follower.followList(l, s.versionOf(r.Context(), l))
		}
	}
	s.registerFollower(c.follower)
	result := rawjson.Object{}.With("protocolVersion", rawjson.Quote(version)).
		With("capabilities", declared.Bytes()).With("serverInfo", s.identity()).
		With("instructions", rawjson.Quote(s.instructions(r.Context())))
	w.Header().Set(headerSession, c.id)
	newAnswer(w).finish(http.StatusOK, jsonrpc.Result(m.ID, result.Bytes()))
}

// legacyEnd ends a session as its client wishes.
func (s *Server) legacyEnd(w http.ResponseWriter, _ *http.Request, c *session) {
	s.sessions.remove(c)
	w.WriteHeader(http.StatusNoContent)
}

// legacyStream brings what belongs to no request, as long as the client listens. A session has one such stream.
func (s *Server) legacyStream(w http.ResponseWriter, r *http.Request, c *session) {
	if !accepts(append(r.Header.Values("Accept"), "application/json")) {
		fail(w, http.StatusNotAcceptable, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "Accept text/event-stream."))
		return
	}
	if !c.openStream() {
		fail(w, http.StatusConflict, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The session has a stream already."))
		return
	}
	defer c.closeStream()
	leave := c.enter(s.Now())
	defer func() { leave(s.Now()) }()
	a := newAnswer(w)
	defer a.cut()
	s.pour(r, c.done, a, c.follower, nil)
}

func (c *session) openStream() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams {
		return false
	}
	c.streams = true
	return true
}

func (c *session) closeStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = false
}

// levels are those of log messages, the least severe first.
func levels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

func (s *Server) setLevel(c *session, q *request) (rawjson.Object, *jsonrpc.Error) {
	level, _ := q.params.Text("level")
	if !slices.Contains(levels(), level) {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "`level` must be one of %v.", levels())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logLevel = level
	return rawjson.Object{}, nil
}
