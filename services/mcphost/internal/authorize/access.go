package authorize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	// authorizeTime bounds all that is done to get a token at one time.
	authorizeTime = time.Minute
	// memoryTime is how long it is taken for granted that an operator has not consented yet.
	memoryTime = 2 * time.Second
)

// Access is one server's: the token that is shown to it, and the way to the next one. Safe for concurrent use.
type Access struct {
	authorizer *Authorizer
	server     Server
	endpoint   *url.URL
	account    account
	client     *http.Client

	mu      sync.Mutex
	current *token
	loaded  bool
	// waiting is set while an operator's consent is awaited, and since when.
	waiting      *Refused
	waitingSince time.Time
}

// terms are a digest of what the company says of the access. A token of other terms is none.
func (acc *Access) terms() string {
	s := acc.server
	sum := sha256.Sum256([]byte(strings.Join(append([]string{s.Grant, s.ClientID}, s.Scopes...), "\x00")))
	return hex.EncodeToString(sum[:])
}

func (acc *Access) hide(values ...string) {
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	if acc.server.Hide != nil && len(values) > 0 {
		acc.server.Hide(values...)
	}
}

// held answers the token as far as it is known here, nil for none.
func (acc *Access) held(ctx context.Context) (*token, error) {
	acc.mu.Lock()
	current, loaded, waiting := acc.current, acc.loaded, acc.waiting != nil
	acc.mu.Unlock()
	if loaded && (current != nil || !waiting) {
		return current, nil
	}
	return acc.load(ctx)
}

// load reads the token again: another node, or an operator, may have brought one.
func (acc *Access) load(ctx context.Context) (*token, error) {
	t, err := acc.authorizer.vault.token(ctx, acc.account)
	if err != nil {
		return nil, err
	}
	return acc.adopt(t), nil
}

func (acc *Access) adopt(t *token) *token {
	if t != nil && t.Terms != acc.terms() {
		t = nil
	}
	if t != nil {
		acc.hide(t.Access, t.Refresh, t.Client.Secret)
	}
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if t != nil && (acc.current == nil || acc.current.Access != t.Access) {
		acc.waiting = nil
	}
	acc.current, acc.loaded = t, true
	return t
}

// usable answers a token for a request, renewed when it is about to end; nil for none. One that cannot be renewed is as none.
func (acc *Access) usable(ctx context.Context) (*token, error) {
	t, err := acc.held(ctx)
	if err != nil || t == nil || !t.ends(acc.authorizer.options.Now()) {
		return t, err
	}
	done, err := acc.authorizer.turn(ctx, acc.account)
	if err != nil {
		return nil, err
	}
	defer done()
	if now, err := acc.load(ctx); err != nil || now != nil && now.Access != t.Access {
		return now, err
	}
	next, err := acc.renew(ctx, t)
	var no *turnedDown
	if errors.As(err, &no) {
		return nil, nil // the server says what it needs now
	}
	return next, err
}

// renew exchanges what is there for another token: a refresh token, or the client's own credentials. It answers nil when neither is
// there. It does not end with ctx: what an issuer has given must be kept.
func (acc *Access) renew(ctx context.Context, used *token) (*token, error) {
	if used.Refresh == "" && acc.server.Grant != ClientCredentials {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), authorizeTime)
	defer cancel()
	var kept *token
	err := acc.authorizer.vault.changeToken(ctx, acc.account, func(before *token) (*token, error) {
		if before != nil && before.Access != used.Access && before.Terms == used.Terms {
			kept = before // another node was faster
			return before, nil
		}
		asked := *used
		if asked.Client.ID == acc.server.ClientID {
			asked.Client.Secret = acc.server.ClientSecret // which may be a newer one
		}
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {used.Refresh}}
		if used.Refresh == "" {
			form = url.Values{"grant_type": {ClientCredentials}}
			scope(form, used.Asked)
		}
		next, err := acc.exchange(ctx, &asked, form)
		kept = next
		return next, err
	})
	var no *turnedDown
	switch {
	case errors.As(err, &no):
		return nil, errors.Join(err, acc.giveUp(ctx, used, no))
	case err != nil:
		return nil, err
	}
	return acc.adopt(kept), nil
}

// giveUp forgets what an issuer does not take any more.
func (acc *Access) giveUp(ctx context.Context, used *token, no *turnedDown) error {
	err := acc.authorizer.vault.changeToken(ctx, acc.account, func(before *token) (*token, error) {
		if before != nil && before.Access != used.Access {
			return before, nil
		}
		return nil, nil
	})
	if no.code == "invalid_client" && used.Client.ID != acc.server.ClientID {
		err = errors.Join(err, acc.authorizer.vault.dropClient(ctx, acc.server.Name, used.Issuer, acc.authorizer.redirectURI(), used.Client.ID))
	}
	acc.adopt(nil)
	return err
}

