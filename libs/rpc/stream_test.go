package rpc_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// countSpec is a stream of answers, as a contract would declare it.
func countSpec() connect.Spec {
	return connect.Spec{StreamType: connect.StreamTypeServer, Procedure: "/test.v1.CountService/Count"}
}

// counting answers one message, and the next when it is told to, unless the request says how to end then.
func counting(more <-chan struct{}, left chan<- error) func(*connect.Server) {
	return func(s *connect.Server) {
		s.Register(connect.Method{Spec: countSpec(), Handler: func(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
			var request wrapperspb.StringValue
			if err := stream.Receive(&request); err != nil {
				return err
			}
			if _, ok := rpc.PrincipalFrom(ctx); !ok {
				return errors.New("nobody calls")
			}
			if request.GetValue() == "silence" {
				<-ctx.Done()
				left <- ctx.Err()
				return ctx.Err()
			}
			for {
				if err := stream.Send(wrapperspb.String(request.GetValue())); err != nil {
					left <- err
					return err
				}
				select {
				case <-more:
				case <-ctx.Done():
					left <- ctx.Err()
					return ctx.Err()
				}
				if request.GetValue() == "refuse" {
					return fault.New(fault.Conflict, "No more of it.")
				}
				if request.GetValue() == "end" {
					return nil
				}
			}
		}})
	}
}

func TestAStreamOfAnswersArrivesAsItIsMade(t *testing.T) {
	t.Parallel()
	for name := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more, left := make(chan struct{}), make(chan error, 1)
			b := newBundle(t, rpc.ServerOptions{Service: "test"}, counting(more, left))
			client := rpc.NewClient(transports()[name](t, b.server), rpc.ClientOptions{Service: "turn", Keys: b.keys})
			open := func(ctx context.Context, what string) connect.ClientStream {
				stream, err := client.CallServerStream(ctx, countSpec(), wrapperspb.String(what))
				require.NoError(t, err)
				var first wrapperspb.StringValue
				require.NoError(t, stream.Receive(&first), "before the handler is done")
				require.Equal(t, what, first.GetValue())
				return stream
			}

			stream := open(t.Context(), "end")
			more <- struct{}{}
			require.ErrorIs(t, stream.Receive(&wrapperspb.StringValue{}), io.EOF)
			require.NoError(t, stream.Close())

			stream = open(t.Context(), "refuse")
			more <- struct{}{}
			f := rpc.FromError(stream.Receive(&wrapperspb.StringValue{}))
			require.Equal(t, fault.Conflict, f.Class)
			require.Equal(t, "No more of it.", f.Message)
			require.NoError(t, stream.Close())

			ctx, cancel := context.WithCancel(t.Context())
			stream = open(ctx, "go on")
			cancel()
			require.ErrorIs(t, <-left, context.Canceled, "the handler learns that its caller left")
			require.Error(t, stream.Receive(&wrapperspb.StringValue{}))
			require.NoError(t, stream.Close())

			stream = open(t.Context(), "go on")
			require.NoError(t, stream.Close(), "and when it closes the stream")
			require.Error(t, <-left)

			stream, err := client.CallServerStream(t.Context(), countSpec(), wrapperspb.String("silence"))
			require.NoError(t, err, "there is a stream before there is an answer")
			require.NoError(t, stream.Close())
			require.Error(t, <-left)

			stream, err = client.CallServerStream(t.Context(), countSpec(), wrapperspb.String(strings.Repeat("x", rpc.MaxRequestBytes)))
			if err == nil {
				err = stream.Receive(&wrapperspb.StringValue{})
			}
			require.Equal(t, fault.Invalid, rpc.FromError(err).Class, "what is too large for a call is too large for a stream")
		})
	}
}
