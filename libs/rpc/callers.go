package rpc

import (
	"context"
	"net/http"
	"time"
)

// Callers settles who makes a request of plain HTTP, by the same headers and rules as [NewServer] does for calls. Routes of a
// service use it where there is no RPC behind them. Safe for concurrent use.
type Callers struct{ auth authenticator }

// NewCallers needs all its arguments; the answers of tokens are kept for up to 30 seconds.
func NewCallers(keys *Keys, tokens TokenVerifier, now func() time.Time) *Callers {
	return &Callers{authenticator{keys: keys, tokens: cacheTokens(tokens, now), now: now}}
}

// Identify answers who signed a request, or bears its token. Its errors are faults fit for the caller to read: of class forbidden
// when nobody is believed, unavailable when the token cannot be checked now.
func (c *Callers) Identify(ctx context.Context, header http.Header) (*Principal, error) {
	p, err := c.auth.identify(ctx, header.Values(headerPrincipal), header.Values("Authorization"))
	if err != nil {
		return nil, FromError(err)
	}
	return p, nil
}
