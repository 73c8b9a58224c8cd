package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
)

// session is what a client of an older revision keeps here between its requests. It belongs to the token that opened it.
type session struct {
	id, holder, version string
	capabilities        string
	follower            *follower
	// done is closed when the session ends; ended is called then.
	done  chan struct{}
	ended func()

	mu       sync.Mutex
	over     bool
	used     time.Time
	busy     int // requests and streams under way
	streams  bool
	logLevel string
	calls    map[string]context.CancelFunc // by the client's id
	asked    map[string]chan jsonrpc.Message
	nextID   int
}

// holderOf answers whom things are handed out to: the token, as a person may have several; whoever comes without one is who it is.
func holderOf(from *rpc.Principal) string {
	return from.GetKind() + ":" + cmp.Or(from.GetTokenId(), from.GetId())
}

// enter marks the session as in use until leave is called.
func (c *session) enter(now time.Time) (leave func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	c.used = now
	return func(now time.Time) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy--
		c.used = now
	}
}

// idleSince answers since when nobody uses the session; used says that somebody does now.
func (c *session) idleSince() (since time.Time, used bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used, c.busy > 0
}

func (c *session) level() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logLevel
}

// begin gives a request a context that outlives its connection, and that its client can cancel by its id. It refuses an id that is
// in use.
func (c *session) begin(parent context.Context, id json.RawMessage) (ctx context.Context, done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := string(id)
	if _, taken := c.calls[key]; taken || c.over {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	c.calls[key] = cancel
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		cancel()
		delete(c.calls, key)
	}, true
}

// end gives up what is under way. It may be called twice.
func (c *session) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	for _, cancel := range c.calls {
		cancel()
	}
	close(c.done)
	c.ended()
}

// cancel gives a request up, as its client wishes.
func (c *session) cancel(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.calls[string(id)]; ok {
		cancel()
	}
}

// answer hands a client's answer to whoever asked.
func (c *session) answer(m jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if asked, ok := c.asked[string(m.ID)]; ok {
		delete(c.asked, string(m.ID))
		asked <- m
	}
}

// question reserves an id of ours and the place where its answer will be.
func (c *session) question() (id json.RawMessage, answered <-chan jsonrpc.Message, forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	id = json.RawMessage(`"bullpen-` + itoa(c.nextID) + `"`)
	place := make(chan jsonrpc.Message, 1)
	c.asked[string(id)] = place
	return id, place, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asked, string(id))
	}
}

// sessions are all that are open.
type sessions struct {
	mu   sync.Mutex
	byID map[string]*session
}

// add takes a session in. Where there are too many, the one that has been idle the longest ends, of the same token first; when all
// are busy, none is taken in.
func (all *sessions) add(c *session, perToken, total int) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	own := func(other *session) bool { return other.holder == c.holder }
	if all.count(own) >= perToken && !all.evict(own) {
		return false
	}
	if len(all.byID) >= total && !all.evict(func(*session) bool { return true }) {
		return false
	}
	all.byID[c.id] = c
	return true
}

func (all *sessions) count(which func(*session) bool) int {
	n := 0
	for _, c := range all.byID {
		if which(c) {
			n++
		}
	}
	return n
}

func (all *sessions) evict(which func(*session) bool) bool {
	var oldest *session
	var since time.Time
	for _, c := range all.byID {
		if at, busy := c.idleSince(); which(c) && !busy && (oldest == nil || at.Before(since)) {
			oldest, since = c, at
		}
	}
	if oldest == nil {
		return false
	}
	delete(all.byID, oldest.id)
	oldest.end()
	return true
}

func (all *sessions) lookup(id, holder string) (*session, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	c, ok := all.byID[id]
	return c, ok && c.holder == holder
}

func (all *sessions) remove(c *session) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.byID, c.id)
	c.end()
}

// sweep ends sessions that nobody used for long.
func (all *sessions) sweep(now time.Time, idle time.Duration) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for id, c := range all.byID {
		if since, busy := c.idleSince(); !busy && now.Sub(since) > idle {
			delete(all.byID, id)
			c.end()
		}
	}
}

func (all *sessions) endAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for id, c := range all.byID {
		delete(all.byID, id)
		c.end()
	}
}

// session finds the session that a request names. One of another token is not there for this one.
func (s *Server) session(w http.ResponseWriter, r *http.Request, from *rpc.Principal) (*session, bool) {
	id := r.Header.Get(headerSession)
	if id == "" {
		fail(w, http.StatusBadRequest, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The header %s is missing: begin with `initialize`.", headerSession))
		return nil, false
	}
	if version := r.Header.Get(headerVersion); version != "" && !slices.Contains(versions(), version) {
		fail(w, http.StatusBadRequest, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The revision %q is not served.", version))
		return nil, false
	}
	c, ok := s.sessions.lookup(id, holderOf(from))
	if !ok {
		fail(w, http.StatusNotFound, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "There is no such session, or no longer: begin with `initialize`."))
		return nil, false
	}
	return c, true
}

// newSessionID is 128 bits that nobody guesses, in visible ASCII.
func newSessionID() string { return rand.Text() }
