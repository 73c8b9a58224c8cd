package hostiletest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Web is a server of the older kind over Streamable HTTP: it has sessions, and forgets them when it is told to. It is safe for
// concurrent use.
//
// Its tools: `echo` answers its arguments in JSON, `stream` the same as an event, `effect` does something first. The others do what
// `effect` does and then cut their answer off in the middle (`cut`), never begin it (`hold`), or give it byte by byte without an
// end (`drip`).
type Web struct {
	// Forgotten is how a session is refused that the server does not know: 404 as the protocol has it, or 400 or 401.
	Forgotten int
	// Release ends what hold and drip wait for, beside the caller's leaving.
	Release chan struct{}

	mu       sync.Mutex
	sessions map[string]bool
	opened   int
	counts   map[string]int
}

// NewWeb makes a server without sessions.
func NewWeb(forgotten int) *Web {
	return &Web{Forgotten: forgotten, Release: make(chan struct{}), sessions: map[string]bool{}, counts: map[string]int{}}
}

// Count answers how often something happened: a method, an `effect`, or a caller that was gone before its answer (`left`).
func (w *Web) Count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[what]
}

// Forget makes the server know no session, as after a restart.
func (w *Web) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sessions)
}

func (w *Web) happened(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// ServeHTTP implements [http.Handler].
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodDelete:
		return
	default:
		http.Error(rw, "no stream here", http.StatusMethodNotAllowed)
		return
	}
	var m message
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		http.Error(rw, "no message", http.StatusBadRequest)
		return
	}
	w.happened(m.Method)
	if m.Method == "initialize" {
		w.open(rw, m)
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	w.mu.Lock()
	known := w.sessions[session]
	w.mu.Unlock()
	switch {
	case session == "":
		// What a stateful server of the older kind says to the probe of the newest protocol.
		http.Error(rw, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: no valid session ID provided"},"id":null}`, http.StatusBadRequest)
	case !known:
		http.Error(rw, "no such session", w.Forgotten)
	case len(m.ID) == 0:
		rw.WriteHeader(http.StatusAccepted)
	default:
		w.serve(rw, r, m)
	}
}

func (w *Web) open(rw http.ResponseWriter, m message) {
	w.mu.Lock()
	w.opened++
	session := fmt.Sprintf("session-%d", w.opened)
	w.sessions[session] = true
	w.mu.Unlock()
	rw.Header().Set("Mcp-Session-Id", session)
	answerJSON(rw, m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"web","version":"1"}}`)
}

func (w *Web) serve(rw http.ResponseWriter, r *http.Request, m message) {
	switch m.Method {
	case "tools/list":
		var tools []string
		for _, name := range []string{"echo", "stream", "effect", "cut", "hold", "drip"} {
			tools = append(tools, tool(name))
		}
		answerJSON(rw, m, fmt.Sprintf(`{"tools":[%s]}`, strings.Join(tools, ",")))
	case "tools/call":
		w.call(rw, r, m)
	default:
		answerWith(rw, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID))
	}
}

func (w *Web) call(rw http.ResponseWriter, r *http.Request, m message) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(m.Params, &params)
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":%s}}`, m.ID, params.Arguments)
	if params.Name != "echo" && params.Name != "stream" {
		w.happened("effect")
	}
	switch params.Name {
	case "stream":
		answerWith(rw, "text/event-stream", "event: message\ndata: "+answer+"\n\n")
	case "cut":
		answerWith(rw, "text/event-stream", "event: message\ndata: "+answer[:len(answer)/2])
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	case "hold":
		w.wait(r)
	case "drip":
		rw.Header().Set("Content-Type", "application/json")
		for _, b := range []byte(answer[:10]) {
			_, _ = rw.Write([]byte{b})
			_ = http.NewResponseController(rw).Flush()
		}
		w.wait(r)
	default:
		answerWith(rw, "application/json", answer)
	}
}

// wait waits until the caller leaves, or everything is let go.
func (w *Web) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
		w.happened("left")
	case <-w.Release:
	}
}

func answerJSON(rw http.ResponseWriter, m message, result string) {
	answerWith(rw, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

func answerWith(rw http.ResponseWriter, kind, body string) {
	rw.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(rw, body)
}
