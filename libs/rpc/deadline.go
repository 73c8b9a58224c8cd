package rpc

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"connectrpc.com/connect/v2"
)

// deadline bounds unary calls and frees the caller when the time is over or the caller has gone, whether the handler listens
// or not. Streams end with their context; nothing bounds them but their own handler.
//
// The handler runs on a goroutine of its own, with a call info and a stream of its own, so that nothing is shared with the
// transport once the call has been given up:
//
//	serving goroutine          handler goroutine
//	  receive   ◄── op ──────── stream.Receive
//	  send      ◄── op ──────── stream.Send
//	  answer    ◄── done ────── returns
//	  ctx.Done: answer, close `gone`; later ops fail with the context's error
func deadline(log *slog.Logger, limit time.Duration) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			if spec.StreamType != connect.StreamTypeUnary {
				return next(ctx, spec, stream)
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			c := newDetached(ctx, spec)
			go c.run(log, next)
			return c.serve(stream)
		}
	}
}

// detached is one unary call whose handler may outlive it.
type detached struct {
	ctx  context.Context // the call's own
	spec connect.Spec
	// outer belongs to the transport, inner to the handler.
	outer, inner *connect.CallInfo

	ops  chan op
	done chan error
	gone chan struct{}
}

// op is a use of the stream that the serving goroutine makes for the handler.
type op struct {
	run   func(connect.ServerStream) error
	reply chan error
}

func newDetached(ctx context.Context, spec connect.Spec) *detached {
	c := &detached{ctx: ctx, spec: spec, ops: make(chan op), done: make(chan error), gone: make(chan struct{})}
	c.outer, _ = connect.CallInfoForServerContext(ctx)
	c.inner = &connect.CallInfo{Spec: spec}
	if c.outer != nil {
		c.inner.PeerAddr, c.inner.Protocol, c.inner.Codec = c.outer.PeerAddr, c.outer.Protocol, c.outer.Codec
		c.inner.TransportInfo = c.outer.TransportInfo
		copyHeader(c.inner.RequestHeader(), c.outer.RequestHeader())
	}
	return c
}

// serve does what the handler asks of the stream until it returns or the time is over.
func (c *detached) serve(stream connect.ServerStream) error {
	defer close(c.gone)
	for {
		select {
		case o := <-c.ops:
			c.publishHeaders()
			o.reply <- o.run(stream)
		case err := <-c.done:
			c.publishHeaders()
			return err
		case <-c.ctx.Done():
			return interruption(c.ctx, c.spec)
		}
	}
}

// publishHeaders hands on what the handler set. The handler waits meanwhile, or has returned.
func (c *detached) publishHeaders() {
	if c.outer == nil {
		return
	}
	copyHeader(c.outer.ResponseHeader(), c.inner.ResponseHeader())
	copyHeader(c.outer.ResponseTrailer(), c.inner.ResponseTrailer())
}

// run is the handler's side. A server of one handler is the only way to give it a call info of its own.
func (c *detached) run(log *slog.Logger, next connect.ServerFunc) {
	server := connect.NewServer()
	server.SetUnknownHandler(func(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
		return guard(ctx, next, c.spec, stream)
	})
	err := server.Call(c.ctx, c.spec.Procedure, c.inner, c)
	select {
	case c.done <- err:
	case <-c.gone:
		if p, ok := errors.AsType[*panicked](err); ok {
			log.ErrorContext(c.ctx, "handler panicked after its deadline", "procedure", c.spec.Procedure, "error", p, "stack", string(p.stack))
		}
	}
}

func (c *detached) do(run func(connect.ServerStream) error) error {
	o := op{run: run, reply: make(chan error, 1)}
	select {
	case c.ops <- o:
		return <-o.reply
	case <-c.gone:
		return c.ctx.Err()
	}
}

// Receive implements [connect.ServerStream].
func (c *detached) Receive(msg any) error {
	return c.do(func(s connect.ServerStream) error { return s.Receive(msg) })
}

// SendHeaders implements [connect.ServerStream].
func (c *detached) SendHeaders() error {
	return c.do(func(s connect.ServerStream) error { return s.SendHeaders() })
}

// Send implements [connect.ServerStream].
func (c *detached) Send(msg any) error {
	return c.do(func(s connect.ServerStream) error { return s.Send(msg) })
}

func copyHeader(dst, src *connect.Header) {
	for key, values := range src.All() {
		dst.SetValues(key, append([]string(nil), values...))
	}
}
