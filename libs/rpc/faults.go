package rpc

import (
	"context"
	"errors"
	"log/slog"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// faults gives a handler's error its form on the wire. A fault travels with its class. A Connect error made here passes. Everything else nobody claimed: it is logged here, once, and the caller learns
// that the service is unavailable. That includes errors received from a peer: its refusal was meant for us, and a handler that
// wants to pass it on says so with [FromError].
func faults(log *slog.Logger) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			err := next(ctx, spec, stream)
			if err == nil {
				return nil
			}
			if p, ok := errors.AsType[*panicked](err); ok {
				return internalError(ctx, log, spec, p)
			}
			if verdict(err) {
				return err
			}
			if f, ok := fault.As(err); ok {
				return claimed(ctx, log, spec, f)
			}
			if ctx.Err() != nil {
				return interruption(ctx, spec)
			}
			log.ErrorContext(ctx, "call failed", "procedure", spec.Procedure, "error", err)
			f := fault.New(fault.Unavailable, "The service failed on this call; trying again later may work.").WithOperation(OperationID(ctx))
			return refuse(connect.CodeUnavailable, f.WithOutcome(outcomeOf(spec)).WithCause(err))
		}
	}
}

// verdict reports whether err is a Connect error that a handler or interceptor of this process made to be sent. One that came
// out of a client is wrapped, or remote, and says things of the inside, such as an address that refused the connection.
func verdict(err error) bool {
	c, ok := any(err).(*connect.Error)
	return ok && !c.IsRemote()
}

// claimed answers a fault. One of class unavailable that has a cause is the service's own trouble and worth a line.
func claimed(ctx context.Context, log *slog.Logger, spec connect.Spec, f *fault.Error) *connect.Error {
	if f.Class == fault.Unavailable && f.Unwrap() != nil {
		log.WarnContext(ctx, "call failed", "procedure", spec.Procedure, "error", f)
	}
	if f.Operation == "" {
		f = f.WithOperation(OperationID(ctx))
	}
	return refuse(codeOf(f.Class), f)
}

// interruption answers a call whose time is over or whose caller has gone.
func interruption(ctx context.Context, spec connect.Spec) *connect.Error {
	code, text := connect.CodeCanceled, "The caller gave up before the call was done."
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code, text = connect.CodeDeadlineExceeded, "The call took longer than its deadline allows."
	}
	f := fault.New(fault.Unavailable, "%s", text).WithOperation(OperationID(ctx)).WithOutcome(outcomeOf(spec))
	return refuse(code, f)
}
