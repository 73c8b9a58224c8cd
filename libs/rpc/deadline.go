package rpc

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
)

// deadline bounds unary calls and frees the caller when the time is over or the caller has gone, whether the handler listens
// or not. Streams end with their context; nothing bounds them but their own handler.
//
// The handler runs on a goroutine of its own, with a call info and a stream of its own, so that nothing is shared with the
// transport once the call has been given up. It uses the transport's stream itself, one use at a time, until then:
//
//	serving goroutine              handler goroutine
//	  waits                          lock: stream.Receive, stream.Send
//	  answer ◄────── done ────────── returns
//	  ctx.Done: lock: gone; answer   every later use fails with the context's error
func deadline(log *slog.Logger, limit time.Duration) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		// A server of one handler is the only way to give it a call info of its own.
		handler := connect.NewServer()
		handler.SetUnknownHandler(func(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
			c, ok := stream.(*detached)
			if !ok {
				return errors.New("the stream is of another call")
			}
			return guard(ctx, next, c.spec, c)
		})
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			if spec.StreamType != connect.StreamTypeUnary {
				return next(ctx, spec, stream)
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			c := newDetached(ctx, spec, stream)
			go func() {
				deepen()
				c.run(log, handler)
			}()
			return c.wait()
		}
	}
}

// deepen makes room on the stack of a goroutine at once. A new one has little, and doubling it again and again, each time with more on
// it to move, took a twentieth of what a call costs.
//
//go:noinline
func deepen() {
	var room [12 << 10]byte
	runtime.KeepAlive(&room)
}

// detached is one unary call whose handler may outlive it.
type detached struct {
	ctx  context.Context // the call's own
	spec connect.Spec
	// inner is the handler's call info.
	inner *connect.CallInfo
	done  chan error

	// mu is held by whoever uses stream or outer, which are the transport's, and settles whether the call has ended or been given up.
	mu     sync.Mutex
	stream connect.ServerStream
	outer  *connect.CallInfo
	gone   bool
}

func newDetached(ctx context.Context, spec connect.Spec, stream connect.ServerStream) *detached {
	c := &detached{ctx: ctx, spec: spec, inner: &connect.CallInfo{Spec: spec}, done: make(chan error, 1), stream: stream}
	c.outer, _ = connect.CallInfoForServerContext(ctx)
	if c.outer != nil {
		c.inner.PeerAddr, c.inner.Protocol, c.inner.Codec = c.outer.PeerAddr, c.outer.Protocol, c.outer.Codec
		c.inner.TransportInfo = c.outer.TransportInfo
		copyHeader(c.inner.RequestHeader(), c.outer.RequestHeader())
	}
	return c
}

// wait answers when the handler has, or when the call is given up.
func (c *detached) wait() error {
	select {
	case err := <-c.done:
		return err
	case <-c.ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case err := <-c.done:
		return err
	default:
		c.gone = true
		return interruption(c.ctx, c.spec)
	}
}

// run is the handler's side.
func (c *detached) run(log *slog.Logger, handler *connect.Server) {
	err := handler.Call(c.ctx, c.spec.Procedure, c.inner, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.publishHeaders()
		c.done <- err
		return
	}
	if p, ok := errors.AsType[*panicked](err); ok {
		log.ErrorContext(c.ctx, "handler panicked after its deadline", "procedure", c.spec.Procedure, "error", p, "stack", string(p.stack))
	}
}

// publishHeaders hands on what the handler set. The caller holds mu.
func (c *detached) publishHeaders() {
	if c.outer == nil {
		return
	}
	copyHeader(c.outer.ResponseHeader(), c.inner.ResponseHeader())
	copyHeader(c.outer.ResponseTrailer(), c.inner.ResponseTrailer())
}

// use lends the transport's stream, unless the call has been given up.
func (c *detached) use(do func(connect.ServerStream) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return c.ctx.Err()
	}
	c.publishHeaders()
	return do(c.stream)
}

// Receive implements [connect.ServerStream].
func (c *detached) Receive(msg any) error {
	return c.use(func(s connect.ServerStream) error { return s.Receive(msg) })
}

// SendHeaders implements [connect.ServerStream].
func (c *detached) SendHeaders() error { return c.use(connect.ServerStream.SendHeaders) }

// Send implements [connect.ServerStream].
func (c *detached) Send(msg any) error {
	return c.use(func(s connect.ServerStream) error { return s.Send(msg) })
}

func copyHeader(dst, src *connect.Header) {
	for key, values := range src.All() {
		dst.SetValues(key, append([]string(nil), values...))
	}
}
