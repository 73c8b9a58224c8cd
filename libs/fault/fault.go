// Package fault is the one error type that crosses a service's edge.
//
// A fault is made where the fact is known: by the noun that refuses a move, by the store that finds no row, by the
// limit that is exceeded. It carries a class from a closed set, a sentence that a stranger or a model can act on, and
// where it helps the argument at fault, an upper-case reason that a program can switch on, and a few facts. The cause
// underneath stays in the process: it is for the log, and neither Message nor Facts may repeat it.
//
// The idea to hold on to: a class is a claim. Only code that knows the caller is at fault may say [Invalid],
// [Forbidden] or [Conflict]; an error that nobody claimed is the service's own failure, and [ClassOf] reads it as
// [Unavailable]. So a forgotten error can never be mistaken for the caller's mistake.
//
// This package knows nothing of transports. Package rpc turns a fault into a Connect error and back, in one place.
package fault

import (
	"errors"
	"fmt"
	"maps"
)

// OutcomeUnknown is the one value of [Error.Outcome] beside the empty string: the write may have landed.
const OutcomeUnknown = "unknown"

// Error is a refusal or a failure that is fit to be shown to the caller. Values are not changed after they are made:
// the With methods answer copies, so a fault may be kept in a variable and shared between goroutines.
type Error struct {
	// Class is one of [Classes].
	Class Class
	// Message is one or more full sentences: what is wrong, and what to do instead.
	Message string
	// Field is the path of the argument at fault in snake_case, such as "waiting_on.add[0]"; empty when no single
	// argument is.
	Field string
	// Reason is an upper-case constant that tells two faults of one class apart, such as "OPERATION_REUSED"; may be
	// empty.
	Reason string
	// Facts are what a program may act on, such as "current_version"; nil when there are none. Read only.
	Facts map[string]string
	// Outcome is [OutcomeUnknown] when a write may have landed although it failed, otherwise empty: nothing was
	// written.
	Outcome string
	// Operation is the operation id of the write that failed; empty for reads.
	Operation string

	cause error
}

// New makes a fault. The format is Sprintf's; wrapping with %w is not supported, because a cause never becomes part of
// the message: see [Error.WithCause].
func New(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

// Error answers the class and the message, and the cause when there is one: it is the log's form. What leaves the
// process is Message.
func (e *Error) Error() string {
	text := string(e.Class) + ": " + e.Message
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap answers the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// WithField answers a copy that names the argument at fault.
func (e *Error) WithField(path string) *Error {
	c := *e
	c.Field = path
	return &c
}

// WithReason answers a copy with an upper-case reason.
func (e *Error) WithReason(reason string) *Error {
	c := *e
	c.Reason = reason
	return &c
}

// WithFact answers a copy with one more fact; the receiver's facts stay as they are.
func (e *Error) WithFact(key, value string) *Error {
	c := *e
	c.Facts = maps.Clone(e.Facts)
	if c.Facts == nil {
		c.Facts = make(map[string]string, 1)
	}
	c.Facts[key] = value
	return &c
}

// WithCause answers a copy that wraps cause, which errors.Is and errors.As then find. The cause is logged, never sent.
func (e *Error) WithCause(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// WithOutcome answers a copy with an outcome, which is [OutcomeUnknown] or empty.
func (e *Error) WithOutcome(outcome string) *Error {
	c := *e
	c.Outcome = outcome
	return &c
}

// WithOperation answers a copy that names the operation that failed.
func (e *Error) WithOperation(id string) *Error {
	c := *e
	c.Operation = id
	return &c
}

// As finds the outermost fault in err's chain.
func As(err error) (*Error, bool) {
	return errors.AsType[*Error](err)
}

// ClassOf answers the class of the outermost fault in err's chain, [Unavailable] for an error that nobody claimed, and
// the empty class for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e, ok := As(err); ok {
		return e.Class
	}
	return Unavailable
}
