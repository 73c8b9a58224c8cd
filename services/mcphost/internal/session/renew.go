package session

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// defaultLiveness is how long an address may be silent until it is asked whether it is there.
const defaultLiveness = 15 * time.Second

var errForgotten = errors.New("it does not know the session any more")

// lost reports that a server does not know the session any more. Not all say so as they should, with 404.
func lost(status int, body []byte, id string) bool {
	if id == "" {
		return false
	}
	switch status {
	case http.StatusNotFound:
		return true
	case http.StatusBadRequest, http.StatusUnauthorized:
		return bytes.Contains(bytes.ToLower(body), []byte("session"))
	default:
		return false
	}
}

// renew greets the server again, once for all who find that it forgot the session id, and has what it followed followed again.
func (l *httpLink) renew(ctx context.Context, id string) error {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	if now, _ := l.headers(nil); now != id {
		return nil // somebody else did
	}
	s := l.session
	n := &negotiation{session: s}
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	c, err := n.ask(false)
	if err != nil {
		return err
	}
	defer s.abandon(c, errWedged)
	if err := n.wait(ctx, c); err != nil {
		return err
	}
	if c.reply.refusal != nil {
		return errors.New("it refuses to be greeted again: " + readRefusal(c.reply.refusal).Message)
	}
	l.tell(ctx, wire.Notification(notificationInitialized, nil))
	s.options.Log.Info("server forgot the session and was greeted again")
	s.unheard()
	s.refollow()
	return nil
}

// watch ends the session when the server is not there any more. It asks when the server was silent for long, and at once when a
// request found no connection or no answer.
func (l *httpLink) watch(ctx context.Context) {
	s := l.session
	every := s.options.Liveness
	if every <= 0 {
		every = defaultLiveness
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	missed := 0
	for {
		suspected := false
		select {
		case <-ctx.Done():
			return
		case <-l.suspects:
			suspected = true
		case <-ticker.C:
		}
		if !suspected && missed == 0 && time.Since(time.Unix(0, s.heard.Load())) < every {
			continue
		}
		err := s.alive(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			missed = 0
			continue
		}
		missed++
		const enough = 2
		if errors.Is(err, ErrUnreachable) || missed >= enough {
			if !errors.Is(err, ErrUnreachable) {
				err = errors.Join(ErrUnreachable, err)
			}
			s.fail(oneLine{err})
			return
		}
		l.suspect() // once more, at once
	}
}

// alive asks whether the server is there. Whatever it answers, it is; a status of refusal says so, too.
func (s *Session) alive(ctx context.Context) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it does not answer"))
	defer cancel()
	method := methodPing
	if s.modern {
		method = methodDiscover
	}
	r := s.request(ctx, method, nil)
	var status statusError
	if errors.As(r.failure, &status) && status < http.StatusInternalServerError {
		return nil
	}
	return r.failure
}

// oneLine is a joined error in a half sentence.
type oneLine struct{ error }

// Error implements error.
func (e oneLine) Error() string {
	return string(bytes.ReplaceAll([]byte(e.error.Error()), []byte("\n"), []byte(": ")))
}

// Unwrap answers what was joined.
func (e oneLine) Unwrap() error { return e.error }
