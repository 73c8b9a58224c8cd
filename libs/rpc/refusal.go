package rpc

import (
	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// codeOf is the one place where a class meets a Connect code. A client of ours reads the class; the code is for generic
// clients and proxies.
func codeOf(class fault.Class) connect.Code {
	switch class {
	case fault.Invalid:
		return connect.CodeInvalidArgument
	case fault.NotFound:
		return connect.CodeNotFound
	case fault.Forbidden:
		return connect.CodePermissionDenied
	case fault.Exists:
		return connect.CodeAlreadyExists
	case fault.StaleVersion:
		return connect.CodeAborted
	case fault.ReassignmentBudget, fault.InboxFull, fault.BudgetExhausted:
		return connect.CodeResourceExhausted
	case fault.Conflict, fault.AlreadyAnswered, fault.NotRunning, fault.SteerUnsupported, fault.LoopDetected:
		return connect.CodeFailedPrecondition
	case fault.Unavailable:
		return connect.CodeUnavailable
	default:
		return connect.CodeUnavailable
	}
}

// refuse turns a fault into what the wire carries. The fault's cause stays behind it, for the log.
func refuse(code connect.Code, f *fault.Error) *connect.Error {
	out := connect.NewError(code, f.Message).WithCause(f)
	detail, err := connectproto.NewErrorDetail(&toolv1.Refusal{
		Class:       string(f.Class),
		Message:     f.Message,
		Field:       f.Field,
		Reason:      f.Reason,
		Facts:       f.Facts,
		Outcome:     f.Outcome,
		OperationId: f.Operation,
	})
	if err != nil {
		// Text that is not UTF-8 cannot be a detail; the code and the sentence still say what happened.
		return out
	}
	return out.WithDetail(detail)
}

// unauthenticated is a refusal of somebody we do not know, where forbidden is one of somebody we do.
func unauthenticated(format string, args ...any) *connect.Error {
	return refuse(connect.CodeUnauthenticated, fault.New(fault.Forbidden, format, args...))
}
