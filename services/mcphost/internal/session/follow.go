package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// maxFollowed bounds the resources of a server that are followed.
const maxFollowed = 1000

// follow begins or ends that changes of a resource are reported. Followers are counted: the server hears of the first and the last.
func (s *Session) follow(ctx context.Context, r Request) (Reply, error) {
	params, err := wire.Object(orEmpty(r.Params))
	uri, ok := wire.Text(wire.Get(params, "uri"))
	if err != nil || !ok || uri == "" {
		return invalid("`uri` must name the resource."), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Idle, ErrIdle)
	defer cancel()
	begins := r.Method == methodSubscribe
	if s.modern {
		return s.listener.follow(ctx, uri, begins)
	}
	s.mu.Lock()
	before := s.follows[uri]
	full := begins && before == 0 && len(s.follows) >= maxFollowed
	s.mu.Unlock()
	switch {
	case full:
		return invalid("At most %d resources of a server can be followed.", maxFollowed), nil
	case begins && before > 0 || !begins && before > 1:
		s.count(uri, begins)
		return Reply{Result: []byte("{}")}, nil
	}
	reply, err := s.exchange(ctx, r)
	if err == nil && reply.Error == nil {
		s.count(uri, begins)
	}
	return reply, err
}

func (s *Session) count(uri string, begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case begins:
		s.follows[uri]++
	case s.follows[uri] > 1:
		s.follows[uri]--
	default:
		delete(s.follows, uri)
	}
}

// following reports whether anybody follows any resource. Which one a change is about may be more than the server was asked for: it
// may be a part of that.
func (s *Session) following() bool {
	if s.modern {
		s.listener.mu.Lock()
		defer s.listener.mu.Unlock()
		return len(s.listener.uris) > 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.follows) > 0
}

// refollow tells a server that forgot the session what it was to report.
func (s *Session) refollow() {
	s.mu.Lock()
	uris := slices.Sorted(maps.Keys(s.follows))
	s.logged = len(severities())
	s.mu.Unlock()
	if len(uris) == 0 {
		return
	}
	s.background(func(ctx context.Context) {
		for _, uri := range uris {
			s.request(ctx, methodSubscribe, []wire.Member{{Name: "uri", Value: wire.Quote(uri)}})
		}
	})
}

// listener keeps one `subscriptions/listen` open at a modern server, for what changes there. Another set of things to listen for is
// another listen; the one before ends when the server has acknowledged it.
type listener struct {
	session *Session
	kick    chan struct{}

	mu      sync.Mutex
	uris    map[string]int // followers
	wanted  int            // number of the newest set of them
	known   int            // number of the set that the server acknowledged, or refused
	taken   map[string]bool
	refusal []byte
	changed chan struct{} // closed when known moves
	current *call
	serial  int // number of the set that current asks for
	// previous is open until the server has acknowledged current, so that nothing is missed between them.
	previous *call
}

func newListener(s *Session) *listener {
	return &listener{session: s, kick: make(chan struct{}, 1), uris: map[string]int{}, changed: make(chan struct{})}
}

// follow changes the set, and waits until the server has said what it thinks of it.
func (l *listener) follow(ctx context.Context, uri string, begins bool) (Reply, error) {
	if !l.session.greeting.can("resources", "subscribe") {
		return Reply{Error: wire.Refusal(codeNoMethod, "The server does not report changes of resources.")}, nil
	}
	l.mu.Lock()
	before := l.uris[uri]
	if begins && before == 0 && len(l.uris) >= maxFollowed {
		l.mu.Unlock()
		return invalid("At most %d resources of a server can be followed.", maxFollowed), nil
	}
	l.uris[uri] = before + 1
	if !begins {
		if l.uris[uri] = before - 1; before <= 1 {
			delete(l.uris, uri)
		}
	}
	if (before == 0) != (l.uris[uri] == 0) {
		l.wanted++
	}
	wanted := l.wanted
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
	for {
		l.mu.Lock()
		known, taken, refusal, changed := l.known, l.taken[uri], l.refusal, l.changed
		l.mu.Unlock()
		if known >= wanted {
			switch {
			case !begins || taken:
				return Reply{Result: []byte("{}")}, nil
			case refusal != nil:
				return Reply{Error: refusal}, nil
			default:
				return invalid("The server does not report changes of this resource."), nil
			}
		}
		select {
		case <-changed:
		case <-l.session.lifetime.Done():
			return Reply{}, &CallError{Lost: true, cause: l.session.Cause()}
		case <-ctx.Done():
			return Reply{}, &CallError{Sent: true, cause: context.Cause(ctx)}
		}
	}
}

