package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
)

// workDocument is a company of a person and an agent that does what it is given. It tries to answer elsewhere once.
func workDocument() string {
	return fmt.Sprintf(`name: Workshop
tracker: {backend: native}
providers:
  llm:
    default:
      type: scripted
      scenario:
        rules:
          - when: {contains: "Is it live"}
            rounds:
              - call: {tool: reply, args: {body: "It is."}}
              - call: {tool: comment_on_work_item, args: {item: OPS-1, body: "It is live."}}
              - submit: {outcome: delivered, summary: Answered., deliveries: [comment_on_work_item]}
          - when: {contains: "A new item, OPS-1"}
            rounds:
              - call: {tool: get_work_item, args: {item: OPS-1}}
              - call: {tool: comment_on_work_item, args: {item: OPS-1, body: "Renewed. It was {{result.get_work_item.item.assignee}} who had it."}}
              - submit: {outcome: delivered, summary: Renewed., deliveries: [comment_on_work_item]}
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
        integrations: {github: {login: %[1]s, token: "${CROWD_GITHUB_0}"}}
`, crowdLogin(0))
}

// use calls a tool as the person whose assistant it is, and reads its answer.
func use(t *testing.T, session *mcp.ClientSession, tool string, arguments, answer any) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err)
	text := result.Content[0].(*mcp.TextContent).Text
	require.False(t, result.IsError, text)
	require.NoError(t, json.Unmarshal([]byte(text), answer))
}

// TestWorkThatIsGivenToAnAgentComesBackAsANotice gives an item to an agent, which reads it and says that it is done; whoever filed it
// finds that in their inbox, asks back, and is answered on the item and nowhere else.
func TestWorkThatIsGivenToAnAgentComesBackAsANotice(t *testing.T) {
	t.Parallel()
	p := newSuiteProcess(t, startVendors(t), workDocument()).start(t)
	made, err := companyv1connect.NewCompanyServiceClient(p.client("operator")).
		CreateToken(t.Context(), &companyv1.CreateTokenRequest{Name: "outside", Seat: "ines"})
	require.NoError(t, err)
	session := assistant(t, p.url, &http.Client{Transport: bearer(made.GetToken())}, "2025-11-25")
	defer session.Close()

	filed := created(t, session, object{"project": "OPS", "title": "Renew the certificate", "assignee": "Seat 0"})
	first := p.awaitTurns(t, 1)[0]
	require.Equal(t, "delivered", first.GetTurn().GetOutcome(), "%s", first.GetTurn().GetSummary())
	require.Equal(t, "tool", first.GetTurn().GetObligation())
	require.Contains(t, p.say(t, "work", "explain", filed.Position), "seat-0  assignee  delivered")

	type notice struct{ Reason, Kind, Actor, Excerpt string }
	var inbox struct{ Notices []notice }
	until(t, "the person is told", func(context.Context) bool {
		use(t, session, "work_inbox", object{"handle": "ines"}, &inbox)
		return len(inbox.Notices) == 1
	})
	told := inbox.Notices[0]
	require.Equal(t, []string{"reporter", "comment", "seat-0", "Renewed. It was seat-0 who had it."}, []string{told.Reason, told.Kind, told.Actor, told.Excerpt},
		"the woken turn saw what woke it")

	var said struct{ Position string }
	use(t, session, "comment_on_work_item", object{"item": filed.Key, "body": "Is it live?"}, &said)
	second := p.awaitTurns(t, 2)[1]
	require.Equal(t, []string{"delivered", "tool", "work", first.GetTurn().GetConversationKey()}, []string{
		second.GetTurn().GetOutcome(), second.GetTurn().GetObligation(), second.GetTurn().GetSurface(), second.GetTurn().GetConversationKey(),
	})
	elsewhere := second.GetRounds()[0].GetCalls()[0]
	require.Equal(t, []string{"reply", "failed"}, []string{elsewhere.GetTool(), elsewhere.GetState()}, "it is answered on the item")
	until(t, "the person is told again", func(context.Context) bool {
		use(t, session, "work_inbox", object{"handle": "ines"}, &inbox)
		return len(inbox.Notices) == 2
	})
	require.Contains(t, p.say(t, "work", "explain", said.Position), "seat-0  assignee  delivered")
	require.Contains(t, p.say(t, "work", "explain", "tracker@1:999999"), "It is not known")
	p.stop(t)
}
