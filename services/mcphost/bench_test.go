package mcphost_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
)

// BenchmarkCall compares a call through the host with the same call made directly with the SDK, to one program, with a result of
// 0.8 KB. Run both workers counts together: the ratio is what matters.
func BenchmarkCall(b *testing.B) {
	s, _ := hostile(b, "s", "")
	w := setup(b)
	n := w.node(b, "n1")
	w.apply(b, n, []*companyv1.McpServer{s})
	n.tools(b, "", "s")
	arguments := `{"text":"` + strings.Repeat("x", 800) + `"}`

	cmd := exec.Command(s.GetCommand())
	for name, value := range s.GetEnv() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	direct, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(b, err)
	defer direct.Close()

	for _, workers := range []int{1, 16} {
		b.Run(map[int]string{1: "direct/1", 16: "direct/16"}[workers], func(b *testing.B) {
			parallel(b, workers, func() error {
				_, err := direct.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(arguments)})
				return err
			})
		})
		b.Run(map[int]string{1: "host/1", 16: "host/16"}[workers], func(b *testing.B) {
			parallel(b, workers, func() error {
				_, err := n.call(b.Context(), "", "s", "echo", arguments)
				return err
			})
		})
	}
}

// BenchmarkList lists 5,000 tools of one server that are known already: whole, and to a caller who has them.
func BenchmarkList(b *testing.B) {
	s, _ := hostile(b, "s", "crowd")
	w := setup(b)
	n := w.node(b, "n1")
	w.apply(b, n, []*companyv1.McpServer{s})
	require.Len(b, n.tools(b, "", "s").GetToolsJson(), 5000)
	whole, err := n.ListServerTools(b.Context(), &mcphostv1.ListServerToolsRequest{})
	require.NoError(b, err)
	for name, known := range map[string]string{"whole": "", "unchanged": whole.GetDigest()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := n.ListServerTools(b.Context(), &mcphostv1.ListServerToolsRequest{KnownDigest: known}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func parallel(b *testing.B, workers int, call func() error) {
	b.Helper()
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var group sync.WaitGroup
	b.ResetTimer()
	for range workers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
