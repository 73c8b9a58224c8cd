package main_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// approvalDocument is a company whose only agent may file work when a person lets it. It says what became of it, and only then.
func approvalDocument() string {
	return fmt.Sprintf(`name: Careful
tracker: {backend: native}
tool_policy:
  rules:
    - name: filing
      effect: ask
      units: [Operations]
      tools: [create_*]
      when: args.title.startsWith("Look into")
      reason: Work is filed by two.
    - {name: figures, effect: ask, tools: [reply], when: args.body.contains("EUR")}
    - {name: no pages, effect: deny, tools: ["*_page"]}
providers:
  llm:
    default:
      type: scripted
      scenario:
        rules:
          - when: {contains: "It costs 5 EUR."}
            rounds:
              - submit: {outcome: no_action, summary: It was said.}
          - when: {contains: "q-0003"}
            rounds:
              - call: {tool: reply, args: {body: "It costs 5 EUR."}}
              - submit: {outcome: delivered, summary: The answer waits., deliveries: [reply]}
          - when: {contains: "was approved by"}
            rounds:
              - call: {tool: reply, args: {body: "Filed, as you allowed."}}
              - submit: {outcome: delivered, summary: Answered., deliveries: [reply]}
          - when: {contains: "was denied by"}
            rounds:
              - call: {tool: reply, args: {body: "I may not file it."}}
              - submit: {outcome: delivered, summary: Answered., deliveries: [reply]}
          - when: {regex: "q-000[0-9]"}
            rounds:
              - call: {tool: create_work_item, args: {title: "Look into it", project: OPS}}
              - submit: {outcome: blocked, summary: It waits for a person., evidence: The call waits for a person.}
integrations:
  github: {webhook_secret: "${CROWD_GITHUB_SECRET}"}
units:
  - name: Operations
    type: team
    project: OPS
    roles:
      - name: Seat 0
        handle: seat-0
        integrations: {github: {login: %[1]s, token: "${CROWD_GITHUB_0}"}}
`, crowdLogin(0))
}

// TestACallWaitsForAPersonWhateverIsKilled parks a call, kills the suite, approves the call in the next run and denies another one
// from the command line.
func TestACallWaitsForAPersonWhateverIsKilled(t *testing.T) {
	t.Parallel()
	vendors := startVendors(t)
	s := newSuiteProcess(t, vendors, approvalDocument())
	operator := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindOperator, Id: "tests", DisplayName: "tests"})

	first := s.start(t)
	ask(t, vendors, first.url, "q-0001")
	asked := first.awaitTurns(t, 1)[0]
	require.Equal(t, "blocked", asked.GetTurn().GetOutcome())
	require.Equal(t, "parked", asked.GetRounds()[0].GetCalls()[0].GetState())
	waiting := first.waiting(t)
	require.Equal(t, []string{"create_work_item", "filing", asked.GetTurn().GetTurnId()},
		[]string{waiting.GetTool(), waiting.GetRule(), waiting.GetTurnId()})
	require.Empty(t, first.items(t))
	drawn := first.say(t, "turns", "show", asked.GetTurn().GetTurnId())
	require.Contains(t, drawn, "not made: it waits for a person")
	require.NoError(t, first.command.Process.Kill())
	require.Error(t, first.command.Wait())

	second := s.start(t)
	require.Equal(t, waiting.GetApprovalId(), second.waiting(t).GetApprovalId())
	tools := toolregistryv1connect.NewToolRegistryServiceClient(second.client("console"))
	approved, err := tools.DecideApproval(operator, &toolregistryv1.DecideApprovalRequest{
		ApprovalId: waiting.GetApprovalId(), Decision: "approve", Note: "go on",
	})
	require.NoError(t, err)
	require.Equal(t, "ok", approved.GetApproval().GetCallStatus(), approved.GetApproval().GetResult())
	_, err = tools.DecideApproval(operator, &toolregistryv1.DecideApprovalRequest{ApprovalId: waiting.GetApprovalId(), Decision: "deny"})
	require.Equal(t, fault.AlreadyAnswered, rpc.FromError(err).Class)
	told := second.awaitTurns(t, 2)[1]
	require.Equal(t, []string{"delivered", asked.GetTurn().GetConversationKey(), "tool"},
		[]string{told.GetTurn().GetOutcome(), told.GetTurn().GetConversationKey(), told.GetTurn().GetObligation()})
	for _, part := range []string{"go on", approved.GetApproval().GetResult(), "q-0001"} {
		require.Contains(t, told.GetMail()[0].GetBody(), part)
	}
	require.Equal(t, []string{"Look into it"}, second.items(t), "created once")
	require.Equal(t, []string{"Filed, as you allowed."}, answersOf(t, vendors, 1), "exactly one answer")

	ask(t, vendors, second.url, "q-0002")
	second.awaitTurns(t, 3)
	another := second.waiting(t)
	require.Contains(t, second.say(t, "approvals"), another.GetApprovalId())
	require.Contains(t, second.say(t, "approvals", "deny", another.GetApprovalId(), "--note", "too early"), "denied")
	require.Contains(t, second.awaitTurns(t, 4)[3].GetMail()[0].GetBody(), "too early")
	require.Equal(t, []string{"Look into it"}, second.items(t))
	require.Equal(t, []string{"Filed, as you allowed.", "I may not file it."}, answersOf(t, vendors, 2))

	// An answer that waits counts as given; once it is let through, nobody is owed another.
	ask(t, vendors, second.url, "q-0003")
	require.Equal(t, "delivered", second.awaitTurns(t, 5)[4].GetTurn().GetOutcome())
	require.Len(t, answersOf(t, vendors, 2), 2)
	second.say(t, "approvals", "approve", second.waiting(t).GetApprovalId())
	require.Equal(t, "none", second.awaitTurns(t, 6)[5].GetTurn().GetObligation())
	require.Equal(t, "It costs 5 EUR.", answersOf(t, vendors, 3)[2])
	explained := second.say(t, "policy", "explain", "seat-0", "create_work_item", "--args", `{"title":"Look into it"}`)
	require.Contains(t, explained, "ask: A call of `create_work_item` by `seat-0` waits for a person")
	second.stop(t)
}

