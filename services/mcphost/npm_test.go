package mcphost_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

// reference answers the entry point of one of the reference servers, which are fetched once a machine.
func reference(t testing.TB, name string) string {
	t.Helper()
	if os.Getenv("BULLPEN_TEST_REQUIRE") != "1" {
		for _, program := range []string{"npm", "python3"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is needed to run published MCP servers", program)
			}
		}
	}
	command := exec.CommandContext(t.Context(), filepath.Join("..", "..", "tools", "servers", "fetch"))
	command.Stderr = t.Output()
	home, err := command.Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(home)), "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
}

func script(t testing.TB, name string, args ...string) *companyv1.McpServer {
	t.Helper()
	return &companyv1.McpServer{
		Name: name, Transport: "stdio", Command: "node", Args: append([]string{reference(t, name)}, args...), Shared: true, StartupTimeoutSeconds: 60,
	}
}

// text answers the text of a result.
func text(t testing.TB, result string) string {
	t.Helper()
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	require.NoError(t, json.Unmarshal([]byte(result), &r))
	require.NotEmpty(t, r.Content, result)
	return r.Content[0].Text
}

func TestTheReferenceServersServe(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "hello.txt"), []byte("hello from a file"), 0o600))
	memory := script(t, "memory")
	memory.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(folder, "memory.json")}
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{script(t, "everything", "stdio"), script(t, "filesystem", folder), memory})
	for _, name := range []string{"everything", "filesystem", "memory"} {
		s := n.tools(t, "", name)
		require.Equal(t, "ready", s.GetState(), s.GetReason())
		require.NotEmpty(t, s.GetToolsJson())
	}
	answer, err := n.call(t.Context(), "", "everything", "echo", `{"message":"hi"}`)
	require.NoError(t, err)
	require.Contains(t, text(t, answer.GetResultJson()), "hi")
	answer, err = n.call(t.Context(), "", "filesystem", "read_text_file", `{"path":`+strconv.Quote(filepath.Join(folder, "hello.txt"))+`}`)
	require.NoError(t, err)
	require.Equal(t, "hello from a file", text(t, answer.GetResultJson()))
	answer, err = n.call(t.Context(), "", "filesystem", "read_text_file", `{"path":"/etc/passwd"}`)
	require.NoError(t, err)
	require.True(t, answer.GetFailed(), "a failure that the server answers is an answer")
	_, err = n.call(t.Context(), "", "memory", "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["likes tea"]}]}`)
	require.NoError(t, err)
	answer, err = n.call(t.Context(), "", "memory", "search_nodes", `{"query":"tea"}`)
	require.NoError(t, err)
	require.Contains(t, text(t, answer.GetResultJson()), "Ada")
}

func TestAServerAtAnAddressServesAndIsGreetedAgainWhenItForgets(t *testing.T) {
	t.Parallel()
	entry := reference(t, "everything")
	// The address stays while the server behind it comes and goes.
	var port atomic.Int64
	front := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:" + strconv.FormatInt(port.Load(), 10)})
	}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)})
	t.Cleanup(front.Close)
	start := func() (stop func()) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port.Store(int64(listener.Addr().(*net.TCPAddr).Port))
		require.NoError(t, listener.Close())
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, "node", entry, "streamableHttp")
		cmd.Env = append(os.Environ(), "PORT="+strconv.FormatInt(port.Load(), 10))
		require.NoError(t, cmd.Start())
		return sync.OnceFunc(func() { cancel(); _ = cmd.Wait() })
	}
	stop := start()
	defer func() { stop() }()
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{{Name: "web", Transport: "http", Url: front.URL + "/mcp", Shared: true, StartupTimeoutSeconds: 30}})
	require.Eventually(t, func() bool { return n.tools(t, "", "web").GetState() == "ready" }, time.Minute, 50*time.Millisecond)
	answer, err := n.call(t.Context(), "", "web", "echo", `{"message":"over HTTP"}`)
	require.NoError(t, err)
	require.Contains(t, text(t, answer.GetResultJson()), "over HTTP")

	stop() // with all its sessions
	stop = start()
	require.Eventually(t, func() bool {
		answer, err := n.call(t.Context(), "", "web", "echo", `{"message":"again"}`)
		return err == nil && !answer.GetFailed()
	}, time.Minute, 50*time.Millisecond)
}
