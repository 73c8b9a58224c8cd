package mcp

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

const (
	// writeTimeout is how long a client may take to take a portion of an answer. A client with a slow line has a large answer whole,
	// one that takes nothing is let go of.
	writeTimeout = 30 * time.Second
	// portion is how many bytes that is at the most.
	portion = 64 << 10
)

// answer is the answer to one request: a JSON document when its end is all there is to say, and a stream of events as soon as
// there is more, or when the end is long in coming. Safe for concurrent use.
type answer struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	// streams once the stream has begun; over when nothing can be written any more.
	streams, over bool
}

func newAnswer(w http.ResponseWriter) *answer {
	return &answer{w: w, control: http.NewResponseController(w)}
}

// send writes a message as an event, and reports whether the client can have it.
func (a *answer) send(message []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin()
	return a.event(message)
}

// alive begins the stream, or shows that it lasts.
func (a *answer) alive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin()
	a.write([]byte(": alive\n\n"))
}

// finish writes the last message: as a document of that status, or as an event of the stream.
func (a *answer) finish(status int, message []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.over:
	case a.streams:
		a.event(message)
	default:
		a.w.Header().Set("Content-Type", "application/json")
		a.w.Header().Set("Content-Length", strconv.Itoa(len(message)))
		a.w.WriteHeader(status)
		a.write(message)
	}
	a.end()
}

// cut ends the answer where it is. Nothing is written to the client after it has returned.
func (a *answer) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end()
}

// end lets the next answer on the connection begin without this one's limit.
func (a *answer) end() {
	a.over = true
	_ = a.control.SetWriteDeadline(time.Time{})
}

// begin writes the headers of a stream, at once.
func (a *answer) begin() {
	if a.streams || a.over {
		return
	}
	a.streams = true
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.w.Header().Set("Cache-Control", "no-cache, no-store, no-transform")
	a.w.WriteHeader(http.StatusOK)
	a.flush()
}

func (a *answer) event(message []byte) bool {
	var b bytes.Buffer
	b.WriteString("event: message\ndata: ")
	b.Write(rawjson.Line(message))
	b.WriteString("\n\n")
	return a.write(b.Bytes())
}

func (a *answer) write(text []byte) bool {
	for part := range slices.Chunk(text, portion) {
		if a.over {
			return false
		}
		// A writer without deadlines, as in tests of handlers, blocks on nobody.
		_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := a.w.Write(part); err != nil {
			a.over = true
			return false
		}
	}
	a.flush()
	return !a.over
}

func (a *answer) flush() {
	if err := a.control.Flush(); err != nil {
		a.over = true
	}
}
