package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// http agrees with an address. A server that turns the newer transport away is tried with the older one.
func (n *negotiation) http(ctx context.Context) error {
	s := n.session
	d, err := newDoor(*s.options.HTTP)
	if err != nil {
		return err
	}
	n.started()
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	if s.options.HTTP.SSE {
		return n.sse(ctx, d)
	}
	s.link = newHTTPLink(s, d)
	first, err := n.ask(n.probe)
	if err != nil {
		return err
	}
	err = n.agree(ctx, first, func(ctx context.Context, first *call, probe bool) error {
		if errors.Is(first.failure(), ErrUnreachable) {
			return first.failure() // it goes no better a second time
		}
		return n.again(ctx, first, probe)
	})
	var status statusError
	if !errors.As(err, &status) || !olderTransport(int(status)) || s.options.Protocol == declaredModern {
		return err
	}
	if older := n.sse(ctx, d); older != nil {
		return fmt.Errorf("%w, and to the older transport: %w", err, older)
	}
	return nil
}

// failure answers why a call failed; nil while it is open.
func (c *call) failure() error {
	if !c.isDone() {
		return nil
	}
	return c.reply.failure
}

// olderTransport reports whether a status may come from a server that does not know the newer transport. It is none of those with
// which a server asks who we are.
func olderTransport(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return false
	default:
		return status >= http.StatusBadRequest && status < http.StatusInternalServerError
	}
}

// sse opens the older transport and greets the server over it.
func (n *negotiation) sse(ctx context.Context, d *door) error {
	s := n.session
	link := newSSELink(s, d)
	if err := link.open(ctx); err != nil {
		return err
	}
	s.link = link
	c, err := n.ask(false)
	if err != nil {
		return err
	}
	if err := n.wait(ctx, c); err != nil {
		return err
	}
	return n.greeted(ctx, c.reply)
}
