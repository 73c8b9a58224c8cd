package mcp

import (
	"net/http"
	"sync"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
)

// load counts the requests under way for each holder of a token. One whose client hung up counts for as long as it runs.
type load struct {
	mu sync.Mutex
	of map[string]int
}

// begin counts n more, all or none, unless the holder had more than limit then.
func (l *load) begin(holder string, n, limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 && l.of[holder]+n > limit {
		return false
	}
	l.of[holder] += n
	return true
}

func (l *load) end(holder string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[holder] -= n; l.of[holder] == 0 {
		delete(l.of, holder)
	}
}

// weight is how much requests count. Whoever asks whether somebody is there is answered always.
func weight(requests []jsonrpc.Message) (n int) {
	for _, m := range requests {
		if m.Method != "ping" {
			n++
		}
	}
	return n
}

// overloaded refuses requests that were not begun.
func (s *Server) overloaded(w http.ResponseWriter, requests []jsonrpc.Message) {
	if len(requests) > 1 {
		requests = nil // a batch has no id
	}
	w.Header().Set("Retry-After", "1")
	fail(w, http.StatusTooManyRequests, requests, jsonrpc.Errorf(jsonrpc.InternalError,
		"A token may have %d requests under way at a time; nothing was done, send it again when one of them has ended.", s.CallsPerToken))
}
