// Package mishap makes the faults of a vendor's API happen on demand.
//
// A double hands every call to [Queue.Serve]. A test, or a program that shows
// faults, queues a [Mishap] for an operation, and the next call of it meets
// that fault for real: a status the vendor would answer, a connection that is
// cut, an answer that does not come. Mishaps are used up in order, one a call;
// with none queued the call goes well.
//
// The idea to hold: a mishap says separately whether the call took effect
// (Lands) and what the caller gets to see. The interesting faults are those in
// which the two differ.
package mishap

import (
	"net/http"
	"sync"
	"time"
)

// Answer is what a call is answered with.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Mishap is one thing that goes wrong with one call.
type Mishap struct {
	// Lands: the call takes effect although it goes wrong.
	Lands bool
	// Hold keeps the answer back until the channel is closed or the caller is
	// gone. Nil does not.
	Hold <-chan struct{}
	// Cut closes the connection instead of answering.
	Cut bool
	// Answer replaces the true answer. A zero status leaves the true one,
	// and then the call takes effect whatever Lands says.
	Answer Answer
	// Trickle is the pause before each chunk of the body; 0 sends it whole.
	Trickle time.Duration
}

// Cut closes the connection without an answer, after the call took effect if
// lands is true.
func Cut(lands bool) Mishap { return Mishap{Cut: true, Lands: lands} }

// Hang keeps the caller waiting until release is closed, and then closes the
// connection without an answer.
func Hang(release <-chan struct{}, lands bool) Mishap {
	return Mishap{Hold: release, Cut: true, Lands: lands}
}

// Slow answers truthfully, but with a pause before each chunk of the body.
func Slow(pause time.Duration) Mishap { return Mishap{Trickle: pause} }

// Status answers with a bare status, such as 502 from a proxy in between.
func Status(status int, lands bool) Mishap {
	return Mishap{Lands: lands, Answer: Answer{
		Status: status,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body:   []byte("<html><body><h1>" + http.StatusText(status) + "</h1></body></html>\n"),
	}}
}

// Queue holds the mishaps that wait and counts the calls. The zero value is
// ready for use, by several goroutines.
type Queue struct {
	mu    sync.Mutex
	queue map[string][]Mishap
	calls map[string]int
}

// Add queues mishaps for an operation, one a call.
func (q *Queue) Add(operation string, mishaps ...Mishap) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue == nil {
		q.queue = map[string][]Mishap{}
	}
	q.queue[operation] = append(q.queue[operation], mishaps...)
}

// Calls answers how often an operation was called, whatever became of it.
func (q *Queue) Calls(operation string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[operation]
}

func (q *Queue) next(operation string) (Mishap, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.calls == nil {
		q.calls = map[string]int{}
	}
	q.calls[operation]++
	waiting := q.queue[operation]
	if len(waiting) == 0 {
		return Mishap{}, false
	}
	q.queue[operation] = waiting[1:]
	return waiting[0], true
}

// Serve answers one call: act does it and answers truthfully, and the next
// mishap of the operation, if any waits, spoils it. act must have read the
// whole request before it is called, or a caller that leaves goes unnoticed.
func (q *Queue) Serve(operation string, w http.ResponseWriter, r *http.Request, act func() Answer) {
	m, spoiled := q.next(operation)
	if !spoiled {
		write(w, r, act(), 0)
		return
	}
	answer := m.Answer
	if truth := answer.Status == 0 && !m.Cut; truth || m.Lands {
		done := act()
		if truth {
			answer = done
		}
	}
	if m.Hold != nil {
		select {
		case <-m.Hold:
		case <-r.Context().Done():
		}
	}
	if m.Cut {
		panic(http.ErrAbortHandler) // how net/http closes a connection without an answer
	}
	write(w, r, answer, m.Trickle)
}

// chunk is how much of a slow body goes out at a time.
const chunk = 16

func write(w http.ResponseWriter, r *http.Request, a Answer, pause time.Duration) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	if pause == 0 {
		_, _ = w.Write(a.Body) // a caller that has gone gets nothing
		return
	}
	out := http.NewResponseController(w)
	for body := a.Body; len(body) > 0; {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.Context().Done():
			timer.Stop()
			return
		}
		n := min(chunk, len(body))
		if _, err := w.Write(body[:n]); err != nil || out.Flush() != nil {
			return // the caller has gone
		}
		body = body[n:]
	}
}
