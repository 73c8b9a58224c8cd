package authorize

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatAServerNamesIsNoFurtherInsideThanItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address string
		from    reach
		good    bool
	}{
		{"93.184.216.34", public, true},
		{"10.0.0.1", public, false},
		{"192.168.1.1", public, false},
		{"100.64.0.1", public, false},
		{"fd00::1", public, false},
		{"::ffff:10.0.0.1", public, false},
		{"127.0.0.1", public, false},
		{"::1", private, false},
		{"10.0.0.1", private, true},
		{"10.0.0.1", loopback, true},
		{"127.0.0.1", loopback, true},
		{"169.254.169.254", loopback, false},
		{"::ffff:169.254.169.254", private, false},
		{"fe80::1", loopback, false},
		{"0.0.0.0", loopback, false},
		{"224.0.0.1", loopback, false},
	} {
		require.Equal(t, c.good, allowed(netip.MustParseAddr(c.address), c.from) == nil, "%s from %d", c.address, c.from)
	}
}

func TestAPublicServerCannotLeadUsToThisMachine(t *testing.T) {
	t.Parallel()
	here := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(here.Close)
	server, err := url.Parse("https://93.184.216.34/mcp")
	require.NoError(t, err)
	client := (&Authorizer{}).outbound(server)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, here.URL, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	require.ErrorContains(t, err, "a network that its server is not in")
}

func TestCredentialsAreNotSentOnToWhereAnIssuerPoints(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(elsewhere.Close)
	issuer := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(issuer.Close)
	at, err := url.Parse(issuer.URL)
	require.NoError(t, err)
	acc := &Access{client: (&Authorizer{}).outbound(at)}
	_, _, err = acc.post(t.Context(), issuer.URL, http.Header{}, []byte("client_secret=x"))
	require.ErrorContains(t, err, "not followed")
}

func TestDeclaredHeadersGoToTheServerAlone(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(elsewhere.Close)
	mux := http.NewServeMux()
	mux.Handle("/away", http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	mux.Handle("/moved", http.RedirectHandler("/mcp", http.StatusTemporaryRedirect))
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "secret" {
			t.Error("it was asked without its header")
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for path, challenged := range map[string]bool{"/away": false, "/moved": true} {
		at, err := url.Parse(server.URL + path)
		require.NoError(t, err)
		acc := &Access{
			authorizer: &Authorizer{}, server: Server{SSE: true, Headers: map[string]string{"X-Key": "secret"}}, endpoint: at, client: (&Authorizer{}).outbound(at),
		}
		c, err := acc.draw(t.Context())
		require.NoError(t, err)
		require.Equal(t, challenged, c != nil, path)
	}
}
