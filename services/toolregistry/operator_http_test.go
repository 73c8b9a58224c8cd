package toolregistry_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func TestWhoIsLetInToTheOperatorsSurface(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	seat := w.keys.Sign(&rpc.Principal{Kind: rpc.KindSeat, Id: "ada", Seat: "ada", Issuer: "turn", Turn: &toolv1.TurnClaims{TurnId: "t1"}}, 0)
	person := w.keys.Sign(&rpc.Principal{Kind: rpc.KindPerson, Id: "ines", Seat: "ines", Issuer: "console"}, 0)
	for name, c := range map[string]struct {
		token   string
		headers headers
		host    string
		status  int
	}{
		"a token":                             {"good", nil, "", 200},
		"nobody":                              {"", nil, "", 401},
		"a wrong token":                       {"bad", nil, "", 401},
		"a person of the console":             {"", headers{"Bullpen-Principal": person}, "", 200},
		"a seat":                              {"", headers{"Bullpen-Principal": seat}, "", 403},
		"a page of this machine":              {"good", headers{"Origin": "http://localhost:6274"}, "localhost", 200},
		"a page of elsewhere":                 {"good", headers{"Origin": "http://evil.example.com"}, "", 403},
		"a page that is nowhere":              {"good", headers{"Origin": "null"}, "", 403},
		"a name that was made to point here":  {"good", nil, "evil.example.com", 403},
		"a name that begins like one of ours": {"good", nil, "localhost.evil.example.com:80", 403},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/operator/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+(&client{capabilities: "{}"}).meta()+`}}}`))
		require.NoError(t, err)
		for header, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
		} {
			request.Header.Set(header, value)
		}
		for header, value := range c.headers {
			request.Header.Set(header, value)
		}
		if c.token != "" {
			request.Header.Set("Authorization", "Bearer "+c.token)
		}
		request.Host = c.host
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		require.NoError(t, response.Body.Close())
		require.Equal(t, c.status, response.StatusCode, name)
		require.Equal(t, "no", response.Header.Get("X-Accel-Buffering"), name)
		if c.status == http.StatusUnauthorized {
			require.Contains(t, response.Header.Get("WWW-Authenticate"), `Bearer realm="bullpen"`, name)
			require.Equal(t, c.token != "", strings.Contains(response.Header.Get("WWW-Authenticate"), "invalid_token"), name)
		}
	}
}

func TestARequestOfTheNewestRevisionIsHeldAgainstItsHeaders(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	w.neighbours.exchange = func(context.Context, *mcphostv1.ExchangeRequest, func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse {
		return result(`{"content":[]}`)
	}
	meta := `"_meta":{` + (&client{capabilities: "{}"}).meta() + `}`
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mirror","arguments":` + arguments + `,` + meta + `}}`
	}
	called := func(more headers) headers {
		h := headers{"Mcp-Method": "tools/call", "Mcp-Name": "mirror"}
		for name, value := range more {
			h[name] = value
		}
		return h
	}
	for name, c := range map[string]struct {
		headers headers
		body    string
		status  int
		code    int
	}{
		"all fits":                         {headers{"Mcp-Method": "tools/list"}, list, 200, 0},
		"the method is missing":            {nil, list, 400, -32020},
		"the method is another":            {headers{"Mcp-Method": "prompts/list"}, list, 400, -32020},
		"the method has another case":      {headers{"Mcp-Method": "TOOLS/LIST"}, list, 400, -32020},
		"the name is missing":              {headers{"Mcp-Method": "tools/call"}, call(`{}`), 400, -32020},
		"the name is encoded":              {headers{"Mcp-Method": "tools/call", "Mcp-Name": "=?base64?bWlycm9y?="}, call(`{}`), 200, 0},
		"the name is another":              {called(headers{"Mcp-Name": "search"}), call(`{}`), 400, -32020},
		"a mirrored argument fits":         {called(headers{"Mcp-Param-Region": "eu"}), call(`{"region":"eu"}`), 200, 0},
		"a mirrored argument is encoded":   {called(headers{"Mcp-Param-Region": "=?base64?w6k=?="}), call(`{"region":"é"}`), 200, 0},
		"it is encoded badly":              {called(headers{"Mcp-Param-Region": "=?base64?w6k?="}), call(`{"region":"é"}`), 400, -32020},
		"its header is missing":            {called(nil), call(`{"region":"eu"}`), 400, -32020},
		"its header is another":            {called(headers{"Mcp-Param-Region": "us"}), call(`{"region":"eu"}`), 400, -32020},
		"its header is there alone":        {called(headers{"Mcp-Param-Region": "us"}), call(`{}`), 400, -32020},
		"the revision's header is missing": {headers{"Mcp-Protocol-Version": ""}, list, 400, -32020},
		"the revision's header is another": {headers{"Mcp-Protocol-Version": "2027-01-01"}, list, 400, -32020},
		"the revision is not served": {
			headers{"Mcp-Protocol-Version": "2027-01-01", "Mcp-Method": "tools/list"}, strings.ReplaceAll(list, "2026-07-28", "2027-01-01"), 400, -32022,
		},
		"the body says no revision":      {headers{"Mcp-Method": "tools/list"}, strings.ReplaceAll(list, "protocolVersion", "pv"), 400, -32602},
		"the body says no capabilities":  {headers{"Mcp-Method": "tools/list"}, strings.ReplaceAll(list, "clientCapabilities", "cc"), 400, -32602},
		"a method of older revisions":    {headers{"Mcp-Method": "ping"}, strings.ReplaceAll(list, "tools/list", "ping"), 404, -32601},
		"a method of none":               {headers{"Mcp-Method": "a/b"}, strings.ReplaceAll(list, "tools/list", "a/b"), 404, -32601},
		"a page that is not there":       {headers{"Mcp-Method": "tools/list"}, strings.ReplaceAll(list, `"params":{`, `"params":{"cursor":"x",`), 200, -32602},
		"a batch":                        {headers{"Mcp-Method": "tools/list"}, "[" + list + "]", 400, -32600},
		"no JSON":                        {headers{"Mcp-Method": "tools/list"}, "{", 400, -32700},
		"a body too large":               {headers{"Mcp-Method": "tools/list"}, strings.Repeat(" ", 5<<20) + list, 413, -32600},
		"a form":                         {headers{"Content-Type": "text/plain"}, list, 415, -32600},
		"a client that takes no streams": {headers{"Accept": "application/json"}, list, 406, -32600},
	} {
		client := w.modern(t)
		if c.headers != nil {
			client.header = c.headers
		}
		if version, set := c.headers["Mcp-Protocol-Version"]; set && version == "" {
			delete(c.headers, "Mcp-Protocol-Version")
			client.version = ""
		}
		answer := client.send(c.body)
		require.Equal(t, c.status, answer.status, name)
		if c.code == 0 {
			require.Nil(t, answer.Error, name)
			continue
		}
		require.NotNil(t, answer.Error, name)
		require.Equal(t, c.code, answer.Error.Code, name)
	}
}

