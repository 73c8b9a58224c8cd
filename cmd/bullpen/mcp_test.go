package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// TestMCPServersFromNPM declares three published servers, one of them with a child for each seat, and has a turn and an operator
// call them through the one door.
func TestMCPServersFromNPM(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "runbook.txt"), []byte("restart the queue"), 0o600))
	memory := filepath.Join(folder, "memory.jsonl")
	document := fmt.Sprintf(`name: Reference
providers:
  llm:
    default:
      type: scripted
      scenario:
        rules:
          - rounds:
              - calls:
                  - {tool: echo, args: {message: hello}}
                  - {tool: read_text_file, args: {path: %[2]q}}
                  - {tool: create_entities, args: {entities: [{name: queue, entityType: system, observations: [was restarted]}]}}
              - call: {tool: reply, args: {body: "{{result.echo}}; {{result.read_text_file}}"}}
              - submit: {outcome: delivered, summary: Answered., deliveries: [reply]}
mcp_servers:
  - {name: everything, command: node, args: [%[3]q, stdio]}
  - {name: filesystem, command: node, args: [%[4]q, %[1]q]}
  - {name: memory, shared: false, command: node, args: [%[5]q]}
integrations:
  github: {webhook_secret: "${CROWD_GITHUB_SECRET}"}
units:
  - name: Operations
    type: team
    roles:
      - name: Seat 0
        handle: seat-0
        mcp_env: {memory: {MEMORY_FILE_PATH: %[6]q}}
        integrations: {github: {login: %[7]s, token: "${CROWD_GITHUB_0}"}}
`, folder, filepath.Join(folder, "runbook.txt"), serverFromNPM(t, "everything"), serverFromNPM(t, "filesystem"), serverFromNPM(t, "memory"), memory, crowdLogin(0))
	vendors := startVendors(t)
	p := newSuiteProcess(t, vendors, document).start(t)

	ask(t, vendors, p.url, "q-0001")
	journal := p.awaitTurn(t, "q-0001")
	require.Equal(t, "delivered", journal.GetTurn().GetOutcome(), lastCall(journal))
	sources := map[string]string{}
	for _, c := range journal.GetRounds()[0].GetCalls() {
		require.Equal(t, "done", c.GetState(), "%s: %s", c.GetTool(), c.GetResult())
		sources[c.GetTool()] = c.GetSource()
	}
	require.Equal(t, map[string]string{"echo": "mcp:everything", "read_text_file": "mcp:filesystem", "create_entities": "mcp:memory"}, sources)
	replies := repliesOf(vendors)
	require.Len(t, replies, 1)
	require.Contains(t, replies[0], "Echo: hello; restart the queue")
	kept, err := os.ReadFile(memory)
	require.NoError(t, err)
	require.Contains(t, string(kept), "was restarted", "the seat's own child got the seat's environment")

	// The door itself, as the turn service calls in a seat's name, and as an operator.
	tools := toolregistryv1connect.NewToolRegistryServiceClient(p.client("turn"))
	seat := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindSeat, Id: "seat-0", Seat: "seat-0", Turn: &toolv1.TurnClaims{
		TurnId: journal.GetTurn().GetTurnId(), WorkKey: journal.GetTurn().GetWorkKey(), RevisionId: journal.GetTurn().GetRevisionId(),
	}})
	sum, err := tools.CallTool(seat, &toolregistryv1.CallToolRequest{Tool: "get-sum", ArgumentsJson: `{"a":2,"b":3}`, CallId: "sum"})
	require.NoError(t, err)
	require.Equal(t, "mcp:everything", sum.GetSource())
	require.Contains(t, sum.GetText(), "5")
	outside, err := tools.CallTool(seat, &toolregistryv1.CallToolRequest{Tool: "read_text_file", ArgumentsJson: `{"path":"/etc/hostname"}`, CallId: "read"})
	require.NoError(t, err, "a failure that the server answers is an answer")
	require.True(t, outside.GetFailed())
	operator := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindOperator, Id: "tests", DisplayName: "tests"})
	sum, err = p.record.registry.CallTool(operator, &toolregistryv1.CallToolRequest{Tool: "get-sum", ArgumentsJson: `{"a":2,"b":3}`})
	require.NoError(t, err)
	require.Contains(t, sum.GetText(), "5", "a shared server is an operator's too")
	_, err = p.record.registry.CallTool(operator, &toolregistryv1.CallToolRequest{Tool: "create_entities", ArgumentsJson: `{}`})
	require.Equal(t, fault.NotFound, rpc.FromError(err).Class, "a seat's own child is not")
	p.stop(t)
}

// serverFromNPM answers the entry point of a reference server.
func serverFromNPM(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(fetchedServers(t), "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
}
