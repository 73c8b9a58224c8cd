package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// maxWatched is how many resources one client may follow.
const maxWatched = 256

// watched is a resource that somebody follows.
type watched struct{ server, uri string }

// follower is a client that wants to hear of changes. What it has not taken yet waits for it, each thing once: a change that
// happened twice is one change to hear of.
type follower struct {
	holder string
	// listens says that it has a stream of its own instead of a session.
	listens bool
	wake    chan struct{}

	mu        sync.Mutex
	gone      bool            // nothing can be followed for it any more
	lists     map[list]string // those that it follows, each with the version that it knows
	resources map[watched]bool
	order     []string
	waiting   map[string]rawjson.Object // params by key, which begins with the method
}

func newFollower(holder string) *follower {
	return &follower{holder: holder, wake: make(chan struct{}, 1), lists: map[list]string{}, resources: map[watched]bool{}, waiting: map[string]rawjson.Object{}}
}

// put leaves a notification.
func (f *follower) put(method, about string, params rawjson.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := method + " " + about
	if _, waits := f.waiting[key]; !waits {
		f.order = append(f.order, key)
	}
	f.waiting[key] = params
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take answers what waits, in the order in which it came, marked as the stream's where it has a mark.
func (f *follower) take(mark json.RawMessage) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var messages [][]byte
	for _, key := range f.order {
		params := f.waiting[key]
		if mark != nil {
			params = params.With("_meta", rawjson.Object{}.With(metaSubscription, mark).Bytes())
		}
		method := key[:slices.Index([]byte(key), ' ')]
		messages = append(messages, jsonrpc.Notification(method, params.Bytes()))
	}
	f.order = nil
	clear(f.waiting)
	return messages
}

func (f *follower) watches(w watched) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resources[w]
}

// keep takes a resource that is followed upstream for it. One that it has already, from a request beside this one, or that came too
// late, is not kept: then it counts once less upstream.
func (f *follower) keep(w watched) (kept bool, failed *jsonrpc.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.gone:
		return false, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The session has ended.")
	case f.resources[w]:
		return false, nil
	case len(f.resources) >= maxWatched:
		return false, jsonrpc.Errorf(jsonrpc.InvalidParams, "At most %d resources can be followed at a time.", maxWatched)
	default:
		f.resources[w] = true
		return true, nil
	}
}

// followers are all clients that want to hear of changes, and what is followed upstream for them.
type followers struct {
	mu  sync.Mutex
	all map[*follower]bool

	// upstream counts who follows a resource at its server, and turns has the turn of each server: see [Server.turn].
	upstream map[watched]int
	turns    map[string]chan struct{}
}

func (s *Server) registerFollower(f *follower) {
	s.follow.mu.Lock()
	defer s.follow.mu.Unlock()
	s.follow.all[f] = true
}

// followed answers those who follow now.
func (s *Server) followed() []*follower {
	s.follow.mu.Lock()
	defer s.follow.mu.Unlock()
	return slices.Collect(maps.Keys(s.follow.all))
}

// ResourceUpdated tells of a resource that changed, whoever follows it.
func (s *Server) ResourceUpdated(server, uri string) {
	for _, f := range s.followed() {
		if f.watches(watched{server, uri}) {
			f.put("notifications/resources/updated", uri, rawjson.Object{}.With("uri", rawjson.Quote(uri)))
		}
	}
}

// unfollow forgets a client, and what was followed for it alone.
func (s *Server) unfollow(ctx context.Context, f *follower) {
	s.follow.mu.Lock()
	delete(s.follow.all, f)
	s.follow.mu.Unlock()
	f.mu.Lock()
	f.gone = true
	resources := slices.Collect(maps.Keys(f.resources))
	clear(f.resources)
	f.mu.Unlock()
	for _, w := range resources {
		s.release(ctx, w)
	}
}

// subscribe and unsubscribe are how sessions follow resources.
func (s *Server) subscribe(ctx context.Context, c *session, q *request) (rawjson.Object, *jsonrpc.Error) {
	uri, ok := q.params.Text("uri")
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "`uri` must be a string.")
	}
	return rawjson.Object{}, s.watch(ctx, c.follower, uri)
}

func (s *Server) unsubscribe(ctx context.Context, c *session, q *request) (rawjson.Object, *jsonrpc.Error) {
	uri, ok := q.params.Text("uri")
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "`uri` must be a string.")
	}
	c.follower.mu.Lock()
	var held []watched
	for w := range c.follower.resources {
		if w.uri == uri {
			held = append(held, w)
			delete(c.follower.resources, w)
		}
	}
	c.follower.mu.Unlock()
	for _, w := range held {
		s.release(ctx, w)
	}
	return rawjson.Object{}, nil
}

