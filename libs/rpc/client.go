package rpc

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect/v2"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// DefaultTimeout bounds a unary call whose context has no deadline.
const DefaultTimeout = 30 * time.Second

// ClientOptions says who calls.
type ClientOptions struct {
	// Service is the caller: the principal of calls without [As], and the issuer of all.
	Service string
	// Keys sign the principal. Required.
	Keys *Keys
	// Timeout bounds unary calls whose context has no deadline; 0 means [DefaultTimeout].
	Timeout time.Duration
	// TracerProvider, if nil, makes no spans.
	TracerProvider trace.TracerProvider
	// Propagator writes the trace context of calls; nil means W3C.
	Propagator propagation.TextMapPropagator
}

// NewClient answers a client whose every call is signed, bounded and traced, over a transport made by [HTTPTransport] or
// [InProcess]. Generated clients share it; it is safe for concurrent use. It panics when Keys is missing.
func NewClient(t connect.Transport, o ClientOptions) *connect.Client {
	if o.Keys == nil {
		panic(errors.New("rpc.NewClient: Keys are required"))
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	return connect.NewClient(t, clientSpans(o.TracerProvider, o.Propagator), bounded(o.Timeout), signed(o.Service, o.Keys))
}

// signed writes who calls and under which operation into every call's headers.
func signed(service string, keys *Keys) connect.ClientInterceptor {
	self := &Principal{Kind: KindService, Id: service, DisplayName: service}
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			principal, named := ctx.Value(outgoingKey{}).(*Principal)
			if !named {
				principal = self
			}
			if principal == nil {
				return nil, fault.New(fault.Forbidden, "This call was to be made as somebody, but nobody was named.")
			}
			claims := withIssuer(principal, service)
			info, ok := connect.CallInfoForClientContext(ctx)
			if !ok {
				ctx, info = connect.NewClientContext(ctx)
			}
			info.RequestHeader().Set(headerPrincipal, keys.Sign(claims, 0))
			if id, ok := ctx.Value(operationKey{}).(string); ok && id != "" {
				info.RequestHeader().Set(headerOperation, id)
			}
			return next(ctx, spec)
		}
	}
}

// bounded gives a unary call without a deadline one, and does not send a call whose time is over.
func bounded(timeout time.Duration) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if err := ctx.Err(); err != nil {
				return nil, connect.NewError(codeOfContext(err), "").WithCause(errors.Join(errNotSent, err))
			}
			if _, has := ctx.Deadline(); has || spec.StreamType != connect.StreamTypeUnary {
				return next(ctx, spec)
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			stream, err := next(ctx, spec)
			if err != nil {
				cancel()
				return nil, err
			}
			return &boundedStream{ClientStream: stream, cancel: cancel}, nil
		}
	}
}

// boundedStream ends its deadline's timer with the call; a unary call is always closed.
type boundedStream struct {
	connect.ClientStream
	cancel context.CancelFunc
}

func (s *boundedStream) Close() error {
	defer s.cancel()
	return s.ClientStream.Close()
}

func codeOfContext(err error) connect.Code {
	if errors.Is(err, context.DeadlineExceeded) {
		return connect.CodeDeadlineExceeded
	}
	return connect.CodeCanceled
}
