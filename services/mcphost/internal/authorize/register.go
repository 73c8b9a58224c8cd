package authorize

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	basicMethod = "client_secret_basic"
	postMethod  = "client_secret_post"
	noMethod    = "none"
)

// identify answers who we are at an issuer: the client that the company declares, our metadata document where the issuer reads such,
// or one that is registered now.
func (acc *Access) identify(ctx context.Context, issuer *oauthex.AuthServerMeta, redirect string) (*client, error) {
	s := acc.server
	if s.ClientID != "" {
		return acc.declared(ctx, issuer)
	}
	if document := acc.authorizer.documentURL(); document != "" && issuer.ClientIDMetadataDocumentSupported {
		return &client{ID: document, Method: noMethod}, nil
	}
	if issuer.RegistrationEndpoint == "" {
		return nil, refuse("its authorization server %s registers no clients by itself: declare authorization.client_id", quoted(issuer.Issuer))
	}
	known, kept, err := acc.authorizer.vault.client(ctx, s.Name, issuer.Issuer, redirect)
	if err != nil {
		return nil, err
	}
	if known != nil && (known.Until.IsZero() || acc.authorizer.options.Now().Before(known.Until)) {
		return known, nil
	}
	return acc.register(ctx, issuer, redirect, kept)
}

// declared is the client of the company document. Its secret is for one issuer: a server that names another one later does not get
// it shown there.
func (acc *Access) declared(ctx context.Context, issuer *oauthex.AuthServerMeta) (*client, error) {
	s := acc.server
	pinned, err := acc.authorizer.vault.store.PinIssuer(ctx, s.Name, s.ClientID, issuer.Issuer)
	if err != nil {
		return nil, err
	}
	if pinned != issuer.Issuer {
		return nil, refuse("it names the authorization server %s now, but the declared client is one of %s: declare the client of the new one", quoted(issuer.Issuer), quoted(pinned))
	}
	c := &client{ID: s.ClientID, Secret: s.ClientSecret, Method: noMethod}
	if s.ClientSecret != "" {
		c.Method = methodOf(issuer, basicMethod, postMethod)
		if c.Method == "" {
			return nil, refuse("its authorization server %s takes no client secrets", quoted(issuer.Issuer))
		}
	}
	return c, nil
}

// methodOf picks the first of the methods that an issuer takes. One that does not say takes the first of all (RFC 8414).
func methodOf(issuer *oauthex.AuthServerMeta, methods ...string) string {
	taken := issuer.TokenEndpointAuthMethodsSupported
	if len(taken) == 0 {
		return methods[0]
	}
	for _, method := range methods {
		if slices.Contains(taken, method) {
			return method
		}
	}
	return ""
}

// description is how a client of ours is described, to whoever registers it or reads its document.
func description(redirect, method string) *oauthex.ClientRegistrationMetadata {
	kind := "web"
	if u, err := url.Parse(redirect); err == nil && onLoopback(u) {
		kind = "native"
	}
	return &oauthex.ClientRegistrationMetadata{
		ClientName: "Bullpen", RedirectURIs: []string{redirect}, ApplicationType: kind, TokenEndpointAuthMethod: method,
		GrantTypes: []string{AuthorizationCode, "refresh_token"}, ResponseTypes: []string{"code"},
	}
}

// register registers us, in place of a registration that has ended.
func (acc *Access) register(ctx context.Context, issuer *oauthex.AuthServerMeta, redirect string, before []byte) (*client, error) {
	method := methodOf(issuer, basicMethod, postMethod, noMethod)
	if method == "" {
		return nil, refuse("its authorization server %s takes clients in no way that we know", quoted(issuer.Issuer))
	}
	asked := description(redirect, method)
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	status, data, err := acc.post(ctx, issuer.RegistrationEndpoint, http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil {
		return nil, refuse("its authorization server %s could not be asked to register us: %s", quoted(issuer.Issuer), unwrapped(err)).because(err)
	}
	var answer oauthex.ClientRegistrationResponse
	if status != http.StatusCreated && status != http.StatusOK || json.Unmarshal(data, &answer) != nil || answer.ClientID == "" {
		return nil, refuse("its authorization server %s did not register us: %s", quoted(issuer.Issuer), failureOf(status, data))
	}
	c := &client{ID: answer.ClientID, Secret: answer.ClientSecret, Method: answer.TokenEndpointAuthMethod}
	if c.Method == "" {
		c.Method = method
	}
	if !slices.Contains([]string{basicMethod, postMethod, noMethod}, c.Method) || c.Method != noMethod && c.Secret == "" {
		return nil, refuse("its authorization server %s registered us as a client that we cannot be", quoted(issuer.Issuer))
	}
	if c.Secret != "" && !answer.ClientSecretExpiresAt.IsZero() && answer.ClientSecretExpiresAt.After(time.Unix(0, 0)) {
		c.Until = answer.ClientSecretExpiresAt
	}
	acc.hide(c.Secret)
	return acc.authorizer.vault.putClient(ctx, acc.server.Name, issuer.Issuer, redirect, before, c)
}
