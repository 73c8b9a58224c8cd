package authorize

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// ask keeps a consent for an operator to give, and answers the refusal that says so. One that asks the same and can still be given for
// a while stays: somebody may have its page open.
func (acc *Access) ask(ctx context.Context, t *token, issuer *oauthex.AuthServerMeta) error {
	a := acc.authorizer
	redirect := a.redirectURI()
	if u, err := url.Parse(redirect); err != nil || !secure(u) {
		return refuse("an operator must consent to its use, and a browser can come back to https or loopback only: set integrations.public_base_url")
	}
	if issuer.AuthorizationEndpoint == "" {
		return refuse("its authorization server %s has no page to consent on", quoted(issuer.Issuer))
	}
	who, err := acc.identify(ctx, issuer, redirect)
	if err != nil {
		return err
	}
	t.Client = *who
	state := rand.Text()
	if err := a.vault.putConsent(ctx, acc.server.Name, acc.server.Seat, state, acc.newConsent(t, issuer, redirect, state)); err != nil {
		return err
	}
	a.options.Log.Info("mcp_server_consent_needed", "mcp_server", acc.server.Name, "seat", acc.server.Seat, "issuer", t.Issuer, "scopes", t.Asked)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.waiting, acc.waitingSince = consentNeeded(), a.options.Now()
	return acc.waiting
}

// opened answers the consent that can be given for this server and seat; nil for none.
func (acc *Access) opened(ctx context.Context) (*openConsent, error) {
	all, err := acc.authorizer.vault.consents(ctx)
	for i := range all {
		if all[i].server == acc.server.Name && all[i].seat == acc.server.Seat {
			return &all[i], err
		}
	}
	return nil, err
}

// newConsent binds an answer to what is asked: by the state, and by the verifier that the issuer sees a digest of.
func (acc *Access) newConsent(t *token, issuer *oauthex.AuthServerMeta, redirect, state string) *consent {
	verifier := rand.Text() + rand.Text() // 52 characters of the 43 to 128 that there may be
	sum := sha256.Sum256([]byte(verifier))
	query := url.Values{
		"response_type": {"code"}, "client_id": {t.Client.ID}, "redirect_uri": {redirect}, "state": {state}, "resource": {t.Resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	scope(query, t.Asked)
	if slices.Contains(t.Asked, "offline_access") {
		query.Set("prompt", "consent") // OpenID Connect gives a refresh token to those alone who see the question
	}
	page := issuer.AuthorizationEndpoint
	separator := "?"
	if strings.Contains(page, "?") {
		separator = "&"
	}
	return &consent{
		URL: page + separator + query.Encode(), Verifier: verifier, Redirect: redirect, Token: *t, Account: acc.account.resource,
		SaysIssuer: issuer.AuthorizationResponseIssParameterSupported,
	}
}

// Begin answers where an operator consents to the use of a server, or that a token is there already and nobody need consent.
func (acc *Access) Begin(ctx context.Context) (page string, authorized bool, err error) {
	if err := acc.Prepare(ctx); err != nil && !asked(err) {
		return "", false, err
	}
	// A token may be there, and a consent to more than it is good for be awaited.
	open, err := acc.opened(ctx)
	if err != nil {
		return "", false, err
	}
	t, err := acc.held(ctx)
	if err != nil {
		return "", false, err
	}
	if open != nil {
		return open.URL, t != nil, nil
	}
	return "", t != nil, nil
}

// Waiting reports whether an operator's consent is awaited.
func (acc *Access) Waiting() bool {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	return acc.waiting != nil
}

// Granted looks whether the consent that was awaited has brought a token, here or at another node.
func (acc *Access) Granted(ctx context.Context) (bool, error) {
	t, err := acc.load(ctx)
	return t != nil && !acc.Waiting(), err
}

// Pages answers where operators consent to what servers wait for, by server and seat.
func (a *Authorizer) Pages(ctx context.Context) (map[[2]string]string, error) {
	open, err := a.vault.consents(ctx)
	pages := map[[2]string]string{}
	for _, c := range open {
		pages[[2]string{c.server, c.seat}] = c.URL
	}
	return pages, err
}

// Completed is a consent that brought a token.
type Completed struct{ Server, Seat string }

// Complete takes what a browser came back with: the query of the callback. A state is good once, whatever comes of it.
func (a *Authorizer) Complete(ctx context.Context, query url.Values) (Completed, error) {
	state := query.Get("state")
	if state == "" || len(state) > 512 {
		return Completed{}, refuse("the answer does not say which question it is to")
	}
	server, seat, c, err := a.vault.takeConsent(ctx, state)
	switch {
	case err != nil:
		return Completed{}, err
	case c == nil:
		return Completed{}, refuse("nothing is asked under this state any more: it was answered, or replaced, or waited for more than an hour")
	}
	done := Completed{Server: server, Seat: seat}
	if err := c.check(query); err != nil {
		return done, err
	}
	acc := &Access{authorizer: a, server: Server{Name: server, Seat: seat}, account: account{server, seat, c.Account}}
	at, err := url.Parse(c.Account)
	if err != nil {
		return done, err
	}
	acc.client = a.outbound(at)
	// The code is good once: what comes of it is kept even when the browser does not wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), authorizeTime)
	defer cancel()
	next, err := acc.exchange(ctx, &c.Token, url.Values{
		"grant_type": {AuthorizationCode}, "code": {query.Get("code")}, "redirect_uri": {c.Redirect}, "code_verifier": {c.Verifier},
	})
	if err != nil {
		return done, err
	}
	err = a.vault.changeToken(ctx, acc.account, func(*token) (*token, error) { return next, nil })
	if err != nil {
		return done, err
	}
	// Another node may have asked meanwhile for what is there now.
	if err := a.vault.store.DropConsent(ctx, server, seat); err != nil {
		return done, err
	}
	a.options.Log.Info("mcp_server_authorized", "mcp_server", server, "seat", seat, "issuer", next.Issuer, "scopes", next.Granted, "refreshes", next.Refresh != "")
	if a.options.Granted != nil {
		a.options.Granted(server, seat)
	}
	return done, nil
}

// check reads an answer. Who it is from is looked at first (RFC 9207): nothing else in it counts when it is from somebody else.
func (c *consent) check(query url.Values) error {
	for name, values := range query {
		if len(values) > 1 {
			return refuse("the answer says %s more than once", quoted(name))
		}
	}
	switch issuer, code := query.Get("iss"), query.Get("code"); {
	case issuer == "" && c.SaysIssuer:
		return refuse("the answer does not say who it is from, as its authorization server does")
	case issuer != "" && issuer != c.Token.Issuer:
		return refuse("the answer is from another authorization server than the one that was asked")
	case query.Get("error") != "":
		return refuse("its authorization server says: %s", described(oauthFailure{query.Get("error"), query.Get("error_description")}))
	case code == "" || len(code) > 8<<10:
		return refuse("the answer has no code")
	}
	return nil
}

// redirectURI is where browsers come back to.
func (a *Authorizer) redirectURI() string { return a.options.BaseURL() + CallbackPath }

// documentURL is what we are called where issuers read metadata documents: somebody else's address for it, or ours when it is https.
func (a *Authorizer) documentURL() string {
	if a.options.DocumentURL != "" {
		return a.options.DocumentURL
	}
	if base := a.options.BaseURL(); strings.HasPrefix(base, "https://") {
		return base + DocumentPath
	}
	return ""
}
