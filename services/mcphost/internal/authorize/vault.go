package authorize

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// vault keeps records sealed, each bound to its place. Without a box they are as they are, in memory.
type vault struct {
	store Store
	box   *sealed.Box
}

// client is who we are at an issuer.
type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	// Method is how it proves itself at the token endpoint: client_secret_basic, client_secret_post or none.
	Method string `json:"method"`
	// Until is when the secret ends; the zero time for never.
	Until time.Time `json:"until,omitzero"`
}

// token is what a server takes, and how to get the next one.
type token struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"`
	// Until is when it ends; the zero time when the issuer did not say.
	Until time.Time `json:"until,omitzero"`
	// Asked and Granted are scopes. An issuer that does not say what it granted granted what was asked for.
	Asked   []string `json:"asked,omitempty"`
	Granted []string `json:"granted,omitempty"`
	Issuer  string   `json:"issuer"`
	// Endpoint is the issuer's for tokens.
	Endpoint string `json:"endpoint"`
	Resource string `json:"resource"`
	Client   client `json:"client"`
	// Terms are a digest of what the company said when it was had.
	Terms string `json:"terms"`
}

// ends reports whether the token is as good as over.
func (t *token) ends(now time.Time) bool {
	const margin = 30 * time.Second
	return !t.Until.IsZero() && !now.Add(margin).Before(t.Until)
}

// consent is what an operator was asked for, and all that the answer needs.
type consent struct {
	URL      string `json:"url"`
	Verifier string `json:"verifier"`
	Redirect string `json:"redirect"`
	// SaysIssuer means that the issuer names itself in its answer, always.
	SaysIssuer bool `json:"says_issuer,omitempty"`
	// Token has everything but the token.
	Token token `json:"token"`
	// Account is the resource that the server is at, of which the token is one.
	Account string `json:"account"`
}

// question is a digest of what is asked, whoever asks it. One that was sealed with another key is another question.
func (v vault) question(c *consent) []byte {
	t := c.Token
	text := []byte(strings.Join(append([]string{c.Account, c.Redirect, t.Issuer, t.Client.ID, t.Terms}, t.Asked...), "\x00"))
	if v.box != nil {
		return v.box.Digest(text)
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// place names what a record is bound to.
func place(kind string, parts ...string) string {
	return "mcphost." + kind + "\x00" + strings.Join(parts, "\x00")
}

func (v vault) seal(where string, record any) ([]byte, error) {
	data, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be sealed: %w", err)
	}
	if v.box == nil {
		return data, nil
	}
	return v.box.Seal(where, string(data)), nil
}

// open fills a record. One that does not open is as none: it was sealed with a key that is gone, and another can be had.
func (v vault) open(where string, data []byte, record any) bool {
	if data == nil {
		return false
	}
	if v.box != nil {
		text, err := v.box.Open(where, data)
		if err != nil {
			return false
		}
		data = []byte(text)
	}
	return json.Unmarshal(data, record) == nil
}

// client answers a registration, nil for none, and how it is kept.
func (v vault) client(ctx context.Context, server, issuer, redirect string) (c *client, kept []byte, err error) {
	kept, err = v.store.AuthorizationClient(ctx, server, issuer, redirect)
	if err != nil {
		return nil, nil, err
	}
	c = &client{}
	if !v.open(place("client", server, issuer, redirect), kept, c) {
		c = nil
	}
	return c, kept, nil
}

// putClient keeps a registration, and answers the one that is kept: somebody may have been faster.
func (v vault) putClient(ctx context.Context, server, issuer, redirect string, before []byte, c *client) (*client, error) {
	data, err := v.seal(place("client", server, issuer, redirect), c)
	if err != nil {
		return nil, err
	}
	if err := v.store.ReplaceAuthorizationClient(ctx, server, issuer, redirect, before, data); err != nil {
		return nil, err
	}
	kept, _, err := v.client(ctx, server, issuer, redirect)
	if kept == nil {
		kept = c
	}
	return kept, err
}

// dropClient forgets a registration that its issuer has forgotten.
func (v vault) dropClient(ctx context.Context, server, issuer, redirect, id string) error {
	c, kept, err := v.client(ctx, server, issuer, redirect)
	if err != nil || c == nil || c.ID != id {
		return err
	}
	return v.store.ReplaceAuthorizationClient(ctx, server, issuer, redirect, kept, nil)
}

func (v vault) token(ctx context.Context, who account) (*token, error) {
	data, err := v.store.AuthorizationToken(ctx, who.server, who.seat, who.resource)
	if err != nil {
		return nil, err
	}
	return v.openToken(who, data), nil
}

func (v vault) openToken(who account, data []byte) *token {
	var t token
	if !v.open(place("token", who.server, who.seat, who.resource), data, &t) {
		return nil
	}
	return &t
}

// changeToken replaces a token while nobody else can.
func (v vault) changeToken(ctx context.Context, who account, change func(before *token) (*token, error)) error {
	return v.store.ChangeAuthorizationToken(ctx, who.server, who.seat, who.resource, func(data []byte) ([]byte, error) {
		after, err := change(v.openToken(who, data))
		if err != nil || after == nil {
			return nil, err
		}
		return v.seal(place("token", who.server, who.seat, who.resource), after)
	})
}

const consentTime = time.Hour

// stateKey is under which a consent is kept: the state itself is for the browser alone.
func stateKey(state string) []byte {
	sum := sha256.Sum256([]byte("mcphost.state\x00" + state))
	return sum[:]
}

func (v vault) putConsent(ctx context.Context, server, seat, state string, c *consent) error {
	data, err := v.seal(place("consent", server, seat), c)
	if err != nil {
		return err
	}
	return v.store.PutConsent(ctx, stateKey(state), store.Consent{
		Server: server, Seat: seat, Question: v.question(c), Sealed: data, Left: consentTime,
	}, consentTime/4)
}

// takeConsent answers a consent, once.
func (v vault) takeConsent(ctx context.Context, state string) (server, seat string, c *consent, err error) {
	kept, err := v.store.TakeConsent(ctx, stateKey(state))
	if err != nil || kept == nil {
		return "", "", nil, err
	}
	c = &consent{}
	if !v.open(place("consent", kept.Server, kept.Seat), kept.Sealed, c) {
		return "", "", nil, nil
	}
	return kept.Server, kept.Seat, c, nil
}

// openConsent is a consent that can still be given.
type openConsent struct {
	consent
	server, seat string
}

func (v vault) consents(ctx context.Context) ([]openConsent, error) {
	kept, err := v.store.Consents(ctx)
	if err != nil {
		return nil, err
	}
	var all []openConsent
	for _, k := range kept {
		c := openConsent{server: k.Server, seat: k.Seat}
		if v.open(place("consent", k.Server, k.Seat), k.Sealed, &c.consent) {
			all = append(all, c)
		}
	}
	return all, nil
}

// union answers the scopes of both, in order, once each.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, scope := range b {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// covers reports whether every scope of b is in a.
func covers(a, b []string) bool {
	for _, scope := range b {
		if !slices.Contains(a, scope) {
			return false
		}
	}
	return true
}