// awaitTurns waits until so many turns have ended and answers them, oldest first.
func (r *suiteRun) awaitTurns(t *testing.T, n int) []*turnv1.GetTurnResponse {
	t.Helper()
	var found []*turnv1.GetTurnResponse
	until(t, fmt.Sprintf("%d turns have ended", n), func(ctx context.Context) bool {
		listed, err := r.record.turns.ListTurns(ctx, &turnv1.ListTurnsRequest{State: "done"})
		if err != nil || len(listed.GetTurns()) < n {
			return false
		}
		found = nil
		for i := range listed.GetTurns() {
			got, err := r.record.turns.GetTurn(ctx, &turnv1.GetTurnRequest{TurnId: listed.GetTurns()[len(listed.GetTurns())-1-i].GetTurnId()})
			if err != nil {
				return false
			}
			found = append(found, got)
		}
		return true
	})
	require.Len(t, found, n)
	return found
}

// answersOf waits until the first seat has said so much on GitHub, and answers it without our own marks.
func answersOf(t *testing.T, vendors *story.Vendors, n int) []string {
	t.Helper()
	until(t, "the seat has answered", func(context.Context) bool { return len(repliesOf(vendors)) >= n })
	var answers []string
	for _, body := range repliesOf(vendors) {
		answer, _, _ := strings.Cut(body, "\n\n<!--")
		answers = append(answers, answer)
	}
	return answers
}

// waiting answers the one call that waits for a person.
func (r *suiteRun) waiting(t *testing.T) *toolregistryv1.Approval {
	t.Helper()
	tools := toolregistryv1connect.NewToolRegistryServiceClient(r.client("console"))
	listed, err := tools.ListApprovals(t.Context(), &toolregistryv1.ListApprovalsRequest{State: "waiting"})
	require.NoError(t, err)
	require.Len(t, listed.GetApprovals(), 1)
	return listed.GetApprovals()[0]
}

// say runs a command of the program on the installation, and answers what it prints.
func (r *suiteRun) say(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t), append(args, "--data", r.data)...).CombinedOutput()
	require.NoError(t, err, "%s: %s", strings.Join(args, " "), out)
	return string(out)
}
