package authorize_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/oauthtest"
)

// machine declares a client of its own, without a person.
func machine(scopes ...string) func(*authorize.Server) {
	return func(s *authorize.Server) {
		s.Grant, s.ClientID, s.ClientSecret, s.Scopes = authorize.ClientCredentials, "co:mpany", "s3cret/+ %", scopes
	}
}

// hand are the clients that were registered by hand.
func hand() map[string]string { return map[string]string{"co:mpany": "s3cret/+ %"} }

func TestAClientProvesItselfAsItsIssuerWants(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"client_secret_basic", "client_secret_post", "none"} {
		t.Run("registered, "+method, func(t *testing.T) {
			t.Parallel()
			issuer := oauthtest.Start(t, oauthtest.Manners{Methods: []string{method}})
			p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
			h := start(t, nil, nil)
			access := h.open(t, p, nil)
			h.consent(t, access)
			_, err := ask(t, access, p)
			require.NoError(t, err)
			require.Equal(t, method == "client_secret_basic", issuer.Seen("/token")[0].Basic)
		})
		if method == "none" {
			continue
		}
		t.Run("declared, "+method, func(t *testing.T) {
			t.Parallel()
			issuer := oauthtest.Start(t, oauthtest.Manners{Methods: []string{method}, Closed: true, Secrets: hand()})
			p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
			h := start(t, nil, nil)
			access := h.open(t, p, machine())
			require.NoError(t, access.Prepare(t.Context()))
			_, err := ask(t, access, p)
			require.NoError(t, err)
		})
	}
	t.Run("known by its document", func(t *testing.T) {
		t.Parallel()
		issuer := oauthtest.Start(t, oauthtest.Manners{Documents: true, Closed: true})
		p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
		h := start(t, nil, func(o *authorize.Options) { o.DocumentURL = "https://bullpen.example/client.json" })
		access := h.open(t, p, nil)
		h.consent(t, access)
		require.Equal(t, "https://bullpen.example/client.json", issuer.Seen("/authorize")[0].Form.Get("client_id"))
		_, err := ask(t, access, p)
		require.NoError(t, err)
	})
}

func TestATokenThatEndsIsRenewedBeforeItDoes(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{Refresh: true, Lifetime: 600})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	h := start(t, pool(t), nil)
	access := h.open(t, p, nil)
	h.consent(t, access)
	h.pass(595 * time.Second)
	_, err := ask(t, access, p)
	require.NoError(t, err)
	require.Equal(t, 1, p.Refused(), "the first question alone was turned away")
	tokens := issuer.Seen("/token")
	require.Len(t, tokens, 2)
	require.Equal(t, "refresh_token", tokens[1].Form.Get("grant_type"))
	require.Equal(t, p.URL+oauthtest.Path, tokens[1].Form.Get("resource"))
}

func TestARefreshTokenIsUsedOnceHoweverManyNeedIt(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{Refresh: true})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	db := pool(t)
	nodes := []*host{start(t, db, nil), start(t, db, nil)}
	nodes[0].consent(t, nodes[0].open(t, p, nil))
	var all []*authorize.Access
	for _, h := range nodes {
		access := h.open(t, p, nil)
		_, err := ask(t, access, p)
		require.NoError(t, err)
		all = append(all, access, h.open(t, p, nil))
	}
	issuer.Revoke(false)
	before := len(issuer.Seen("/token"))
	var group sync.WaitGroup
	errs := make(chan error, 40)
	for n := range 40 {
		group.Go(func() {
			_, err := ask(t, all[n%len(all)], p)
			errs <- err
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, issuer.Seen("/token"), before+1)
}

func TestWhenNothingRenewsATokenAnOperatorIsAsked(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{Refresh: true})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	h := start(t, nil, nil)
	access := h.open(t, p, nil)
	h.consent(t, access)
	issuer.Revoke(true)
	_, err := ask(t, access, p)
	require.True(t, refused(t, err).Consent)
	_, status, _ := browse(t, h.page(t, ""))
	require.Equal(t, http.StatusOK, status)
	_, err = ask(t, access, p)
	require.NoError(t, err)
}

func TestAMachinesTokenIsHadAgainWithoutAnybody(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{Closed: true, Secrets: hand(), Lifetime: 60})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer, Scopes: []string{"read", "write"}}, echo())
	h := start(t, nil, nil)
	access := h.open(t, p, machine())
	_, err := ask(t, access, p)
	require.NoError(t, err)
	require.Equal(t, "read write", issuer.Seen("/token")[0].Form.Get("scope"))
	issuer.Revoke(true)
	_, err = ask(t, access, p)
	require.NoError(t, err)
	h.pass(time.Minute)
	_, err = ask(t, access, p)
	require.NoError(t, err)
	require.Len(t, issuer.Seen("/token"), 3)
}

