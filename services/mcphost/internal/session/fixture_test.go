package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
)

// fixtureVariable makes the test binary the server below, over its standard streams; its value names a file that must be readable
// before the server begins.
const fixtureVariable = "SESSION_FIXTURE"

func TestMain(m *testing.M) {
	if gate, ok := os.LookupEnv(fixtureVariable); ok {
		if _, err := os.ReadFile(gate); err != nil {
			os.Exit(1)
		}
		_ = newFixture().server.Run(context.Background(), &mcp.StdioTransport{})
		return
	}
	os.Exit(m.Run())
}

// fixture is a server made with the SDK: what it speaks, others speak.
type fixture struct {
	server *mcp.Server
	stop   chan struct{} // ends every call of wait
	mu     sync.Mutex
	ends   map[string]int // calls of `wait` that were cancelled
	begun  int            // calls of `wait`
	left   int            // requests whose caller hung up
}

func newFixture() *fixture {
	f := &fixture{ends: map[string]int{}, stop: make(chan struct{})}
	follow := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	leave := func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	f.server = mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		Instructions: "Be kind.", PageSize: 2, SubscribeHandler: follow, UnsubscribeHandler: leave, Logger: slog.New(slog.DiscardHandler),
	})
	object := json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)
	for name, handler := range map[string]mcp.ToolHandler{"echo": echo, "ask": ask, "report": report, "wait": f.wait, "touch": f.touch} {
		f.server.AddTool(&mcp.Tool{Name: name, InputSchema: object}, handler)
	}
	for n := range 5 {
		f.addResource(fmt.Sprintf("test://%d", n))
	}
	f.addPrompt("hello")
	return f
}

func (f *fixture) addResource(uri string) {
	f.server.AddResource(&mcp.Resource{Name: "r", URI: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://0", Text: "x"}}}, nil
	})
}

func (f *fixture) addPrompt(name string) {
	f.server.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: name}}}}, nil
	})
}

func say(text string) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

func echo(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return say(string(r.Params.Arguments))
}

// ask wants a name; the SDK asks an older client for it in the middle of the call.
func ask(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult)
	if !ok {
		return &mcp.CallToolResult{RequestState: "state of the server's own", InputRequests: mcp.InputRequestMap{
			"name": &mcp.ElicitParams{Message: "Who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)},
		}}, nil
	}
	return say(fmt.Sprintf("%s %v", answer.Action, answer.Content["name"]))
}

// report makes progress and logs.
func report(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for n := range 3 {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(n)})
	}
	for _, level := range []mcp.LoggingLevel{"debug", "error"} {
		_ = r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: "word"})
	}
	return say("done")
}

func (f *fixture) wait(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	f.mu.Lock()
	f.begun++
	f.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-f.stop:
	}
	f.mu.Lock()
	f.ends[string(r.Params.Arguments)]++
	f.mu.Unlock()
	return say("over")
}

func (f *fixture) ended(arguments string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ends[arguments] > 0
}

func (f *fixture) waits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

func (f *fixture) hungUp() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}

// watched counts the callers who hang up: that is how a modern call over HTTP is given up, which the SDK's server does not tell tools.
func (f *fixture) watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stop := context.AfterFunc(r.Context(), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.left++
		})
		defer stop()
		next.ServeHTTP(w, r)
	})
}

// touch changes a resource, or the list that its argument names.
func (f *fixture) touch(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	switch {
	case strings.Contains(string(r.Params.Arguments), "prompts"):
		f.addPrompt("another")
		return say("touched")
	case strings.Contains(string(r.Params.Arguments), "resources"):
		f.addResource("test://another")
		return say("touched")
	}
	_ = f.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://1"})
	return say("touched")
}

// carriages are the ways to reach the fixture.
func carriages() []string {
	return []string{"stdio legacy", "stdio modern", "http legacy", "http modern", "http legacy json", "sse"}
}

// streaming are the carriages on which a server can say something before its answer: not those that answer in one document.
func streaming() []string {
	return slices.DeleteFunc(carriages(), func(carriage string) bool { return carriage == "http legacy json" })
}

// carry opens a session with a fixture in one of the ways.
func carry(t *testing.T, carriage string, change ...func(*Options)) (*Session, *fixture) {
	t.Helper()
	f := newFixture()
	o := options(t)
	switch carriage {
	case "stdio legacy":
		o.Start, o.Protocol = process(t, os.DevNull), "legacy"
	case "stdio modern":
		o.Start = process(t, os.DevNull)
	case "http legacy", "http legacy json", "http modern":
		o.HTTP = &HTTP{URL: serve(t, f.watched(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return f.server },
			&mcp.StreamableHTTPOptions{Stateless: carriage == "http modern", JSONResponse: carriage == "http legacy json", Logger: slog.New(slog.DiscardHandler)})))}
	case "sse":
		o.HTTP = &HTTP{URL: serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return f.server }, nil)), SSE: true}
	}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close(); close(f.stop) })
	return s, f
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Version: "test", Log: slog.New(slog.DiscardHandler), Redact: func(s string) string { return s },
		Install: time.Minute, Handshake: time.Minute,
	}
}

// process starts the fixture behind a gate.
func process(t *testing.T, gate string) func() (*child.Process, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	launcher := child.NewLauncher()
	t.Cleanup(launcher.Close)
	return func() (*child.Process, error) {
		return child.Start(child.Options{
			Path: self, Env: []string{fixtureVariable + "=" + gate}, Log: slog.New(slog.DiscardHandler), Launcher: launcher,
		})
	}
}

// send makes an exchange with generous times, keeping its notifications.
func send(t *testing.T, s *Session, r Request) (Reply, []string) {
	t.Helper()
	var heard []string
	r.Idle = time.Minute
	r.Notify = func(n []byte) error {
		heard = append(heard, string(n))
		return nil
	}
	reply, err := s.Exchange(t.Context(), r)
	require.NoError(t, err)
	return reply, heard
}

// text answers the text of a result.
func text(t *testing.T, reply Reply) string {
	t.Helper()
	require.Empty(t, string(reply.Error))
	var result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	require.NoError(t, json.Unmarshal(reply.Result, &result), string(reply.Result))
	require.Len(t, result.Content, 1, string(reply.Result))
	return result.Content[0].Text
}

// refused answers the code of an error of the protocol.
func refusedWith(t *testing.T, reply Reply) int64 {
	t.Helper()
	require.NotNil(t, reply.Error, string(reply.Result))
	var e jsonrpc.Error
	require.NoError(t, json.Unmarshal(reply.Error, &e))
	return e.Code
}
