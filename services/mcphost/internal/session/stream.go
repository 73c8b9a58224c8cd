package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

const (
	// resumes is how often in a row a stream is taken up again that brings nothing new.
	resumes = 5
	// pauseMin and pauseMax bound the wait before a stream is taken up again.
	pauseMin, pauseMax = time.Second, time.Minute
)

// stream reads the events of a call until it is settled. Where the server numbers them, a stream that was cut off is taken up again
// after the last one.
func (l *httpLink) stream(ctx context.Context, c *call, body io.Reader) {
	last, pause, err := l.events(c, body, "")
	for tries := 0; tries < resumes && last != "" && l.cancels(); tries++ {
		if c.isDone() || !sleep(ctx, bounds(pause, 0, pauseMax)) {
			return
		}
		at := last
		if failure := l.get(ctx, last, func(body io.Reader) { at, pause, err = l.events(c, body, last) }); failure != nil {
			err = failure
		}
		if at != last {
			last, tries = at, -1
		}
	}
	if l.session.settle(c, reply{failure: fmt.Errorf("its answer was cut off: %w", err)}) {
		l.suspect()
	}
}

// events shows the session what a stream brings, until it ends or the call on it is settled. c is nil for a stream that belongs to
// no call.
func (l *httpLink) events(c *call, body io.Reader, from string) (last string, pause time.Duration, err error) {
	l.streams.Read(body, maxMessage, func(events *wire.Events) { last, pause, err = l.drain(c, events, from) })
	return last, pause, err
}

func (l *httpLink) drain(c *call, events *wire.Events, from string) (last string, pause time.Duration, err error) {
	last, pause = from, pauseMin
	for {
		e, err := events.Next()
		if id := events.ID(); id != "" {
			last = id
		}
		if events.Retry() > 0 {
			pause = events.Retry()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return last, pause, err
		}
		if len(bytes.TrimSpace(e.Data)) == 0 {
			continue // it only has an id
		}
		messages, err := wire.Decode(e.Data)
		if err != nil {
			l.session.options.Log.Debug("server sends an event that is no message; it is skipped")
			continue
		}
		for _, m := range messages {
			l.session.receive(m, c)
		}
		if c.isDone() {
			return last, pause, nil
		}
	}
}

// isDone reports whether a call is settled; no call never is.
func (c *call) isDone() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// get asks for a stream of events, after the last one seen, and shows it.
func (l *httpLink) get(ctx context.Context, last string, show func(body io.Reader)) error {
	id, header := l.headers(nil)
	header.Del("Content-Type")
	header.Set("Accept", typeEvents)
	if last != "" {
		header.Set(headerLast, last)
	}
	var refused error
	err := l.door.do(ctx, http.MethodGet, l.address, nil, header, func(r *http.Response) {
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case r.StatusCode == http.StatusOK && kind == typeEvents:
			show(r.Body)
		case lost(r.StatusCode, refusalOf(r), id):
			refused = errForgotten
		default:
			refused = statusError(r.StatusCode)
		}
	})
	if err != nil {
		return err
	}
	return refused
}

// listen follows what the server says outside of calls, where it offers that.
func (l *httpLink) listen(ctx context.Context) {
	answered := sync.OnceFunc(func() { close(l.listening) })
	defer answered()
	last := ""
	for wait := pauseMin; ctx.Err() == nil; {
		id, _ := l.headers(nil)
		pause := time.Duration(0)
		err := l.get(ctx, last, func(body io.Reader) {
			answered()
			last, pause, _ = l.events(nil, body, last)
		})
		answered()
		var status statusError
		switch {
		case err == nil:
			wait = bounds(pause, pauseMin, pauseMax)
		case errors.As(err, &status) && status < http.StatusInternalServerError:
			return // it offers none
		case errors.Is(err, errForgotten):
			last = ""
			if l.renew(ctx, id) != nil {
				wait = bounds(2*wait, pauseMin, pauseMax)
			}
		default:
			l.suspect()
			wait = bounds(2*wait, pauseMin, pauseMax)
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// refusalOf reads the body of a response that refuses.
func refusalOf(r *http.Response) []byte {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRefusal))
	if err != nil {
		return nil
	}
	return body
}

func bounds(d, least, most time.Duration) time.Duration { return max(least, min(d, most)) }

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
