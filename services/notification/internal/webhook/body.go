package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
)

const (
	// MaxBodyBytes is GitHub's own limit, and enough for Slack.
	MaxBodyBytes = 25 << 20
	// inFlightBytes bounds the bodies held at a time, whoever sends them.
	inFlightBytes = 12 * MaxBodyBytes
	// firstBytes is what a body of unknown or great length is given at first; most need no more.
	firstBytes = 64 << 10
)

// read answers the raw body and how many bytes of the budget it holds. The answer's status is 0 when all is well.
//
// What a request announces costs it nothing: the budget is taken as bytes arrive, so that a few callers who promise large
// bodies and send none do not keep the vendors out.
func (e *Edge) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (body []byte, held int64, a answer) {
	if r.Method != http.MethodPost {
		return nil, 0, refuse(http.StatusMethodNotAllowed, "method", "Webhooks are sent with POST.")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, 0, refuse(http.StatusUnsupportedMediaType, "encoding", "The body must not be compressed: send it without Content-Encoding.")
	}
	large := refuse(http.StatusRequestEntityTooLarge, "too_large", "The body is larger than the 25 MiB that a webhook may have.")
	most := r.ContentLength
	if most > MaxBodyBytes {
		return nil, 0, large
	}
	if most < 0 { // chunked: it may grow to the cap
		most = MaxBodyBytes
	}
	if err := e.inFlight.Acquire(ctx, min(most, firstBytes)); err != nil {
		return nil, 0, crowded()
	}
	held = min(most, firstBytes)
	incoming := http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	body = make([]byte, 0, held+1) // with room to meet the end
	for {
		n, err := incoming.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch _, over := errors.AsType[*http.MaxBytesError](err); {
		case errors.Is(err, io.EOF):
			return body, held, answer{}
		case over:
			return nil, held, large
		case err != nil && (ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)):
			return nil, held, unavailable("The body did not arrive in time.")
		case err != nil:
			return nil, held, refuse(http.StatusBadRequest, "unreadable", "The body did not arrive whole.")
		}
		if len(body) < cap(body) {
			continue
		}
		// Whoever holds much must not wait for more: everybody would wait for everybody.
		more := min(held, most-held)
		if !e.inFlight.TryAcquire(more) {
			return nil, held, crowded()
		}
		held += more
		body = append(make([]byte, 0, held+1), body...)
	}
}

func crowded() answer { return unavailable("Too many large requests are under way.") }
