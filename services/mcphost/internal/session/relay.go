package session

import (
	"context"
	"errors"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// An older server asks in the middle of a call. Its question becomes the result of the round, and the call is kept open behind a
// sealed state until the same request comes back with the answer:
//
//	caller: tools/call ───────────────► server: tools/call
//	        input_required, state ◄─── elicitation/create
//	caller: tools/call, answer, state ► its answer
//	        result ◄────────────────── result

const (
	// canBeAsked is what older servers are told at the handshake that we can be asked for. Whether anybody can is known only when they
	// do.
	canBeAsked = `{"roots":{},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}`
	// maxKept bounds the calls of a session that wait for input, and keptFor how long each does.
	maxKept, keptFor = 64, 5 * time.Minute
)

var errExpired = errors.New("nobody answered the server's question in time")

// accepts reports whether the caller of the round can be asked something.
func (x *exchange) accepts(method string, params []byte) bool {
	x.mu.Lock()
	capabilities := orEmpty(x.request.Capabilities)
	x.mu.Unlock()
	members, err := wire.Object(capabilities)
	if err != nil {
		return false
	}
	switch method {
	case methodSample:
		return wire.Get(members, "sampling") != nil
	case methodRoots:
		return wire.Get(members, "roots") != nil
	default:
		return elicits(wire.Get(members, "elicitation"), params)
	}
}

// elicits reports whether a capability holds for the mode of a question; without a word on modes it holds for forms.
func elicits(capability, params []byte) bool {
	modes, err := wire.Object(capability)
	if err != nil {
		return false
	}
	mode := "form"
	if question, err := wire.Object(params); err == nil {
		if text, ok := wire.Text(wire.Get(question, "mode")); ok {
			mode = text
		}
	}
	return wire.Get(modes, mode) != nil || mode == "form" && wire.Get(modes, "url") == nil
}

// keep makes the questions that are open the result of the round, and keeps the call. When there is no room, they are refused and
// the round goes on.
func (x *exchange) keep() (Reply, bool) {
	s := x.session
	x.mu.Lock()
	asks := append([]wire.Message(nil), x.asks...)
	x.kept = len(asks) > 0
	x.mu.Unlock()
	if len(asks) == 0 {
		return Reply{}, false
	}
	until := time.Now().Add(keptFor)
	s.mu.Lock()
	room := !s.over && len(s.parked) < maxKept
	if room {
		x.idle.Stop() // it is not the server who is silent
		x.expiry = time.AfterFunc(time.Until(until), x.expire)
		s.parked[x.call.id] = x
	}
	s.mu.Unlock()
	if !room {
		x.mu.Lock()
		x.kept = false
		x.mu.Unlock()
		x.refuseAsks("Too many calls wait for input already.")
		return Reply{}, false
	}
	return x.inputRequired(asks, s.seal.close(x.call.id, until, x.bound)), true
}

func (x *exchange) inputRequired(asks []wire.Message, state string) Reply {
	requests := make([]wire.Member, 0, len(asks))
	for _, ask := range asks {
		members := []wire.Member{{Name: "method", Value: wire.Quote(ask.Method)}}
		if params := withoutToken(ask.Params); params != nil {
			members = append(members, wire.Member{Name: "params", Value: params})
		}
		requests = append(requests, wire.Member{Name: keyOf(ask), Value: wire.Build(members)})
	}
	return Reply{Result: wire.Build([]wire.Member{
		{Name: "resultType", Value: wire.Quote(resultInput)},
		{Name: "inputRequests", Value: wire.Build(requests)},
		{Name: "requestState", Value: wire.Quote(state)},
	})}
}

// withoutToken drops the server's progress token: nobody reports to it.
func withoutToken(params []byte) []byte {
	members, err := wire.Object(params)
	if err != nil {
		return params
	}
	meta, err := wire.Object(wire.Get(members, "_meta"))
	if err != nil || wire.Get(meta, "progressToken") == nil {
		return params
	}
	if meta = wire.Without(meta, "progressToken"); len(meta) == 0 {
		return wire.Build(wire.Without(members, "_meta"))
	}
	return wire.Build(wire.Set(members, "_meta", wire.Build(meta)))
}

// keyOf names a question in a result. A text and a number that look alike are two ids.
func keyOf(ask wire.Message) string { return "ask-" + string(ask.ID) }

// expire gives a call up whose caller did not come back.
func (x *exchange) expire() {
	if x.session.take(x.call.id) == x {
		x.giveUp(errExpired)
		x.refuseAsks("Nobody answered in time.")
	}
}

// take answers a kept call, once.
func (s *Session) take(id int64) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.parked[id]
	if x != nil {
		delete(s.parked, id)
		x.expiry.Stop()
	}
	return x
}

// resume goes on with a call that was kept.
func (s *Session) resume(ctx context.Context, r Request, params []wire.Member, state []byte) (Reply, error) {
	text, _ := wire.Text(state)
	id, ok := s.seal.open(text, time.Now(), bound(r.Owner, r.Method, params))
	if !ok {
		return invalid("The requestState is none of this request, or its time is over: make the request anew."), nil
	}
	responses, err := wire.Object(orEmpty(wire.Get(params, "inputResponses")))
	if err != nil {
		return invalid("`inputResponses` is no JSON object."), nil
	}
	x := s.take(id)
	if x == nil {
		return invalid("The requestState has been used, or the call behind it is over: make the request anew."), nil
	}
	var token []byte
	if meta, err := wire.Object(orEmpty(wire.Get(params, "_meta"))); err == nil {
		token = wire.Get(meta, "progressToken")
	}
	x.mu.Lock()
	x.request, x.token, x.kept = r, token, false
	var answered []wire.Message
	var left []wire.Message
	for _, ask := range x.asks {
		if wire.Get(responses, keyOf(ask)) != nil {
			answered = append(answered, ask)
		} else {
			left = append(left, ask)
		}
	}
	x.asks = left
	x.idle.Reset(r.Idle)
	x.mu.Unlock()
	for _, ask := range answered {
		s.link.post(wire.Result(ask.ID, wire.Get(responses, keyOf(ask))))
	}
	select {
	case x.wake <- struct{}{}: // whatever is left is asked again
	default:
	}
	return x.wait(ctx)
}

// refuseAsks answers the questions that are open.
func (x *exchange) refuseAsks(why string) {
	for _, ask := range x.drop() {
		x.session.refuse(ask.ID, codeInternal, why)
	}
}

// drop answers the questions that are open, and forgets them.
func (x *exchange) drop() []wire.Message {
	x.mu.Lock()
	defer x.mu.Unlock()
	asks := x.asks
	x.asks = nil
	return asks
}

// withdrawn drops a question that the server takes back.
func (s *Session) withdrawn(params []byte) {
	members, err := wire.Object(params)
	if err != nil {
		return
	}
	id := string(wire.Get(members, "requestId"))
	s.mu.Lock()
	var calls []*call
	for _, c := range s.pending {
		if c.withdraw != nil {
			calls = append(calls, c)
		}
	}
	s.mu.Unlock()
	for _, c := range calls {
		c.withdraw(id)
	}
}

// withdraw drops one question.
func (x *exchange) withdraw(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, ask := range x.asks {
		if string(ask.ID) == id {
			x.asks = append(x.asks[:i:i], x.asks[i+1:]...)
			return
		}
	}
}