// answer answers a challenge with a token other than the one that was shown, or says why there is none.
func (acc *Access) answer(ctx context.Context, c *challenge, used *token) (*token, error) {
	done, err := acc.authorizer.turn(ctx, acc.account)
	if err != nil {
		return nil, err
	}
	defer done()
	now, err := acc.load(ctx)
	if err != nil {
		return nil, err
	}
	if now != nil && (used == nil || now.Access != used.Access) {
		return now, nil // somebody got one meanwhile
	}
	if waiting := acc.stillWaiting(c); waiting != nil {
		return nil, waiting
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), authorizeTime)
	defer cancel()
	known := ""
	if now != nil {
		known = now.Issuer
	}
	trusted, err := acc.discover(ctx, c, known)
	if err != nil {
		return nil, err
	}
	if now != nil && now.Issuer == trusted.issuer.Issuer && !c.insufficient && now.Refresh != "" {
		next, err := acc.renew(ctx, now)
		var no *turnedDown
		if next != nil || err != nil && !errors.As(err, &no) {
			return next, err
		}
	}
	return acc.obtain(ctx, c, trusted, now)
}

// stillWaiting answers that a consent is awaited, for a moment after it was asked for: a start asks several times.
func (acc *Access) stillWaiting(c *challenge) *Refused {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if c.insufficient || acc.waiting == nil || acc.authorizer.options.Now().Sub(acc.waitingSince) > memoryTime {
		return nil
	}
	return acc.waiting
}

// obtain gets a token from scratch, or asks for an operator's consent to one.
func (acc *Access) obtain(ctx context.Context, c *challenge, trusted *trust, before *token) (*token, error) {
	scopes, err := acc.scopes(c, trusted, before)
	if err != nil {
		return nil, err
	}
	t := &token{
		Issuer: trusted.issuer.Issuer, Endpoint: trusted.issuer.TokenEndpoint, Resource: trusted.resource, Asked: scopes, Terms: acc.terms(),
	}
	if acc.server.Grant == AuthorizationCode {
		if err := acc.ask(ctx, t, trusted.issuer); !asked(err) {
			return nil, err
		}
		return acc.late(ctx, before)
	}
	who, err := acc.identify(ctx, trusted.issuer, "")
	if err != nil {
		return nil, err
	}
	t.Client = *who
	form := url.Values{"grant_type": {ClientCredentials}}
	scope(form, scopes)
	next, err := acc.exchange(ctx, t, form)
	if err != nil {
		return nil, err
	}
	err = acc.authorizer.vault.changeToken(ctx, acc.account, func(*token) (*token, error) { return next, nil })
	if err != nil {
		return nil, err
	}
	return acc.adopt(next), nil
}

// late answers a token that another consent brought while this one was asked for, which is then not needed; without one it answers
// that the operator is awaited.
func (acc *Access) late(ctx context.Context, before *token) (*token, error) {
	now, err := acc.load(ctx)
	switch {
	case err != nil:
		return nil, err
	case now == nil || before != nil && now.Access == before.Access:
		return nil, consentNeeded()
	}
	return now, acc.authorizer.vault.store.DropConsent(ctx, acc.server.Name, acc.server.Seat)
}

// scopes are what to ask for: what the company says, else the server's word for this request, else all that it knows. What was had
// before stays, or the next request would miss it.
func (acc *Access) scopes(c *challenge, trusted *trust, before *token) ([]string, error) {
	wanted := acc.server.Scopes
	if len(wanted) == 0 {
		wanted = c.scopes
	}
	if len(wanted) == 0 {
		wanted = trusted.scopes
	}
	same := before != nil && before.Issuer == trusted.issuer.Issuer
	if c.insufficient {
		if same && len(c.scopes) > 0 && covers(before.Granted, c.scopes) {
			return nil, refuse("it wants the scopes %s, which its token has: it will not be satisfied", quoted(strings.Join(c.scopes, " ")))
		}
		if len(acc.server.Scopes) > 0 && acc.server.Grant == ClientCredentials && !covers(acc.server.Scopes, c.scopes) {
			return nil, refuse("it wants the scopes %s, and authorization.scopes allows others", quoted(strings.Join(c.scopes, " ")))
		}
		wanted = union(wanted, c.scopes)
	}
	if same {
		wanted = union(before.Asked, wanted)
	}
	// Alone it would be all that is asked for, in place of what the issuer gives to those who ask for nothing.
	if len(wanted) > 0 && acc.server.Grant == AuthorizationCode && refreshes(trusted.issuer) {
		wanted = union(wanted, []string{"offline_access"})
	}
	return wanted, nil
}

// refreshes reports whether an issuer gives refresh tokens to those who ask for them.
func refreshes(issuer *oauthex.AuthServerMeta) bool {
	grants := issuer.GrantTypesSupported
	return slices.Contains(issuer.ScopesSupported, "offline_access") && (len(grants) == 0 || slices.Contains(grants, "refresh_token"))
}

func scope(form url.Values, scopes []string) {
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
}
