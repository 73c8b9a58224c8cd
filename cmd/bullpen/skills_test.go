package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// skillDocument is a company that says on a page how work is filed, and shows large results condensed.
func skillDocument() string {
	return fmt.Sprintf(`name: Orderly
knowledge: {skills_container: GUIDE}
skill_variables: {handbook: "https://handbook.example"}
tool_results: {mode: summarize, summarize_over_bytes: 1500, top_items: 1}
providers:
  llm:
    default:
      type: scripted
      scenario:
        rules:
          - rounds:
              - call: {tool: create_work_item, args: {title: "Too soon", project: OPS}}
              - calls:
                  - {tool: load_tool_skill, args: {key: filing}}
                  - {tool: create_work_item, args: {title: "Look into it", project: OPS}}
                  - {tool: get_work_catalogue, args: {}}
                  - {tool: list_work_items, args: {project: OPS}}
                  - {tool: list_pages, args: {container: OPS}}
              - call: {tool: reply, args: {body: "Filed."}}
              - submit: {outcome: delivered, summary: Answered., deliveries: [reply]}
integrations:
  github: {webhook_secret: "${CROWD_GITHUB_SECRET}"}
units:
  - name: Operations
    type: team
    project: OPS
    space: OPS
    roles:
      - name: Seat 0
        handle: seat-0
        integrations: {github: {login: %[1]s, token: "${CROWD_GITHUB_0}"}}
`, crowdLogin(0))
}

// TestAPageHoldsAToolBackUntilItWasRead publishes a required tool skill, runs a turn that tries without it, and reads what a
// summary left out. Then an operator adds an MCP server over plain HTTP.
func TestAPageHoldsAToolBackUntilItWasRead(t *testing.T) {
	t.Parallel()
	vendors := startVendors(t)
	p := newSuiteProcess(t, vendors, skillDocument()).start(t)
	operator := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindOperator, Id: "tests", DisplayName: "tests"})
	pages := knowledgev1connect.NewKnowledgeServiceClient(p.client("console"))
	for i := range 20 {
		_, err := pages.WritePage(operator, &knowledgev1.WritePageRequest{
			Title: fmt.Sprintf("Page %02d", i), Body: "Nothing.", Container: "OPS", Labels: []string{strings.Repeat("x", 60)},
		})
		require.NoError(t, err)
	}
	_, err := pages.WritePage(operator, &knowledgev1.WritePageRequest{
		Title: "Filing work", Container: "GUIDE",
		Body: "---\nkey: filing\ntrigger: {tool: create_work_item}\nsummary: How work is filed.\n---\nSee ${handbook}/filing.",
	})
	require.NoError(t, err)
	tools := toolregistryv1connect.NewToolRegistryServiceClient(p.client("turn"))
	until(t, "the skill is in force", func(ctx context.Context) bool {
		listed, err := tools.ListToolSkills(ctx, &toolregistryv1.ListToolSkillsRequest{Seat: "seat-0"})
		return err == nil && len(listed.GetSkills()) == 1
	})

	ask(t, vendors, p.url, "q-0001")
	turn := p.awaitTurns(t, 1)[0]
	require.Equal(t, "delivered", turn.GetTurn().GetOutcome(), lastCall(turn))
	early, then := turn.GetRounds()[0].GetCalls()[0], turn.GetRounds()[1].GetCalls()
	require.Equal(t, []string{"failed", "forbidden"}, []string{early.GetState(), early.GetRefusalClass()})
	require.Contains(t, early.GetResult(), "`filing`")
	require.Contains(t, then[0].GetResult(), "See https://handbook.example/filing.")
	require.Equal(t, []string{"Look into it"}, p.items(t), "what was held back was not filed")

	// The journal and the audit have the list whole; the seat reads it page by page.
	whole := then[len(then)-1].GetResult()
	require.Greater(t, len(whole), 1500)
	require.Contains(t, whole, "Page 19")
	calls, err := p.record.registry.ListCalls(operator, &toolregistryv1.ListCallsRequest{TurnId: turn.GetTurn().GetTurnId(), Tool: "list_pages"})
	require.NoError(t, err)
	require.Equal(t, whole, calls.GetCalls()[0].GetResult())
	seat := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindSeat, Id: "seat-0", Seat: "seat-0", Turn: &toolv1.TurnClaims{
		TurnId: turn.GetTurn().GetTurnId(), WorkKey: turn.GetTurn().GetWorkKey(), RevisionId: turn.GetTurn().GetRevisionId(),
	}})
	read, err := tools.CallTool(seat, &toolregistryv1.CallToolRequest{
		Tool: "read_tool_result", ArgumentsJson: fmt.Sprintf(`{"call_ref":%q}`, calls.GetCalls()[0].GetAuditId()), CallId: "read",
	})
	require.NoError(t, err)
	var page struct{ Text string }
	require.NoError(t, json.Unmarshal([]byte(read.GetText()), &page))
	require.Equal(t, whole, page.Text)

	p.addServer(t)
	p.stop(t)
}

// addServer adds an MCP server as an operator's form does: with a token, over plain HTTP.
func (r *suiteRun) addServer(t *testing.T) {
	t.Helper()
	operator := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindOperator, Id: "tests", DisplayName: "tests"})
	company := companyv1connect.NewCompanyServiceClient(r.client("console"))
	token, err := company.CreateToken(operator, &companyv1.CreateTokenRequest{Name: "form"})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.url+"/config/mcp-servers/search",
		strings.NewReader(`{"command": "search-mcp", "shared": false, "_summary": "search the web"}`))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token.GetToken())
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("If-None-Match", "*")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, response.StatusCode, string(body))
	until(t, "the server is listed", func(ctx context.Context) bool {
		listed, err := r.record.registry.ListMcpServers(rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "tests"}), &toolregistryv1.ListMcpServersRequest{})
		return err == nil && len(listed.GetServers()) == 1
	})
	document, err := company.GetDocument(operator, &companyv1.GetDocumentRequest{})
	require.NoError(t, err)
	require.Equal(t, skillDocument()+"mcp_servers:\n  - name: search\n    command: search-mcp\n    shared: false\n", document.GetDocument())
}
