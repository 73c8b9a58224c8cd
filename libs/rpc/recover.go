package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// panicked is a panic on its way to the log. It carries the stack of where it happened, which may be another goroutine than
// the one that answers.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// guard runs next and answers a panic as a *panicked.
func guard(ctx context.Context, next connect.ServerFunc, spec connect.Spec, stream connect.ServerStream) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: debug.Stack()}
		}
	}()
	return next(ctx, spec, stream)
}

// recovered is the net under everything: a panic in an interceptor, or in a handler that no deadline guards, is logged with
// its stack and answered as an internal error that says nothing of it.
func recovered(log *slog.Logger) connect.ServerInterceptor {
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			err := guard(ctx, next, spec, stream)
			if p, ok := errors.AsType[*panicked](err); ok {
				return internalError(ctx, log, spec, p)
			}
			return err
		}
	}
}

// internalError logs a panic and answers what the caller may know of it.
func internalError(ctx context.Context, log *slog.Logger, spec connect.Spec, p *panicked) *connect.Error {
	log.ErrorContext(ctx, "handler panicked", "procedure", spec.Procedure, "panic", fmt.Sprint(p.value), "stack", string(p.stack))
	f := fault.New(fault.Unavailable, "The service failed on this call; the failure has been recorded.").WithOperation(OperationID(ctx))
	return refuse(connect.CodeInternal, f.WithOutcome(outcomeOf(spec)))
}

// outcomeOf answers what is known of a call that broke off inside its handler: a write may have been committed before.
func outcomeOf(spec connect.Spec) string {
	if spec.IdempotencyLevel == connect.IdempotencyNoSideEffects {
		return ""
	}
	return fault.OutcomeUnknown
}
