package session

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// sseLink is the transport of 2024-11-05: one stream of events brings everything, and its first event names the address to which
// messages are posted.
type sseLink struct {
	session *Session
	door    *door
	to      string
}

func newSSELink(s *Session, d *door) *sseLink { return &sseLink{session: s, door: d} }

// open begins the stream, and answers when the server has said where messages go, or ctx ends.
func (l *sseLink) open(ctx context.Context) error {
	ready := make(chan error, 1)
	l.session.background(func(lifetime context.Context) {
		header := http.Header{"Accept": {typeEvents}}
		err := l.door.do(lifetime, http.MethodGet, l.door.target.String(), nil, header, func(r *http.Response) {
			events, err := l.connect(r)
			ready <- err
			if err == nil {
				l.read(events)
			}
		})
		if err != nil {
			ready <- unreachable(err)
		}
	})
	select {
	case err := <-ready:
		return err
	case <-l.session.lifetime.Done():
		return l.session.Cause()
	case <-ctx.Done():
		return errWedged // ending the session ends the request
	}
}

// connect reads the stream up to the word where messages go.
func (l *sseLink) connect(r *http.Response) (*wire.Events, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.StatusCode != http.StatusOK:
		return nil, statusError(r.StatusCode)
	case kind != typeEvents:
		return nil, errors.New("it offers no stream of events")
	}
	events := wire.NewEvents(r.Body, maxMessage)
	for {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("its stream ended before it said where messages go: %w", err)
		}
		if e.Name == "endpoint" {
			l.to, err = l.endpoint(string(e.Data))
			return events, err
		}
	}
}

// endpoint reads where messages go, which must be where the stream came from.
func (l *sseLink) endpoint(text string) (string, error) {
	at, err := url.Parse(text)
	if err != nil {
		return "", errors.New("it names an address for messages that is none")
	}
	at = l.door.target.ResolveReference(at)
	if at.Host != l.door.target.Host || at.Scheme != l.door.target.Scheme {
		return "", errors.New("it wants messages sent to another host, which is not done")
	}
	return at.String(), nil
}

func (l *sseLink) read(events *wire.Events) {
	for {
		e, err := events.Next()
		if err != nil {
			l.session.fail(fmt.Errorf("%w: its stream of events ended", ErrUnreachable))
			return
		}
		messages, err := wire.Decode(e.Data)
		if err != nil {
			continue
		}
		for _, m := range messages {
			l.session.receive(m, nil)
		}
	}
}

func (l *sseLink) send(c *call) {
	l.session.run(c, func(ctx context.Context) {
		c.sent.Store(true)
		status := 0
		err := l.door.do(ctx, http.MethodPost, l.to, c.body, http.Header{"Content-Type": {typeJSON}}, func(r *http.Response) { status = r.StatusCode })
		switch {
		case err != nil:
			if neverArrived(err) {
				c.sent.Store(false)
			}
			l.session.settle(c, reply{failure: unreachable(err)})
		case status >= http.StatusBadRequest:
			c.sent.Store(status >= http.StatusInternalServerError)
			l.session.settle(c, reply{failure: statusError(status)})
		} // otherwise the answer comes on the stream
	})
}

func (l *sseLink) post(message []byte) {
	l.session.background(func(ctx context.Context) { l.tell(ctx, message) })
}

func (l *sseLink) tell(ctx context.Context, message []byte) {
	ctx, cancel := context.WithTimeout(ctx, errandTime)
	defer cancel()
	_ = l.door.do(ctx, http.MethodPost, l.to, message, http.Header{"Content-Type": {typeJSON}}, nil)
}

func (l *sseLink) cancels() bool { return true }

func (l *sseLink) agreed(string) {}

func (l *sseLink) begin() {}

func (l *sseLink) close(context.Context, [][]byte) { l.door.base.CloseIdleConnections() }
