package rpc

import (
	"context"

	"connectrpc.com/connect/v2"
)

// prompt sends the headers of a stream of answers once its request is read, before there is an answer. Over HTTP a caller has no
// stream to wait on, or to close, until they arrive; in process it always has one.
func prompt(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		if spec.StreamType == connect.StreamTypeServer {
			stream = promptStream{stream}
		}
		return next(ctx, spec, stream)
	}
}

type promptStream struct{ connect.ServerStream }

// Receive implements [connect.ServerStream]. Headers that went before the request is read would end the reading.
func (s promptStream) Receive(msg any) error {
	if err := s.ServerStream.Receive(msg); err != nil {
		return err
	}
	return s.SendHeaders()
}
