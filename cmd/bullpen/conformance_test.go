package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
)

// TestConformanceOfTheOperatorsSurface runs the official suite against /operator/mcp, with the SDK's fixture behind mcp-host: one
// set for each revision, the fixture speaking that revision too. It takes half a minute and npm; `make conformance` asks for it.
func TestConformanceOfTheOperatorsSurface(t *testing.T) {
	if os.Getenv("BULLPEN_TEST_CONFORMANCE") != "1" {
		t.Skip("BULLPEN_TEST_CONFORMANCE=1 runs the official conformance suite")
	}
	fixture := everythingServer(t)
	for revision, protocol := range map[string]string{"2026-07-28": "auto", "2025-11-25": "legacy"} {
		t.Run(revision, func(t *testing.T) {
			p := newSuiteProcess(t, startVendors(t), fmt.Sprintf(`name: Conformance
providers: {llm: {default: {type: scripted, scenario: {rules: []}}}}
mcp_servers:
  - {name: fixture, command: %q, protocol: %s}
integrations:
  github: {webhook_secret: "${CROWD_GITHUB_SECRET}"}
units:
  - name: Operations
    type: team
    roles:
      - name: Seat 0
        handle: seat-0
        integrations: {github: {login: %s, token: "${CROWD_GITHUB_0}"}}
`, fixture, protocol, crowdLogin(0))).start(t)
			hop := withToken(t, p)
			until(t, "the fixture's tools are listed", func(ctx context.Context) bool { return lists(ctx, hop, "test_simple_text") })
			command := exec.CommandContext(t.Context(), filepath.Join("..", "..", "tools", "conformance", "run"), "server", hop, revision)
			command.Stdout, command.Stderr = t.Output(), t.Output()
			require.NoError(t, command.Run(), "a scored scenario failed")
			p.stop(t)
		})
	}
}

// everythingServer builds the SDK's fixture of a server.
func everythingServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "everything-server")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// withToken answers the address of a hop in front of /operator/mcp that adds a token and nothing else: the suite has no credentials.
func withToken(t *testing.T, p *suiteRun) string {
	t.Helper()
	made, err := companyv1connect.NewCompanyServiceClient(p.client("operator")).CreateToken(t.Context(), &companyv1.CreateTokenRequest{Name: "conformance"})
	require.NoError(t, err)
	target, err := url.Parse(p.url)
	require.NoError(t, err)
	hop := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+made.GetToken())
	}})
	t.Cleanup(hop.Close)
	return hop.URL + "/operator/mcp"
}

// lists reports whether a tool is on the list.
func lists(ctx context.Context, address, tool string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		return false
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return err == nil && strings.Contains(string(body), `"name":"`+tool+`"`)
}