// run keeps listening until the session ends.
func (l *listener) run(ctx context.Context) {
	wait := pauseMin
	for ctx.Err() == nil {
		c, params := l.next()
		if c == nil {
			l.acknowledge(nil, nil, nil)
			select {
			case <-l.kick:
				continue
			case <-ctx.Done():
				return
			}
		}
		began := time.Now()
		if l.session.begin(c, params) != nil {
			return
		}
		if l.hold(ctx, c) {
			wait = pauseMin
			continue // with another set
		}
		l.acknowledge(c, nil, c.reply.refusal)
		if c.reply.refusal != nil {
			l.session.options.Log.Debug("server does not report changes", "error", readRefusal(c.reply.refusal).Message)
			select { // until there is something else to ask for
			case <-l.kick:
			case <-ctx.Done():
			}
			continue
		}
		if time.Since(began) > pauseMax {
			wait = pauseMin
		}
		if !sleep(ctx, wait) {
			return
		}
		wait = bounds(2*wait, pauseMin, pauseMax)
		l.session.unheard() // whatever changed meanwhile was not heard
	}
}

// unheard says of every list that it may have changed while nobody listened.
func (s *Session) unheard() {
	s.listsChanged(Changes{Tools: true, Prompts: s.greeting.can("prompts", ""), Resources: s.greeting.can("resources", "")})
}

// hold waits while a listen is open, and reports whether there is a new set to listen for.
func (l *listener) hold(ctx context.Context, c *call) (another bool) {
	for {
		select {
		case <-c.done:
			return false
		case <-ctx.Done():
			<-c.done
			return false
		case <-l.kick:
		}
		l.mu.Lock()
		another = l.wanted != l.serial
		if another {
			l.previous, c = c, l.previous
		}
		l.mu.Unlock()
		if another {
			l.leave(c)
			return true
		}
	}
}

// leave ends a listen that another one has taken the place of.
func (l *listener) leave(c *call) {
	if c != nil {
		l.session.abandon(c, errReplaced)
	}
}

// next answers a listen for what is wanted now; nil for nothing.
func (l *listener) next() (*call, []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.session
	var filter []wire.Member
	for _, list := range []string{"tools", "prompts", "resources"} {
		if s.greeting.can(list, "listChanged") {
			filter = append(filter, wire.Member{Name: list + "ListChanged", Value: []byte("true")})
		}
	}
	if uris := slices.Sorted(maps.Keys(l.uris)); len(uris) > 0 {
		array := []byte{'['}
		for i, uri := range uris {
			if i > 0 {
				array = append(array, ',')
			}
			array = append(array, wire.Quote(uri)...)
		}
		filter = append(filter, wire.Member{Name: "resourceSubscriptions", Value: append(array, ']')})
	}
	l.serial = l.wanted
	if l.current = nil; len(filter) == 0 {
		return nil, nil
	}
	l.current = s.newCall(methodListen)
	l.current.header = s.headers(methodListen, "", nil)
	return l.current, s.ownParams([]wire.Member{{Name: "notifications", Value: wire.Build(filter)}})
}

// acknowledged reads what the server will report.
func (l *listener) acknowledged(params []byte, via *call) {
	members, err := wire.Object(params)
	if err != nil {
		return
	}
	if meta, err := wire.Object(wire.Get(members, "_meta")); err == nil && via == nil {
		if id, ok := number(wire.Get(meta, metaSubscription)); ok {
			via = l.session.open(id)
		}
	}
	taken := map[string]bool{}
	if filter, err := wire.Object(wire.Get(members, "notifications")); err == nil {
		uris, _ := wire.Elements(orEmptyList(wire.Get(filter, "resourceSubscriptions")), maxEntries)
		for _, raw := range uris {
			if uri, ok := wire.Text(raw); ok {
				taken[uri] = true
			}
		}
	}
	l.acknowledge(via, taken, nil)
}

func orEmptyList(list []byte) []byte {
	if len(list) == 0 {
		return []byte("[]")
	}
	return list
}

// acknowledge notes what became of the current listen.
func (l *listener) acknowledge(c *call, taken map[string]bool, refusal []byte) {
	l.mu.Lock()
	if c != l.current {
		l.mu.Unlock()
		return
	}
	l.known, l.taken, l.refusal = l.serial, taken, refusal
	close(l.changed)
	l.changed = make(chan struct{})
	previous := l.previous
	l.previous = nil
	l.mu.Unlock()
	l.leave(previous)
}

var errReplaced = errors.New("another listen takes its place")
