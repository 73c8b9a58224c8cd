package mcphost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// talker is a server at an address that asks, reports and waits.
type talker struct {
	*httptest.Server
	// begun and ended are told of each call of wait; stop ends those that nobody cancelled.
	begun, ended, stop chan struct{}
}

func serveTalker(t *testing.T) *talker {
	t.Helper()
	w := &talker{begun: make(chan struct{}, 10), ended: make(chan struct{}, 10), stop: make(chan struct{})}
	follow := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	leave := func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	s := mcp.NewServer(&mcp.Implementation{Name: "talker", Version: "1"}, &mcp.ServerOptions{SubscribeHandler: follow, UnsubscribeHandler: leave})
	say := func(text string) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
	s.AddResource(&mcp.Resource{Name: "r", URI: "test://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	prompt := func() {
		s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	}
	prompt()
	for name, handler := range map[string]mcp.ToolHandler{
		"ask": func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if answer, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
				return say(fmt.Sprint(answer.Content["name"]))
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
				"name": &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)},
			}}, nil
		},
		"report": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: r.Extra.Header.Get("Authorization")})
			return say("done " + r.Extra.Header.Get("Authorization"))
		},
		"touch": func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_ = s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://r"})
			return say("touched")
		},
		"announce": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			prompt()
			return say("announced")
		},
		"wait": func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			w.begun <- struct{}{}
			select {
			case <-ctx.Done():
			case <-w.stop:
			}
			w.ended <- struct{}{}
			return say("over")
		},
	} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, handler)
	}
	w.Server = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() { close(w.stop); w.Close() })
	return w
}

// exchange reads an exchange to its end.
func exchange(t *testing.T, client mcphostv1connect.McpHostServiceClient, r *mcphostv1.ExchangeRequest) (notifications []string, result, refusal string) {
	t.Helper()
	if r.GetTimeout() == nil {
		r.Timeout = durationpb.New(time.Minute)
	}
	stream, err := client.Exchange(t.Context(), r)
	require.NoError(t, err)
	defer stream.Close()
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return notifications, result, refusal
		}
		require.NoError(t, err)
		switch m := m.GetMessage().(type) {
		case *mcphostv1.ExchangeResponse_NotificationJson:
			require.Empty(t, result+refusal, "the end comes last")
			notifications = append(notifications, m.NotificationJson)
		case *mcphostv1.ExchangeResponse_ResultJson:
			result = m.ResultJson
		case *mcphostv1.ExchangeResponse_ErrorJson:
			refusal = m.ErrorJson
		}
	}
}

// ways are both ways to a node.
func (w *world) ways(t *testing.T, n *node) map[string]mcphostv1connect.McpHostServiceClient {
	t.Helper()
	transport := rpc.HTTPTransport(n.url)
	t.Cleanup(transport.Close)
	return map[string]mcphostv1connect.McpHostServiceClient{
		"in process": n,
		"over HTTP":  mcphostv1connect.NewMcpHostServiceClient(rpc.NewClient(transport, rpc.ClientOptions{Service: "toolregistry", Keys: w.keys})),
	}
}

func TestAnExchangeStreamsWhatBelongsToItAndEndsWithTheServersWord(t *testing.T) {
	t.Parallel()
	server := serveTalker(t)
	w := setup(t)
	w.company.secrets["TOKEN"] = "hunter2-hunter2"
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{{Name: "talker", Transport: "http", Url: server.URL, Shared: true, Headers: map[string]string{"Authorization": "${TOKEN}"}}})
	require.Equal(t, "ready", n.tools(t, "", "talker").GetState())
	for way, client := range w.ways(t, n) {
		notifications, result, refusal := exchange(t, client, &mcphostv1.ExchangeRequest{
			Server: "talker", Method: "tools/call", ParamsJson: `{"name":"report","arguments":{},"_meta":{"progressToken":"mine"}}`,
		})
		require.Empty(t, refusal, way)
		require.Contains(t, result, "done [REDACTED:secret]")
		require.Len(t, notifications, 1)
		require.Contains(t, notifications[0], `"progressToken":"mine"`)
		require.Contains(t, notifications[0], "[REDACTED:secret]")

		_, _, refusal = exchange(t, client, &mcphostv1.ExchangeRequest{Server: "talker", Method: "resources/read", ParamsJson: `{"uri":"test://none"}`})
		require.Contains(t, refusal, `"code":-3`)
		_, result, _ = exchange(t, client, &mcphostv1.ExchangeRequest{Server: "talker", Method: "resources/list"})
		require.Contains(t, result, "test://r")

		ask := &mcphostv1.ExchangeRequest{Server: "talker", Method: "tools/call", ParamsJson: `{"name":"ask","arguments":{}}`, ClientCapabilitiesJson: `{"elicitation":{}}`, Seat: "ada"}
		_, result, _ = exchange(t, client, ask)
		var round struct {
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
			RequestState  string                     `json:"requestState"`
		}
		require.NoError(t, json.Unmarshal([]byte(result), &round))
		require.Len(t, round.InputRequests, 1, result)
		for key := range round.InputRequests {
			ask.ParamsJson = fmt.Sprintf(`{"name":"ask","arguments":{},"inputResponses":{%q:{"action":"accept","content":{"name":"Ada"}}},"requestState":%q}`, key, round.RequestState)
		}
		other := &mcphostv1.ExchangeRequest{Server: "talker", Method: "tools/call", ParamsJson: ask.GetParamsJson(), Seat: "bo"}
		_, _, refusal = exchange(t, client, other)
		require.Contains(t, refusal, "-32602", "the question was for another seat")
		_, result, refusal = exchange(t, client, ask)
		require.Empty(t, refusal)
		require.Equal(t, "Ada", text(t, result))
	}
}

