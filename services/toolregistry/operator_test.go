package toolregistry_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
)

// shared is what the company's shared servers bring.
func shared() *mcphostv1.ListServerToolsResponse {
	return &mcphostv1.ListServerToolsResponse{Digest: "s1", Servers: []*mcphostv1.ServerTools{
		{
			Server: "wiki", State: "ready", Instructions: "Search before you write.",
			CapabilitiesJson: `{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}}`,
			ToolsJson: []string{
				`{"name":"search","title":"Search","icons":[{"src":"x:1"}],"inputSchema":{"type":"object","properties":{"id":{"type":"integer","maximum":9007199254740993}}},` +
					`"outputSchema":{"type":"object"},"annotations":{"openWorldHint":true},"_meta":{"n":9007199254740993}}`,
				`{"name":"mirror","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`,
			},
		},
		{Server: "notes", State: "ready", ToolPrefix: "n_", CapabilitiesJson: `{"prompts":{},"resources":{}}`, ToolsJson: []string{`{"name":"add","inputSchema":{"type":"object"}}`}},
		{Server: "slow", State: "failed", Reason: "exit status 127"},
	}}
}

// operatorWorld builds a registry whose shared servers are those of shared.
func operatorWorld(t *testing.T, o options) *world {
	t.Helper()
	w := build(t, o)
	w.neighbours.bring("", shared())
	return w
}

// client speaks to /operator/mcp as an assistant does.
type client struct {
	t              *testing.T
	url, token     string
	session        string
	version        string
	capabilities   string
	header         headers
	notifications  []string
	questions      []string
	answerQuestion func(id json.RawMessage, method string) string
}

// headers are those that a test sets itself.
type headers map[string]string

// mcpReply is what a request was answered with.
type mcpReply struct {
	status int
	header http.Header
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	ID json.RawMessage `json:"id"`
}

func (w *world) modern(t *testing.T) *client {
	return &client{t: t, url: w.url + "/operator/mcp", token: "good", version: "2026-07-28", capabilities: "{}", header: headers{}}
}

// legacy opens a session of an older revision.
func (w *world) legacy(t *testing.T, capabilities string) *client {
	t.Helper()
	return w.legacyOf(t, "good", capabilities)
}

// legacyOf is legacy with a token.
func (w *world) legacyOf(t *testing.T, token, capabilities string) *client {
	t.Helper()
	c := w.modern(t)
	c.token, c.version, c.capabilities = token, "", capabilities
	opened := c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"t","version":"1"}}}`)
	require.Nil(t, opened.Error)
	c.session, c.version = opened.header.Get("Mcp-Session-Id"), "2025-11-25"
	require.NotEmpty(t, c.session)
	require.Contains(t, string(opened.Result), `"protocolVersion":"2025-11-25"`)
	return c
}

// call sends a request as the client's revision wants it.
func (c *client) call(method, params string) mcpReply {
	c.t.Helper()
	members := strings.TrimSuffix(strings.TrimPrefix(params, "{"), "}")
	if c.session == "" {
		c.header["Mcp-Method"] = method
		var named struct{ Name, URI string }
		require.NoError(c.t, json.Unmarshal([]byte("{"+members+"}"), &named))
		c.header["Mcp-Name"] = named.Name + named.URI
		if !strings.Contains(members, `"_meta"`) {
			members += `,"_meta":{` + c.meta() + `}`
		}
		members = strings.TrimPrefix(members, ",")
	}
	return c.send(`{"jsonrpc":"2.0","id":"r-1","method":"` + method + `","params":{` + members + `}}`)
}

func (c *client) meta() string {
	return `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + c.capabilities
}

func (c *client) send(body string) mcpReply {
	c.t.Helper()
	response := c.post(c.t.Context(), body)
	defer response.Body.Close()
	reply := mcpReply{status: response.StatusCode, header: response.Header}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(response.Body)
		require.NoError(c.t, err)
		if len(text) > 0 {
			require.NoError(c.t, json.Unmarshal(text, &reply), "%s", text)
		}
		return reply
	}
	events := bufio.NewScanner(response.Body)
	events.Buffer(nil, 8<<20)
	for events.Scan() {
		if data, ok := strings.CutPrefix(events.Text(), "data: "); ok && c.heard(data, &reply) {
			return reply
		}
	}
	require.Fail(c.t, "the stream ended without an answer", "%v", events.Err())
	return reply
}

// heard takes an event in, and reports the end of the request.
func (c *client) heard(data string, reply *mcpReply) bool {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	require.NoError(c.t, json.Unmarshal([]byte(data), &message))
	switch {
	case message.Method == "":
		require.NoError(c.t, json.Unmarshal([]byte(data), reply))
		return true
	case message.ID != nil:
		c.questions = append(c.questions, data)
		response := c.post(c.t.Context(), `{"jsonrpc":"2.0","id":`+string(message.ID)+`,`+c.answerQuestion(message.ID, message.Method)+`}`)
		require.NoError(c.t, response.Body.Close())
		require.Equal(c.t, http.StatusAccepted, response.StatusCode)
	default:
		c.notifications = append(c.notifications, data)
	}
	return false
}

func (c *client) post(ctx context.Context, body string) *http.Response {
	c.t.Helper()
	response, err := http.DefaultClient.Do(c.request(ctx, body))
	require.NoError(c.t, err)
	return response
}

func (c *client) request(ctx context.Context, body string) *http.Request {
	c.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	require.NoError(c.t, err)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + c.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": c.version, "Mcp-Session-Id": c.session,
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	for name, value := range c.header {
		request.Header.Set(name, value)
	}
	return request
}

// result and notification write what a server says.
func result(text string) *mcphostv1.ExchangeResponse {
	return &mcphostv1.ExchangeResponse{Message: &mcphostv1.ExchangeResponse_ResultJson{ResultJson: text}}
}

func failure(text string) *mcphostv1.ExchangeResponse {
	return &mcphostv1.ExchangeResponse{Message: &mcphostv1.ExchangeResponse_ErrorJson{ErrorJson: text}}
}

func notification(text string) *mcphostv1.ExchangeResponse {
	return &mcphostv1.ExchangeResponse{Message: &mcphostv1.ExchangeResponse_NotificationJson{NotificationJson: text}}
}
