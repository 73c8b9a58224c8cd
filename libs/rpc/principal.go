package rpc

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// authenticator settles who calls, from the headers alone: what ctx held before is never asked and always replaced.
type authenticator struct {
	keys   *Keys
	tokens TokenVerifier
	now    func() time.Time
}

func (a authenticator) intercept(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		p, err := a.principal(ctx)
		if err != nil {
			return err
		}
		return next(withPrincipal(ctx, p), spec, stream)
	}
}

func (a authenticator) principal(ctx context.Context) (*Principal, error) {
	info, ok := connect.CallInfoForServerContext(ctx)
	if !ok {
		return nil, unauthenticated("This call has no headers to say who makes it.")
	}
	return a.identify(ctx, info.RequestHeader().Values(headerPrincipal), info.RequestHeader().Values("Authorization"))
}

// identify reads the two headers that can name a caller.
func (a authenticator) identify(ctx context.Context, signed, bearer []string) (*Principal, error) {
	switch {
	case len(signed)+len(bearer) == 0:
		return nil, unauthenticated("This call says nothing of who makes it: give an API token as `Authorization: Bearer …`.")
	case len(signed)+len(bearer) > 1:
		return nil, unauthenticated("This call names more than one caller; give one header.")
	case len(signed) == 1:
		p, err := a.keys.Verify(signed[0], a.now())
		if err != nil {
			return nil, unauthenticated("The caller is not believed: %s.", err)
		}
		return p, nil
	default:
		return a.bearer(ctx, bearer[0])
	}
}

func (a authenticator) bearer(ctx context.Context, header string) (*Principal, error) {
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return nil, unauthenticated("The header Authorization must read `Bearer` and an API token.")
	}
	if a.tokens == nil {
		return nil, unauthenticated("This server takes no API tokens.")
	}
	p, err := a.tokens.VerifyToken(ctx, token)
	switch {
	case err == nil && p != nil:
		return p, nil
	case err == nil, fault.ClassOf(err) == fault.Forbidden, fault.ClassOf(err) == fault.Invalid, fault.ClassOf(err) == fault.NotFound:
		return nil, unauthenticated("The API token is not valid, or no longer.")
	default:
		return nil, fault.New(fault.Unavailable, "The API token cannot be checked right now; nothing was done.").WithCause(err)
	}
}

// maxOperationBytes is room for a digest or an id with a prefix.
const maxOperationBytes = 128

// checkedOperation refuses an operation id that no ledger should store.
func checkedOperation(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		if id := OperationID(ctx); !validOperation(id) {
			return fault.New(fault.Invalid, "The header %s must be at most %d letters, digits and `._:/@#-`.", headerOperation, maxOperationBytes).
				WithField(strings.ToLower(headerOperation))
		}
		return next(ctx, spec, stream)
	}
}

func validOperation(id string) bool {
	if len(id) > maxOperationBytes {
		return false
	}
	for _, r := range id {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune("._:/@#-", r) {
			return false
		}
	}
	return true
}
