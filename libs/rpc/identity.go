package rpc

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/libs/fault"
)

type (
	incomingKey  struct{}
	outgoingKey  struct{}
	operationKey struct{}
)

// PrincipalFrom answers who makes the call that ctx belongs to. It is true in every handler of a server of ours, and false
// everywhere else: a principal set with [As] is not an incoming one.
func PrincipalFrom(ctx context.Context) (*Principal, bool) {
	p, ok := ctx.Value(incomingKey{}).(*Principal)
	return p, ok
}

func withPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, incomingKey{}, p)
}

// As makes the calls of ctx in the name of p, signed by the calling service. Without it a service calls as itself. A handler
// that calls on for its own caller says As(ctx, principal) expressly; with a nil p the calls are refused before they are sent,
// rather than made with the service's own authority.
func As(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, outgoingKey{}, p)
}

// WithOperation makes the calls of ctx carry an operation id, under which the far end does a write at most once.
func WithOperation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, operationKey{}, id)
}

// OperationID answers the operation id that the incoming call carries, or an empty string. It is checked: 1 to 128 letters,
// digits and `._:/@#-`.
func OperationID(ctx context.Context) string {
	info, ok := connect.CallInfoForServerContext(ctx)
	if !ok {
		return ""
	}
	return info.RequestHeader().Get(headerOperation)
}

// Caller names who makes the call that ctx belongs to, as kind and id, such as "seat:ada"; it is empty where
// [PrincipalFrom] is false. It is what records and ledgers tell callers apart by.
func Caller(ctx context.Context) string {
	p, ok := PrincipalFrom(ctx)
	if !ok {
		return ""
	}
	return p.GetKind() + ":" + p.GetId()
}

// RequireKind answers the incoming principal if it is of one of kinds, and refuses with class forbidden otherwise.
func RequireKind(ctx context.Context, kinds ...string) (*Principal, error) {
	p, ok := PrincipalFrom(ctx)
	if !ok {
		return nil, fault.New(fault.Forbidden, "this call names no caller")
	}
	if !slices.Contains(kinds, p.GetKind()) {
		return nil, fault.New(fault.Forbidden, "a %s may not call this; it is for %s", p.GetKind(), strings.Join(kinds, " or "))
	}
	return p, nil
}
