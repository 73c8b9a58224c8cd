package mcphost_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/oauthtest"
)

// consenting declares a server at which an operator has to consent.
func consenting(p *oauthtest.Resource, shared bool) *companyv1.McpServer {
	return &companyv1.McpServer{
		Name: "crm", Transport: "http", Url: p.URL + oauthtest.Path, Shared: shared,
		Authorization: &companyv1.McpAuthorization{Grant: "authorization_code"},
	}
}

// keyed gives a node a key for tokens.
func keyed(c *mcphost.Config) {
	c.TokenKey = config.Secret(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32)))
}

// page waits until the servers' list says where to consent, and answers it.
func (n *node) page(t testing.TB, seat string) (page string) {
	t.Helper()
	require.Eventually(t, func() bool {
		page = n.authorizationURL(t, seat)
		return page != ""
	}, 30*time.Second, 10*time.Millisecond)
	return page
}

// authorizationURL answers where the servers' list says that somebody has to consent; empty when it says so nowhere.
func (n *node) authorizationURL(t testing.TB, seat string) (page string) {
	t.Helper()
	answer, err := n.ListServers(t.Context(), &mcphostv1.ListServersRequest{})
	require.NoError(t, err)
	for _, s := range answer.GetServers() {
		for _, i := range s.GetInstances() {
			if i.GetSeat() == seat && i.GetAuthorizationUrl() != "" {
				page = i.GetAuthorizationUrl()
			}
		}
	}
	return page
}

// browse opens a page as an operator's browser does.
func browse(t testing.TB, page string) (at, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	require.NoError(t, err)
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.Request.URL.String(), string(data)
}

func TestAServerStartsOnceAnOperatorHasConsented(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{Refresh: true, SaysIssuer: true})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer, Told: true}, serveWeb(t).Config.Handler)
	w := setup(t)
	one := w.node(t, "n1", keyed)
	two := w.node(t, "n2", keyed)
	w.company.public = one.url
	w.apply(t, one, []*companyv1.McpServer{consenting(p, true)})
	w.apply(t, two, []*companyv1.McpServer{consenting(p, true)})
	page := one.page(t, "")
	before := one.tools(t, "", "crm")
	require.Equal(t, "failed", before.GetState())
	require.Contains(t, before.GetReason(), "an operator must consent")

	_, shown := browse(t, page)
	require.Contains(t, shown, "The MCP server crm can be used now")
	for _, n := range []*node{one, two} {
		require.Eventually(t, func() bool { return n.tools(t, "", "crm").GetState() == "ready" }, 30*time.Second, 20*time.Millisecond)
		answer, err := n.call(t.Context(), "", "crm", "whoami", "{}")
		require.NoError(t, err)
		require.Equal(t, "Bearer [REDACTED:secret]", text(t, answer.GetResultJson()), "the server got it, nobody else does")
	}
	require.Empty(t, one.authorizationURL(t, ""))
	issuer.Revoke(false)
	_, err := two.call(t.Context(), "", "crm", "whoami", "{}")
	require.NoError(t, err, "the refresh token brings the next one")
	for _, secret := range []string{"access-", "refresh-", "secret-"} {
		require.NotContains(t, w.logs.String(), secret)
	}
}

func TestEachSeatIsAuthorisedAsItself(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, serveWeb(t).Config.Handler)
	w := setup(t)
	n := w.node(t, "n1")
	env := map[string]*companyv1.Environment{"crm": {}}
	w.apply(t, n, []*companyv1.McpServer{consenting(p, false)}, &companyv1.Seat{Handle: "ada", McpEnv: env}, &companyv1.Seat{Handle: "bob", McpEnv: env})

	begun, err := n.AuthorizeServer(t.Context(), &mcphostv1.AuthorizeServerRequest{Server: "crm", Seat: "ada"})
	require.NoError(t, err)
	require.False(t, begun.GetAuthorized())
	// The operator's browser cannot reach this machine, so where it was sent is given to us.
	client := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, begun.GetAuthorizationUrl(), nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	done, err := n.AuthorizeServer(t.Context(), &mcphostv1.AuthorizeServerRequest{Server: "crm", Seat: "ada", CallbackUrl: response.Header.Get("Location")})
	require.NoError(t, err)
	require.True(t, done.GetAuthorized())
	require.Equal(t, "ready", n.tools(t, "ada", "crm").GetState())
	require.Equal(t, "failed", n.tools(t, "bob", "crm").GetState())
	require.NotEmpty(t, n.page(t, "bob"))
	_, err = n.AuthorizeServer(t.Context(), &mcphostv1.AuthorizeServerRequest{Server: "crm", Seat: "ada", CallbackUrl: response.Header.Get("Location")})
	refusal(t, err, fault.Unavailable, "")
	_, err = n.AuthorizeServer(t.Context(), &mcphostv1.AuthorizeServerRequest{Server: "crm"})
	refusal(t, err, fault.NotFound, "")

	var unready []string
	for _, c := range n.service.Ready(t.Context()) {
		if !c.OK {
			unready = append(unready, c.Name+": "+c.Detail)
		}
	}
	require.Contains(t, strings.Join(unready, "\n"), "-mcphost.token-key", "without a key it is said that tokens live in memory")
}

func TestACallThatNeedsMoreWaitsForAnOperatorAndTheSessionStays(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{})
	terms := oauthtest.Terms{Issuer: issuer, Challenged: true, Needs: func(r *http.Request) []string {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			return []string{"write"}
		}
		return []string{"read"}
	}}
	p := oauthtest.Protect(t, terms, serveWeb(t).Config.Handler)
	w := setup(t)
	n := w.node(t, "n1", keyed)
	w.apply(t, n, []*companyv1.McpServer{consenting(p, true)})
	browse(t, n.page(t, ""))
	require.Eventually(t, func() bool { return n.tools(t, "", "crm").GetState() == "ready" }, 30*time.Second, 20*time.Millisecond)
	_, err := n.call(t.Context(), "", "crm", "whoami", "{}")
	f := refusal(t, err, fault.Unavailable, "")
	require.Contains(t, f.Message, "an operator must consent")
	require.Equal(t, "ready", n.tools(t, "", "crm").GetState())
	browse(t, n.page(t, ""))
	require.Equal(t, "read write", issuer.Seen("/authorize")[1].Form.Get("scope"))
	_, err = n.call(t.Context(), "", "crm", "whoami", "{}")
	require.NoError(t, err)
}

func TestAMachineIsAuthorisedWithASecretOfTheCompany(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.Start(t, oauthtest.Manners{Closed: true, Secrets: map[string]string{"co": "crm-secret-1"}})
	p := oauthtest.Protect(t, oauthtest.Terms{Issuer: issuer}, serveWeb(t).Config.Handler)
	w := setup(t)
	w.company.secrets["CRM"] = "crm-secret-1"
	n := w.node(t, "n1", keyed)
	s := consenting(p, true)
	s.Authorization = &companyv1.McpAuthorization{Grant: "client_credentials", ClientId: "co", ClientSecret: "${CRM}", Scopes: []string{"read"}}
	w.apply(t, n, []*companyv1.McpServer{s})
	require.Equal(t, "ready", n.tools(t, "", "crm").GetState(), n.tools(t, "", "crm").GetReason())
	_, err := n.call(t.Context(), "", "crm", "whoami", "{}")
	require.NoError(t, err)
	require.NotContains(t, w.logs.String(), "crm-secret")
}
