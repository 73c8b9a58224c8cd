package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
)

// bearer adds a token to every request.
type bearer string

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestAnOperatorWorksFromOutside works as an assistant built on the SDK does, in both eras, and as a person's screen: what is sent
// twice lands once, and a shared server's question reaches whoever called.
func TestAnOperatorWorksFromOutside(t *testing.T) {
	t.Parallel()
	p := newSuiteProcess(t, startVendors(t), fmt.Sprintf(`name: Outside
providers: {llm: {default: {type: scripted, scenario: {rules: []}}}}
mcp_servers:
  - {name: fixture, command: %q}
integrations:
  github: {webhook_secret: "${CROWD_GITHUB_SECRET}"}
units:
  - name: Operations
    type: team
    project: OPS
    roles:
      - name: Ines
        handle: ines
        kind: human
        contact: {github_login: ines}
      - name: Seat 0
        handle: seat-0
        integrations: {github: {login: %s, token: "${CROWD_GITHUB_0}"}}
`, everythingServer(t), crowdLogin(0))).start(t)
	made, err := companyv1connect.NewCompanyServiceClient(p.client("operator")).
		CreateToken(t.Context(), &companyv1.CreateTokenRequest{Name: "outside", Seat: "ines"})
	require.NoError(t, err)
	outside := &http.Client{Transport: bearer(made.GetToken())}

	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		session := assistant(t, p.url, outside, version)
		until(t, "the fixture is ready", func(ctx context.Context) bool {
			listed, err := session.ListTools(ctx, nil)
			return err == nil && has(listed.Tools, "test_elicitation")
		})
		title := "Written by " + version
		first := created(t, session, map[string]any{"project": "OPS", "title": title})
		again := created(t, session, map[string]any{"title": title, "project": "OPS", "op_id": first.OpID})
		require.Equal(t, first, again, "it landed once")
		other := created(t, session, map[string]any{"project": "OPS", "title": title, "even_if_exists": true})
		require.NotEqual(t, first.Key, other.Key, "a new call is new work")

		asked, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_input_required_result_elicitation", Arguments: map[string]any{}})
		require.NoError(t, err)
		require.Equal(t, "Hello, Ines!", asked.Content[0].(*mcp.TextContent).Text)
		require.NoError(t, session.Close())
	}

	id, err := uuid.NewV7()
	require.NoError(t, err)
	gesture := fmt.Sprintf(`{"request_id":%q,"args":{"project":"OPS","title":"A gesture"}}`, id)
	status, once := act(t, p.url, outside, gesture)
	require.Equal(t, http.StatusOK, status, once)
	status, twice := act(t, p.url, outside, gesture)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, once, twice)
	status, refused := act(t, p.url, outside, strings.Replace(gesture, "A gesture", "Another", 1))
	require.Equal(t, http.StatusConflict, status, "one request id is one gesture")
	require.Contains(t, refused, `"error":"conflict"`)
	p.stop(t)
}

// assistant connects as a client of the SDK, whose user answers every question with a name.
func assistant(t *testing.T, url string, outside *http.Client, version string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ines"}}, nil
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/operator/mcp", HTTPClient: outside},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	require.Equal(t, version, session.InitializeResult().ProtocolVersion)
	return session
}

func has(tools []*mcp.Tool, name string) bool {
	for _, tool := range tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// receipt is what a new item answers.
type receipt struct {
	Key, Position, Outcome string
	OpID                   string `json:"op_id"`
}

func created(t *testing.T, session *mcp.ClientSession, arguments map[string]any) receipt {
	t.Helper()
	answer, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_work_item", Arguments: arguments})
	require.NoError(t, err)
	text := answer.Content[0].(*mcp.TextContent).Text
	require.False(t, answer.IsError, text)
	var r receipt
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.NotEmpty(t, r.OpID)
	return r
}

// act makes a gesture.
func act(t *testing.T, url string, outside *http.Client, body string) (status int, answer string) {
	t.Helper()
	response, err := outside.Post(url+"/operator/act/create_work_item", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}