// pour sends a follower's notifications as events, marked as the stream's where it has a mark, until the client hangs up, the
// session is done, the server drains, or the token is not good any more.
func (s *Server) pour(r *http.Request, done <-chan struct{}, a *answer, f *follower, mark json.RawMessage) {
	alive := time.NewTicker(s.KeepAlive)
	defer alive.Stop()
	a.alive()
	for {
		for _, message := range f.take(mark) {
			if !a.send(message) {
				return
			}
		}
		select {
		case <-f.wake:
		case <-alive.C:
			if !s.stillKnown(r, f.holder) {
				return
			}
			a.alive()
		case <-r.Context().Done():
			return
		case <-done:
			return
		case <-s.draining:
			return
		}
	}
}

// stillKnown reports that a request's token is what it was when the request came. Where that cannot be checked, it is believed.
func (s *Server) stillKnown(r *http.Request, holder string) bool {
	from, err := s.Identify(r.Context(), r.Header)
	if err != nil {
		return fault.ClassOf(err) == fault.Unavailable
	}
	return holderOf(from) == holder
}

// listen is how clients of the newest revision follow: one long answer, which begins with what of the wish is granted.
func (s *Server) listen(w http.ResponseWriter, r *http.Request, q *request, id json.RawMessage) {
	messages := []jsonrpc.Message{{ID: id, Method: q.method}}
	wish, ok := q.params.Object("notifications")
	if !ok {
		fail(w, http.StatusBadRequest, messages, jsonrpc.Errorf(jsonrpc.InvalidParams, "`notifications` must be an object that says what to hear of."))
		return
	}
	f := newFollower(holderOf(q.from))
	f.listens = true
	if !s.mayListen(f) {
		w.Header().Set("Retry-After", "30")
		fail(w, http.StatusServiceUnavailable, messages, jsonrpc.Errorf(jsonrpc.InternalError, "A token may listen with %d streams at a time; end one first.", s.ListensPerToken))
		return
	}
	defer s.unfollow(r.Context(), f)
	granted := s.grant(r.Context(), f, wish)
	a := newAnswer(w)
	defer a.cut()
	mark := rawjson.Object{}.With(metaSubscription, id)
	a.send(jsonrpc.Notification("notifications/subscriptions/acknowledged",
		rawjson.Object{}.With("_meta", mark.Bytes()).With("notifications", granted.Bytes()).Bytes()))
	s.pour(r, nil, a, f, id)
	if s.isDraining() {
		// The one way in which such a request ends with a result.
		end := rawjson.Object{}.With("resultType", rawjson.Quote("complete")).With("_meta", mark.With(metaServer, s.identity()).Bytes())
		a.finish(http.StatusOK, jsonrpc.Result(id, end.Bytes()))
	}
}

// mayListen registers a follower unless its token has enough.
func (s *Server) mayListen(f *follower) bool {
	s.follow.mu.Lock()
	defer s.follow.mu.Unlock()
	n := 0
	for other := range s.follow.all {
		if other.listens && other.holder == f.holder {
			n++
		}
	}
	if n >= s.ListensPerToken {
		return false
	}
	s.follow.all[f] = true
	return true
}

// grant answers what of a wish can be had.
func (s *Server) grant(ctx context.Context, f *follower, wish rawjson.Object) rawjson.Object {
	granted := rawjson.Object{}
	declared := s.capabilities(ctx, true)
	for _, l := range lists() {
		if string(wish.Get(l.wish())) == "true" && declared.Has(string(l)) {
			f.followList(l, s.versionOf(ctx, l))
			granted = granted.With(l.wish(), json.RawMessage("true"))
		}
	}
	var uris []string
	if err := json.Unmarshal(wish.Get("resourceSubscriptions"), &uris); err != nil || len(uris) == 0 {
		return granted
	}
	ctx, cancel := context.WithTimeout(ctx, grantWithin)
	defer cancel()
	followed := []json.RawMessage{}
	for _, uri := range uris[:min(len(uris), maxWatched)] {
		if ctx.Err() != nil {
			break
		}
		if failed := s.watch(ctx, f, uri); failed == nil {
			followed = append(followed, rawjson.Quote(uri))
		}
	}
	return granted.With("resourceSubscriptions", array(followed))
}
