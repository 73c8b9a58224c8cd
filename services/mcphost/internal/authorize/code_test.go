package authorize_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/oauthtest"
)

func TestAConsentIsGivenOnceAndItsTokenIsShownFromThenOn(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{SaysIssuer: true, Refresh: true, Lifetime: 3600, Scopes: []string{"read", "offline_access"}})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer, Told: true, Scopes: []string{"read"}}, echo())
	h := start(t, pool(t), nil)
	access := h.open(t, p, nil)

	_, err := ask(t, access, p)
	why := refused(t, err)
	require.True(t, why.Consent)
	require.Contains(t, why.Error(), "authorization_url")
	require.Len(t, issuer.Seen("/register"), 1)
	registration := issuer.Seen("/register")[0].Registration
	require.Equal(t, "native", registration["application_type"])
	require.Equal(t, []any{"authorization_code", "refresh_token"}, registration["grant_types"])

	page := h.page(t, "")
	asked, err := url.Parse(page)
	require.NoError(t, err)
	require.Equal(t, "S256", asked.Query().Get("code_challenge_method"))
	require.Equal(t, p.URL+oauthtest.Path, asked.Query().Get("resource"))
	require.Equal(t, "read offline_access", asked.Query().Get("scope"))

	at, status, text := browse(t, page)
	require.Equal(t, http.StatusOK, status, text)
	body, err := ask(t, access, p)
	require.NoError(t, err)
	require.Equal(t, "echo hello", body)
	require.Equal(t, []string{"crm/"}, h.granted)
	require.Empty(t, h.page(t, ""), "nothing is left to consent to")

	_, status, text = browse(t, at)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "nothing is asked under this state any more")
	back, err := url.Parse(at)
	require.NoError(t, err)
	for _, secret := range append(h.secrets(), back.Query().Get("code"), back.Query().Get("state")) {
		require.NotContains(t, text, secret)
		require.NotContains(t, h.log.String(), secret)
	}
}

func TestATokenIsKeptSealedAndFoundByAnotherProcess(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	db := pool(t)
	one := start(t, db, nil)
	one.consent(t, one.open(t, p, nil))

	another := start(t, db, nil)
	access := another.open(t, p, nil)
	require.NoError(t, access.Prepare(t.Context()))
	_, err := ask(t, access, p)
	require.NoError(t, err)
	require.NotEmpty(t, another.secrets())
	var kept []byte
	require.NoError(t, db.QueryRow(t.Context(), `select string_agg(sealed, '') from
		(select sealed from authorization_tokens union all select sealed from authorization_clients) as a`).Scan(&kept))
	for _, secret := range another.secrets() {
		require.NotContains(t, string(kept), secret)
	}

	t.Run("but not with another key", func(t *testing.T) {
		stranger := start(t, db, func(o *authorize.Options) { o.Box = box(t, "x") })
		require.True(t, refused(t, stranger.open(t, p, nil).Prepare(t.Context())).Consent)
	})
	t.Run("nor for another seat, another address or other terms", func(t *testing.T) {
		elsewhere := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
		for name, change := range map[string]func(*authorize.Server){
			"seat":    func(s *authorize.Server) { s.Seat = "ada" },
			"address": func(s *authorize.Server) { s.URL = elsewhere.URL + oauthtest.Path },
			"terms":   func(s *authorize.Server) { s.Scopes = []string{"admin"} },
		} {
			require.True(t, refused(t, one.open(t, p, change).Prepare(t.Context())).Consent, name)
		}
	})
}

func TestAPageToConsentOnStaysTheSameWhileItCanBeUsed(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	h := start(t, nil, nil)
	access := h.open(t, p, nil)
	require.Error(t, access.Prepare(t.Context()))
	first := h.page(t, "")
	for range 3 {
		h.pass(10 * time.Minute)
		require.Error(t, h.open(t, p, nil).Prepare(t.Context()))
		require.Equal(t, first, h.page(t, ""))
	}
	h.pass(20 * time.Minute)
	require.Error(t, access.Prepare(t.Context()))
	require.NotEqual(t, first, h.page(t, ""), "it was about to end")
	require.Len(t, issuer.Seen("/register"), 1, "a client is registered once")

	page, authorized, err := access.Begin(t.Context())
	require.NoError(t, err)
	require.False(t, authorized)
	require.Equal(t, h.page(t, ""), page)
	_, status, _ := browse(t, first)
	require.Equal(t, http.StatusBadRequest, status)
	_, status, _ = browse(t, page)
	require.Equal(t, http.StatusOK, status)
	page, authorized, err = access.Begin(t.Context())
	require.NoError(t, err)
	require.True(t, authorized)
	require.Empty(t, page)
}

func TestAConsentThatNobodyGivesInTimeCannotBeGiven(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	h := start(t, nil, nil)
	require.Error(t, h.open(t, p, nil).Prepare(t.Context()))
	page := h.page(t, "")
	h.pass(61 * time.Minute)
	_, status, text := browse(t, page)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "more than an hour")
	require.Empty(t, issuer.Seen("/token"))
}

func TestWhatAnIssuerSaysToAConsentIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manners oauthtest.Manners
		says    string
	}{
		"it must name itself when it says that it does": {oauthtest.Manners{SaysIssuer: true, Issuer: "-"}, "does not say who it is from"},
		"it must be the one that was asked":             {oauthtest.Manners{SaysIssuer: true, Issuer: "https://evil.example"}, "from another authorization server"},
		"also when it need not say so":                  {oauthtest.Manners{Issuer: "https://evil.example"}, "from another authorization server"},
		"a refusal is told":                             {oauthtest.Manners{Deny: "access_denied"}, "access_denied"},
		"a refusal of somebody else is not":             {oauthtest.Manners{Deny: "access_denied", Issuer: "https://evil.example"}, "from another authorization server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := oauthtest.Start(t, c.manners)
			p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
			h := start(t, nil, nil)
			require.Error(t, h.open(t, p, nil).Prepare(t.Context()))
			_, status, text := browse(t, h.page(t, ""))
			require.Equal(t, http.StatusBadRequest, status)
			require.Contains(t, text, c.says)
			require.Empty(t, issuer.Seen("/token"), "no code was exchanged")
			require.Empty(t, h.page(t, ""), "the state is used up")
		})
	}
}

func TestTheCallbackTakesNothingElse(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	h := start(t, nil, nil)
	require.Error(t, h.open(t, p, nil).Prepare(t.Context()))
	callback := h.public.URL + authorize.CallbackPath
	for _, query := range []string{"", "?state=x&code=y", "?code=y", "?state=%3Cscript%3E", "?state=a&state=b"} {
		_, status, text := browse(t, callback+query)
		require.Equal(t, http.StatusBadRequest, status, query)
		require.NotContains(t, text, "<script>")
	}
	_, status, _ := browse(t, callback+"?state="+strings.Repeat("x", 20<<10))
	require.Equal(t, http.StatusRequestURITooLong, status)

	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, callback, nil)
	require.NoError(t, err)
	response, err := http.DefaultTransport.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode, "a look at the head uses up nothing")
	_, status, _ = browse(t, h.page(t, ""))
	require.Equal(t, http.StatusOK, status)
}

func TestABrowserCanComeBackToHTTPSOrLoopbackOnly(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, echo())
	h := start(t, nil, func(o *authorize.Options) { o.BaseURL = func() string { return "http://10.1.2.3:8080" } })
	why := refused(t, h.open(t, p, nil).Prepare(t.Context()))
	require.False(t, why.Consent)
	require.Contains(t, why.Error(), "public_base_url")
}
