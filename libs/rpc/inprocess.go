package rpc

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
)

// InProcess answers a transport to a server in this process that was made by [NewServer]. What it means to call is what it
// means over the wire: messages are copied, no context value of the caller reaches the handler, an error arrives without its
// cause, and the caller is free at its deadline (that is the server's deadline interceptor, here and there).
func InProcess(s *connect.Server) connect.Transport {
	return inProcess{connectinprocess.New(s)}
}

type inProcess struct{ inner connect.Transport }

// NewClientStream implements [connect.Transport].
func (t inProcess) NewClientStream(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
	stream, err := t.inner.NewClientStream(bare{ctx}, spec)
	if err != nil {
		return nil, err
	}
	return inProcessStream{stream}, nil
}

type inProcessStream struct{ connect.ClientStream }

func (s inProcessStream) Receive(msg any) error {
	err := s.ClientStream.Receive(msg)
	c, ok := errors.AsType[*connect.Error](err)
	if !ok || !c.IsRemote() {
		return err
	}
	verdict := connect.NewError(c.Code(), c.Message()).WithRemote()
	for _, detail := range c.Details() {
		verdict = verdict.WithDetail(detail)
	}
	return verdict
}

// bare is a context without the caller's values, Connect's own excepted: the transport finds the call's headers there.
type bare struct{ context.Context }

// Value implements [context.Context].
func (b bare) Value(key any) any {
	if t := reflect.TypeOf(key); t != nil && strings.HasPrefix(t.PkgPath(), "connectrpc.com/connect/v2") {
		return b.Context.Value(key)
	}
	return nil
}

// AfterFunc spares the context package a goroutine for every context derived from this one.
func (b bare) AfterFunc(f func()) func() bool { return context.AfterFunc(b.Context, f) }