func TestASessionBelongsToItsToken(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	c := w.legacy(t, "{}")
	require.Nil(t, c.call("ping", "{}").Error)
	c.token = "ines"
	require.Equal(t, http.StatusNotFound, c.call("ping", "{}").status, "another token's session is not there")
	hers := w.legacyOf(t, "ines", "{}")
	require.Nil(t, hers.call("ping", "{}").Error)
	hers.token = "ines-phone"
	require.Equal(t, http.StatusNotFound, hers.call("ping", "{}").status, "nor that of another token of one person")
	c.token = "good"

	wrong := *c
	wrong.session = "made-up"
	require.Equal(t, http.StatusNotFound, wrong.call("ping", "{}").status)
	wrong.session = ""
	wrong.header = headers{}
	require.Equal(t, http.StatusBadRequest, wrong.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).status, "an older revision without a session")
	wrong = *c
	wrong.version = "2019-01-01"
	require.Equal(t, http.StatusBadRequest, wrong.call("ping", "{}").status)

	for method, code := range map[string]int{"server/discover": -32601, "initialize": -32601, "subscriptions/listen": -32601, "a/b": -32601} {
		if method == "initialize" {
			continue // opens another
		}
		require.Equal(t, code, c.call(method, "{}").Error.Code, method)
	}
	require.Equal(t, -32602, c.call("logging/setLevel", `{"level":"loud"}`).Error.Code)
	require.Equal(t, http.StatusBadRequest, c.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`).status, "batches were of one revision")

	require.Equal(t, http.StatusNoContent, c.plain(http.MethodDelete))
	require.Equal(t, http.StatusNotFound, c.call("ping", "{}").status)
	require.Equal(t, http.StatusNotFound, c.plain(http.MethodDelete))
}

func TestNewestClientsHaveNeitherStreamNorSessionToEnd(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	c := w.modern(t)
	c.session = "s"
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		require.Equal(t, http.StatusMethodNotAllowed, c.plain(method), method)
	}
	require.Equal(t, http.StatusAccepted, w.modern(t).send(`{"jsonrpc":"2.0","method":"notifications/anything","params":{}}`).status)
}

func TestABatchOfTheRevisionThatHadThemIsAnsweredWhole(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	c := w.modern(t)
	c.version = ""
	opened := c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}`)
	c.session, c.version = opened.header.Get("Mcp-Session-Id"), "2025-03-26"
	response := c.post(t.Context(), `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"a/b"}]`)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `data: {"jsonrpc":"2.0","id":1,"result":{}}`)
	require.Contains(t, string(text), `"id":2,"error":{"code":-32601`)
}

// plain sends a request without a body.
func (c *client) plain(method string) int {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url, nil)
	require.NoError(c.t, err)
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Mcp-Session-Id", c.session)
	request.Header.Set("Mcp-Protocol-Version", c.version)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	require.NoError(c.t, response.Body.Close())
	return response.StatusCode
}
