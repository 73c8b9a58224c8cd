package rpc

import (
	"context"
	"errors"
	"net"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// errNotSent marks a call that ended before anything left this process.
var errNotSent = errors.New("not sent")

// FromError turns the error of a call into a fault. It answers nil for nil; assign it to a *fault.Error, not to an error,
// before comparing it with nil.
//
// A refusal by the far end keeps its class, sentence, field, reason, facts and outcome: the far end knows whether it broke off
// a read or a write. Anything else is unavailable, and its outcome is unknown unless it is certain that nothing was done: the
// connection was refused, the call was never sent, or it was turned away before a handler saw it. A fault made on this side is
// answered as it is.
func FromError(err error) *fault.Error {
	if err == nil {
		return nil
	}
	if f, ok := fault.As(err); ok {
		return f
	}
	c, ok := errors.AsType[*connect.Error](err)
	if !ok || !c.IsRemote() {
		return fromLocal(err)
	}
	if r, ok := refusalOf(c); ok {
		f := fault.New(fault.Class(r.GetClass()), "%s", r.GetMessage()).WithCause(err)
		f.Field, f.Reason, f.Facts = r.GetField(), r.GetReason(), r.GetFacts()
		f.Outcome, f.Operation = r.GetOutcome(), r.GetOperationId()
		if !f.Class.Valid() {
			f.Class = fault.Unavailable
		}
		return f
	}
	f := fault.New(fault.Unavailable, "The far end failed without saying why (%s).", c.Code()).WithCause(err)
	if !turnedAway(c.Code()) {
		f.Outcome = fault.OutcomeUnknown
	}
	return f
}

// fromLocal reads an error that this process made itself, because no answer came.
func fromLocal(err error) *fault.Error {
	var op *net.OpError
	c, _ := errors.AsType[*connect.Error](err)
	switch {
	case errors.Is(err, errNotSent):
		return fault.New(fault.Unavailable, "The call was not sent: its time was over before it began.").WithCause(err)
	case errors.As(err, &op) && op.Op == "dial":
		return fault.New(fault.Unavailable, "The service cannot be reached; nothing was done.").WithCause(err)
	case c != nil && notFoundThere(c.Code()):
		return fault.New(fault.Unavailable, "Nothing there takes this call (%s); nothing was done.", c.Code()).WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Unavailable, "The service did not answer in time; it may or may not have done what was asked.").
			WithOutcome(fault.OutcomeUnknown).WithCause(err)
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Unavailable, "The call was given up before the service answered; it may or may not have done what was asked.").
			WithOutcome(fault.OutcomeUnknown).WithCause(err)
	default:
		return fault.New(fault.Unavailable, "The connection broke before the service answered; it may or may not have done what was asked.").
			WithOutcome(fault.OutcomeUnknown).WithCause(err)
	}
}

func refusalOf(c *connect.Error) (*toolv1.Refusal, bool) {
	for _, detail := range c.Details() {
		m, err := connectproto.UnmarshalErrorDetail(detail)
		if err != nil {
			continue
		}
		if r, ok := m.(*toolv1.Refusal); ok {
			return r, true
		}
	}
	return nil, false
}

// notFoundThere reports the codes that stand for an HTTP status with which a server or proxy says that it does not know the
// path or does not let us through.
func notFoundThere(code connect.Code) bool {
	return code == connect.CodeUnimplemented || code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied
}

// turnedAway reports the codes with which a transport or framework rejects a call that no handler has seen.
func turnedAway(code connect.Code) bool {
	switch code {
	case connect.CodeInvalidArgument, connect.CodeUnimplemented, connect.CodeUnauthenticated, connect.CodePermissionDenied,
		connect.CodeResourceExhausted, connect.CodeNotFound, connect.CodeOutOfRange:
		return true
	default:
		return false
	}
}