func TestAScopeThatIsMissingIsAddedToThoseThatWereHad(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	terms := oauthtest.Terms{Issuer: issuer, Challenged: true, Needs: func(*http.Request) []string { return []string{"read"} }}
	p := oauthtest.Protect(t, terms, echo())
	h := start(t, nil, nil)
	access := h.open(t, p, nil)
	h.consent(t, access)
	_, err := ask(t, access, p)
	require.NoError(t, err)

	terms.Needs = func(*http.Request) []string { return []string{"write"} }
	p.Change(terms)
	_, err = ask(t, access, p)
	require.True(t, refused(t, err).Consent)
	page, authorized, err := access.Begin(t.Context())
	require.NoError(t, err)
	require.True(t, authorized, "what the token was good for it is good for still")
	_, status, _ := browse(t, page)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "read write", issuer.Seen("/authorize")[1].Form.Get("scope"))
	_, err = ask(t, access, p)
	require.NoError(t, err)
}

func TestAServerThatIsNeverSatisfiedIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	needs := func(*http.Request) []string { return []string{"admin"} }
	t.Run("with a scope that the token has", func(t *testing.T) {
		t.Parallel()
		issuer := oauthtest.Start(t, oauthtest.Manners{Closed: true, Secrets: hand()})
		stingy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`)
			w.WriteHeader(http.StatusForbidden)
		})
		p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer, Challenged: true, Needs: needs}, stingy)
		h := start(t, nil, nil)
		_, err := ask(t, h.open(t, p, machine()), p)
		require.Contains(t, refused(t, err).Error(), "will not be satisfied")
		require.Len(t, issuer.Seen("/token"), 1)
	})
	t.Run("with a scope that the issuer never grants", func(t *testing.T) {
		t.Parallel()
		issuer := oauthtest.Start(t, oauthtest.Manners{Closed: true, Secrets: hand(), Grant: func([]string) []string { return []string{"read"} }})
		p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer, Challenged: true, Needs: needs}, echo())
		h := start(t, nil, nil)
		_, err := ask(t, h.open(t, p, machine()), p)
		require.Contains(t, refused(t, err).Error(), "refuses every token")
		require.Len(t, issuer.Seen("/token"), 2)
	})
	t.Run("with a scope that the company does not allow", func(t *testing.T) {
		t.Parallel()
		issuer := oauthtest.Start(t, oauthtest.Manners{Closed: true, Secrets: hand()})
		p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer, Challenged: true, Needs: needs}, echo())
		h := start(t, nil, nil)
		_, err := ask(t, h.open(t, p, machine("read")), p)
		require.Contains(t, refused(t, err).Error(), "authorization.scopes")
		require.Len(t, issuer.Seen("/token"), 1)
	})
}

func TestAnotherIssuerGetsAnotherClientAndNothingOfTheFirst(t *testing.T) {
	t.Parallel()
	first, second := oauthtest.Start(t, oauthtest.Manners{Refresh: true}), oauthtest.Start(t, oauthtest.Manners{})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: first}, echo())
	h := start(t, pool(t), nil)
	access := h.open(t, p, nil)
	h.consent(t, access)
	_, err := ask(t, access, p)
	require.NoError(t, err)
	exchanged := len(first.Seen("/token"))

	p.Change(oauthtest.Terms{Issuer: second})
	_, err = ask(t, access, p)
	require.True(t, refused(t, err).Consent)
	_, status, _ := browse(t, h.page(t, ""))
	require.Equal(t, http.StatusOK, status)
	_, err = ask(t, access, p)
	require.NoError(t, err)
	require.Len(t, first.Seen("/token"), exchanged, "the refresh token of an issuer that is trusted no more is not used")
	require.Len(t, second.Seen("/register"), 1)
	require.NotEqual(t, first.Seen("/authorize")[0].Form.Get("client_id"), second.Seen("/authorize")[0].Form.Get("client_id"))
}

func TestADeclaredSecretIsShownToTheIssuerThatItIsOf(t *testing.T) {
	t.Parallel()
	first, second := oauthtest.Start(t, oauthtest.Manners{Secrets: hand()}), oauthtest.Start(t, oauthtest.Manners{Secrets: hand()})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: first}, echo())
	h := start(t, pool(t), nil)
	access := h.open(t, p, machine())
	require.NoError(t, access.Prepare(t.Context()))
	p.Change(oauthtest.Terms{Issuer: second})
	_, err := ask(t, access, p)
	require.Contains(t, refused(t, err).Error(), "declare the client of the new one")
	require.NotContains(t, err.Error(), "s3cret")
	require.Empty(t, second.Seen("/token"))
}

func TestAClientThatItsIssuerForgotIsRegisteredAnew(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{Refresh: true})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	h := start(t, pool(t), nil)
	access := h.open(t, p, nil)
	h.consent(t, access)
	issuer.Forget()
	_, err := ask(t, access, p)
	require.True(t, refused(t, err).Consent)
	require.Len(t, issuer.Seen("/register"), 2)
	_, status, _ := browse(t, h.page(t, ""))
	require.Equal(t, http.StatusOK, status)
	_, err = ask(t, access, p)
	require.NoError(t, err)
}
