package session

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// exchange is one request of ours and what came back, as it stood on the wire.
type exchange struct {
	// sent is set before the first byte is written: from then on the server may have got it.
	sent atomic.Bool

	mu      sync.Mutex
	result  json.RawMessage
	refusal *jsonrpc.Error
	touched func()
}

// answer is what the server said: a result, an error of the protocol, or nothing.
func (e *exchange) answer() (json.RawMessage, *jsonrpc.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.result, e.refusal
}

type exchangeKey struct{}

func withExchange(ctx context.Context, e *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, e)
}

// recorder joins requests with what comes back. The context with which the SDK writes a request is the one that the call was made
// with, and so says whose it is; the answer is found by the request's id.
type recorder struct {
	mu      sync.Mutex
	waiting map[jsonrpc.ID]*exchange
	tokens  map[string]*exchange // by progress token
}

func newRecorder() *recorder {
	return &recorder{waiting: map[jsonrpc.ID]*exchange{}, tokens: map[string]*exchange{}}
}

// request is told of every request before it is written. Notifications have no id.
func (r *recorder) request(ctx context.Context, id jsonrpc.ID) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok || !id.IsValid() {
		return
	}
	e.sent.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[id] = e
}

// unsent is told that a request did not leave, or was turned away before anybody looked at it.
func (r *recorder) unsent(id jsonrpc.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.waiting[id]; ok {
		e.sent.Store(false)
		delete(r.waiting, id)
	}
}

// response is told of every answer before the SDK is.
func (r *recorder) response(id jsonrpc.ID, result json.RawMessage, refusal *jsonrpc.Error) {
	r.mu.Lock()
	e, ok := r.waiting[id]
	delete(r.waiting, id)
	r.mu.Unlock()
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.result, e.refusal = result, refusal
}

// expect lets progress under a token reach the exchange until forget.
func (r *recorder) expect(token string, e *exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens[token] = e
}

// forget drops the exchange, answered or not.
func (r *recorder) forget(token string, e *exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tokens, token)
	for id, other := range r.waiting {
		if other == e {
			delete(r.waiting, id)
		}
	}
}

func (r *recorder) progress(token any) {
	name, ok := token.(string)
	if !ok {
		return // ours are texts
	}
	r.mu.Lock()
	e := r.tokens[name]
	r.mu.Unlock()
	if e != nil && e.touched != nil {
		e.touched()
	}
}
