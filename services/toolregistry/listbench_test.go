package toolregistry_test

import (
	"fmt"
	"testing"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

// manyTools is what five servers of a thousand tools each bring.
func manyTools() *mcphostv1.ListServerToolsResponse {
	answer := &mcphostv1.ListServerToolsResponse{Digest: "many"}
	for s := range 5 {
		server := &mcphostv1.ServerTools{Server: fmt.Sprint("s", s), State: "ready", ToolPrefix: fmt.Sprintf("s%d.", s)}
		for i := range 1000 {
			server.ToolsJson = append(server.ToolsJson, fmt.Sprintf(`{"name":"tool_%d","description":"Does the thing number %d, whatever it takes, and says what came of it.",`+
				`"inputSchema":{"type":"object","properties":{"id":{"type":"integer","description":"Which thing."},"labels":{"type":"array","items":{"type":"string"}},`+
				`"state":{"type":"string","enum":["open","closed"]},"where":{"type":"object","properties":{"path":{"type":"string"}}}},"required":["id"],"additionalProperties":false},`+
				`"annotations":{"readOnlyHint":true}}`, i, i))
		}
		answer.Servers = append(answer.Servers, server)
	}
	return answer
}

// BenchmarkList lists 5,000 tools of MCP servers beside the suite's own: from cache, and for a caller who still has them.
func BenchmarkList(b *testing.B) {
	for name, http := range map[string]bool{"in process": false, "over HTTP": true} {
		w := build(b, options{http: http, still: true})
		w.neighbours.bring("ada", manyTools())
		list := func(b *testing.B) {
			b.Helper()
			answer, err := w.turn.ListTools(asSeat(b.Context()), &toolregistryv1.ListToolsRequest{})
			if err != nil || len(answer.GetTools()) < 5000 {
				b.Fatal(len(answer.GetTools()), err)
			}
		}
		b.Run(name+"/from cache", func(b *testing.B) {
			list(b)
			for b.Loop() {
				list(b)
			}
		})
		b.Run(name+"/unchanged", func(b *testing.B) {
			known, err := w.turn.ListTools(asSeat(b.Context()), &toolregistryv1.ListToolsRequest{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				again, err := w.turn.ListTools(asSeat(b.Context()), &toolregistryv1.ListToolsRequest{KnownDigest: known.GetDigest()})
				if err != nil || !again.GetUnchanged() {
					b.Fatal(err)
				}
			}
		})
		w.stop()
	}
}
