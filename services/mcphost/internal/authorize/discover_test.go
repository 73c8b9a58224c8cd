package authorize_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/oauthtest"
)

func TestMetadataAreFoundWhereverTheyMayBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		issuer   oauthtest.Manners
		resource oauthtest.Terms
	}{
		"told in the challenge":                         {oauthtest.Manners{}, oauthtest.Terms{Told: true}},
		"told in the challenge, at a place of its own":  {oauthtest.Manners{Prefix: "/tenant", OIDC: true, Appended: true}, oauthtest.Terms{Told: true, MetadataPath: "/custom/metadata.json"}},
		"at the path, and OpenID Connect's":             {oauthtest.Manners{OIDC: true}, oauthtest.Terms{}},
		"at the root, of a tenant":                      {oauthtest.Manners{Prefix: "/tenant"}, oauthtest.Terms{MetadataPath: "/.well-known/oauth-protected-resource"}},
		"at the path, and OpenID Connect's of a tenant": {oauthtest.Manners{Prefix: "/tenant", OIDC: true}, oauthtest.Terms{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := oauthtest.Start(t, c.issuer)
			c.resource.Issuer = issuer
			p := oauthtest.Protect(t, c.resource, echo())
			h := start(t, nil, nil)
			access := h.open(t, p, nil)
			h.consent(t, access)
			_, err := ask(t, access, p)
			require.NoError(t, err)
		})
	}
}

func TestAServerOfTheOldestRevisionIssuesItsTokensItself(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	// The resource is at the issuer's own host, and has no metadata.
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.Handle("/", issuer.Config.Handler)
	both := httptest.NewServer(mux)
	t.Cleanup(both.Close)
	issuer.URL = both.URL
	h := start(t, nil, nil)
	access, err := h.For(authorize.Server{Name: "crm", URL: both.URL + "/mcp", Grant: authorize.AuthorizationCode})
	require.NoError(t, err)
	h.consent(t, access)
	require.Len(t, issuer.Seen("/token"), 1)
}

func TestMetadataOfSomebodyElseAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		issuer   oauthtest.Manners
		resource oauthtest.Terms
		says     string
	}{
		"another resource":               {oauthtest.Manners{}, oauthtest.Terms{Name: "https://evil.example/mcp"}, "another resource"},
		"a resource beside":              {oauthtest.Manners{}, oauthtest.Terms{Told: true, Name: "beside"}, "another resource"},
		"another issuer":                 {oauthtest.Manners{MetadataIssuer: "https://evil.example"}, oauthtest.Terms{}, "does not match"},
		"an issuer that takes no digest": {oauthtest.Manners{NoPKCE: true}, oauthtest.Terms{}, "PKCE"},
		"an issuer that knows nobody":    {oauthtest.Manners{Closed: true}, oauthtest.Terms{}, "authorization.client_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := oauthtest.Start(t, c.issuer)
			c.resource.Issuer = issuer
			p := oauthtest.Protect(t, c.resource, echo())
			if c.resource.Name == "beside" {
				c.resource.Name = p.URL + "/mc"
				p.Change(c.resource)
			}
			h := start(t, nil, nil)
			why := refused(t, h.open(t, p, nil).Prepare(t.Context()))
			require.False(t, why.Consent)
			require.Contains(t, why.Error(), c.says)
			require.Empty(t, h.page(t, ""))
			require.Empty(t, issuer.Seen("/authorize"))
		})
	}
}

func TestAServerThatWantsNothingIsLeftAlone(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(echo())
	t.Cleanup(plain.Close)
	h := start(t, nil, nil)
	access, err := h.For(authorize.Server{Name: "crm", URL: plain.URL, Grant: authorize.AuthorizationCode})
	require.NoError(t, err)
	require.NoError(t, access.Prepare(t.Context()))
	page, authorized, err := access.Begin(t.Context())
	require.NoError(t, err)
	require.False(t, authorized)
	require.Empty(t, page)
}

func TestATokenIsShownAtHTTPSOrLoopbackOnly(t *testing.T) {
	t.Parallel()
	h := start(t, nil, nil)
	for address, good := range map[string]bool{
		"https://crm.example/mcp": true, "http://127.0.0.1:1/mcp": true, "http://[::1]:1/mcp": true, "http://localhost/mcp": true,
		"http://crm.example/mcp": false, "http://10.0.0.1/mcp": false, "ftp://crm.example": false, "https://user:word@crm.example": false, "nonsense": false,
	} {
		_, err := h.For(authorize.Server{Name: "crm", URL: address})
		require.Equal(t, good, err == nil, address)
	}
}