func TestAnExchangeThatIsGivenUpEndsAtTheServer(t *testing.T) {
	t.Parallel()
	server := serveTalker(t)
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{{Name: "talker", Transport: "http", Url: server.URL, Shared: true}})
	require.Equal(t, "ready", n.tools(t, "", "talker").GetState())
	for _, client := range w.ways(t, n) {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.Exchange(ctx, &mcphostv1.ExchangeRequest{Server: "talker", Method: "tools/call", ParamsJson: `{"name":"wait","arguments":{}}`})
		require.NoError(t, err)
		<-server.begun
		cancel()
		<-server.ended
		_, err = stream.Receive()
		require.Error(t, err)
		require.NoError(t, stream.Close())
	}
	for _, client := range w.ways(t, n) { // its own time is over, perhaps before the server has heard of it
		stream, err := client.Exchange(t.Context(), &mcphostv1.ExchangeRequest{
			Server: "talker", Method: "tools/call", ParamsJson: `{"name":"wait","arguments":{}}`, Timeout: durationpb.New(100 * time.Millisecond),
		})
		require.NoError(t, err)
		_, err = stream.Receive()
		require.Equal(t, fault.Unavailable, rpc.FromError(err).Class)
		require.NoError(t, stream.Close())
	}
}

func TestAnExchangeThatCannotBeMadeIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, _ := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	for name, r := range map[string]*mcphostv1.ExchangeRequest{
		"unknown server": {Server: "none", Method: "tools/call"},
		"other method":   {Server: "s", Method: "tools/list"},
		"no object":      {Server: "s", Method: "tools/call", ParamsJson: "[]"},
	} {
		stream, err := n.Exchange(t.Context(), r)
		require.NoError(t, err, name)
		_, err = stream.Receive()
		require.Error(t, err, name)
		require.NotEqual(t, fault.Unavailable, rpc.FromError(err).Class, name)
		require.NoError(t, stream.Close())
	}
	stream, err := n.Exchange(asSeat(t.Context()), &mcphostv1.ExchangeRequest{Server: "s", Method: "tools/call"})
	require.NoError(t, err)
	_, err = stream.Receive()
	refusal(t, err, fault.Forbidden, "")
	require.NoError(t, stream.Close())
	_, result, _ := exchange(t, n, &mcphostv1.ExchangeRequest{Server: "s", Method: "tools/call", ParamsJson: `{"name":"echo","arguments":{"n": 9007199254740993}}`})
	require.Contains(t, result, `{"n": 9007199254740993}`)
}

func TestAResourceThatSomebodyFollowsAndThatChangesIsAnEvent(t *testing.T) {
	t.Parallel()
	server := serveTalker(t)
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{{Name: "talker", Transport: "http", Url: server.URL, Shared: true}})
	require.Equal(t, "ready", n.tools(t, "", "talker").GetState())
	_, result, _ := exchange(t, n, &mcphostv1.ExchangeRequest{Server: "talker", Method: "resources/subscribe", ParamsJson: `{"uri":"test://r"}`})
	require.Equal(t, "{}", result)
	updated := func() int {
		_, err := n.call(t.Context(), "", "talker", "touch", "{}")
		require.NoError(t, err)
		count := 0
		for _, e := range w.events(t) {
			if u := e.GetResourceUpdated(); u.GetUri() == "test://r" && u.GetServer() == "talker" {
				count++
			}
		}
		return count
	}
	require.Eventually(t, func() bool { return updated() > 0 }, 30*time.Second, 20*time.Millisecond)
}

func TestPromptsThatAServerAnnouncesAreAnEvent(t *testing.T) {
	t.Parallel()
	server := serveTalker(t)
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{{Name: "talker", Transport: "http", Url: server.URL, Shared: true}})
	require.Equal(t, "ready", n.tools(t, "", "talker").GetState())
	announced := func() bool {
		_, err := n.call(t.Context(), "", "talker", "announce", "{}")
		require.NoError(t, err)
		for _, e := range w.events(t) {
			if l := e.GetListsChanged(); l.GetServer() == "talker" {
				return l.GetPrompts()
			}
		}
		return false
	}
	require.Eventually(t, announced, soon, 10*time.Millisecond)
}
