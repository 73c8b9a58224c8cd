// Package authorize gets OAuth tokens for MCP servers, as the authorization part of the protocol says, of its revisions since 2025-03-26.
//
//	a server's 401 or 403 ─► whom it trusts (discover) ─► who we are there (register) ─► a token
//	                                                                                      ├─ client_credentials: asked for at once
//	                                                                                      ├─ a refresh token: exchanged
//	                                                                                      └─ authorization_code: a consent waits
//	an operator's browser ─► the issuer ─► GET /mcp-authorization/callback (or AuthorizeServer) ─► the token of the consent
//
// A token is for one resource, one seat and one issuer: when a server moves or names another issuer, it gets a token of its own, and
// a client of its own. Tokens, registrations and consents are kept sealed; without a key they live in memory and end with the process.
//
// What a server names is a stranger's word. Addresses are https, or loopback for a server that is there itself; a server on the public
// network cannot lead us into a private one; answers are bounded, and no secret gets into an error, a log line or an address.
package authorize

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// The grants by which a token is had.
const (
	ClientCredentials = "client_credentials"
	AuthorizationCode = "authorization_code"
)

// Store keeps what is sealed; see [store.Store], which is one.
type Store interface {
	AuthorizationClient(ctx context.Context, server, issuer, redirectURI string) ([]byte, error)
	ReplaceAuthorizationClient(ctx context.Context, server, issuer, redirectURI string, before, sealed []byte) error
	PinIssuer(ctx context.Context, server, clientID, issuer string) (pinned string, err error)
	AuthorizationToken(ctx context.Context, server, seat, resource string) ([]byte, error)
	ChangeAuthorizationToken(ctx context.Context, server, seat, resource string, change func(sealed []byte) ([]byte, error)) error
	PutConsent(ctx context.Context, state []byte, c store.Consent, enough time.Duration) error
	TakeConsent(ctx context.Context, state []byte) (*store.Consent, error)
	Consents(ctx context.Context) ([]store.Consent, error)
	DropConsent(ctx context.Context, server, seat string) error
}

// Options are what an authorizer needs.
type Options struct {
	// Store keeps what Box seals. Without a Box neither is used and everything lives in memory.
	Store Store
	Box   *sealed.Box
	// BaseURL answers under which address a browser reaches this service; its end has no slash.
	BaseURL func() string
	// DocumentURL is where a client metadata document of ours is served by somebody else; empty when nowhere.
	DocumentURL string
	// Granted is told that a consent brought a token; nil for nobody.
	Granted func(server, seat string)
	Log     *slog.Logger
	Now     func() time.Time
	// Version is ours, for the logs of others.
	Version string
}

// Authorizer gets tokens for every server. Safe for concurrent use.
type Authorizer struct {
	options Options
	vault   vault

	mu sync.Mutex
	// turns are taken by whoever gets a token for an account; others wait for what comes of it.
	turns map[account]chan struct{}
}

// account is whom a token is for, and where it is shown.
type account struct{ server, seat, resource string }

// New makes an authorizer.
func New(o Options) *Authorizer {
	a := &Authorizer{options: o, vault: vault{store: o.Store, box: o.Box}, turns: map[account]chan struct{}{}}
	if o.Box == nil {
		a.vault = vault{store: newMemory(o.Now)}
	}
	return a
}

// Durable reports whether tokens outlive the process.
func (a *Authorizer) Durable() bool { return a.vault.box != nil }

// Server is one use of a server: by the company, or by a seat.
type Server struct {
	Name, Seat string
	// URL is where it is; templates are filled.
	URL string
	// Headers go with every request to it.
	Headers map[string]string
	// SSE says that it is asked with GET, as servers of the oldest transport are.
	SSE bool
	// Grant is one of the two; ClientID and ClientSecret are empty for a client that is to be registered.
	Grant                  string
	ClientID, ClientSecret string
	// Scopes are what to ask for; empty for what the server says it needs.
	Scopes []string
	// Hide is told every value that must not be shown, as it comes up; nil for nobody.
	Hide func(values ...string)
}

// For answers the access to a server. The error names what is wrong with its address.
func (a *Authorizer) For(s Server) (*Access, error) {
	endpoint, err := url.Parse(s.URL)
	if err != nil || endpoint.Host == "" || endpoint.User != nil {
		return nil, refuse("its address is none that a token can be shown at")
	}
	if !secure(endpoint) {
		return nil, refuse("its address is not https, and a token would be read on the way")
	}
	acc := &Access{authorizer: a, server: s, endpoint: endpoint, account: account{s.Name, s.Seat, resourceOf(endpoint)}}
	acc.client = a.outbound(endpoint)
	return acc, nil
}

// resourceOf answers the identifier of the resource at an address: without query and fragment, which may hold a secret.
func resourceOf(endpoint *url.URL) string {
	u := url.URL{Scheme: strings.ToLower(endpoint.Scheme), Host: strings.ToLower(endpoint.Host), Path: endpoint.Path, RawPath: endpoint.RawPath}
	return strings.TrimSuffix(u.String(), "/")
}

// turn waits until nobody else gets a token for the account; done must be called.
func (a *Authorizer) turn(ctx context.Context, who account) (done func(), err error) {
	a.mu.Lock()
	turn := a.turns[who]
	if turn == nil {
		turn = make(chan struct{}, 1)
		a.turns[who] = turn
	}
	a.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
