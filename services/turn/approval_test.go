package turn_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
)

// parking is a registry that puts some calls before a person.
type parking struct {
	registry

	mu    sync.Mutex
	calls []string
}

const parkedText = "This call was not made: it waits for a person."

func (p *parking) ListTools(ctx context.Context, req *toolregistryv1.ListToolsRequest) (*toolregistryv1.ListToolsResponse, error) {
	listed, err := p.registry.ListTools(ctx, req)
	listed.Tools = append(listed.Tools, &toolregistryv1.Tool{
		Name: "create_work_item", Source: "builtin", Annotations: &toolregistryv1.Annotations{ReadOnly: proto.Bool(false)},
	})
	return listed, err
}

func (p *parking) CallTool(ctx context.Context, req *toolregistryv1.CallToolRequest) (*toolregistryv1.CallToolResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, req.GetTool()+" "+req.GetArgumentsJson())
	if strings.Contains(req.GetArgumentsJson(), "park") {
		return &toolregistryv1.CallToolResponse{Text: parkedText, Source: "builtin", ApprovalId: uuid.NewString()}, nil
	}
	return p.registry.CallTool(ctx, req)
}

func (p *parking) made() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.calls...)
}

// parkingOffice files work or answers by a call that waits, and answers when it learns what became of it.
func parkingOffice() *companyv1.Company {
	c := office()
	c.LlmProviders[0].Scenario = `
rules:
  - when: {contains: "which waited for a person"}
    rounds:
      - call: {tool: reply, args: {body: "Decided."}}
      - submit: {summary: told them}
  - when: {contains: "answer me"}
    rounds:
      - call: {tool: reply, args: {body: "park this answer"}}
      - submit: {summary: the answer waits}
  - rounds:
      - call: {tool: create_work_item, args: {title: "park"}}
      - submit: {outcome: blocked, evidence: it waits, summary: waits for a person}
`
	return c
}

func (b *bundle) turns(t *testing.T, conversation string, n int) []*turnv1.Turn {
	t.Helper()
	var turns []*turnv1.Turn
	require.Eventually(t, func() bool {
		res, err := b.client.ListTurns(t.Context(), &turnv1.ListTurnsRequest{State: "done", ConversationKey: conversation})
		require.NoError(t, err)
		turns = res.GetTurns()
		return len(turns) == n
	}, 2*patience, 10*time.Millisecond)
	return turns
}

// settle publishes what became of a call, twice, as a relay that was killed does.
func (b *bundle) settle(t *testing.T, a *toolregistryv1.Approval) {
	t.Helper()
	a.ApprovalId, a.Seat, a.ArgumentsJson = uuid.NewString(), "ada", `{"title":"park"}`
	for _, fact := range []*toolregistryv1.ApprovalEvent{
		{EventId: uuid.NewString(), Fact: &toolregistryv1.ApprovalEvent_ApprovalRequested{
			ApprovalRequested: &toolregistryv1.ApprovalRequested{Approval: a},
		}},
		{EventId: uuid.NewString(), OccurTime: timestamppb.Now(), Fact: &toolregistryv1.ApprovalEvent_ApprovalSettled{
			ApprovalSettled: &toolregistryv1.ApprovalSettled{Approval: a},
		}},
	} {
		payload, err := proto.Marshal(fact)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, b.bus.Publish(t.Context(), bus.Message{
				Topic: "bullpen.toolregistry.approval.v1", Key: "ada", Value: payload, Headers: map[string]string{"ce_id": fact.GetEventId()},
			}))
		}
	}
}

func TestASeatIsToldWhatBecameOfACallThatWaited(t *testing.T) {
	t.Parallel()
	registry := &parking{}
	b := setupWith(t, registry)
	b.company.put(parkingOffice())
	long := strings.Repeat("whole ", 100_000)
	for i, c := range []struct {
		approval *toolregistryv1.Approval
		reads    []string
	}{
		{
			&toolregistryv1.Approval{State: "approved", DecidedBy: "operator:t", Note: "fine", CallStatus: "ok", Result: long},
			[]string{"was approved by operator:t and made. Do not make it again.", "They say: fine", "Its result:\n" + long},
		},
		{
			&toolregistryv1.Approval{State: "approved", DecidedBy: "operator:t", CallStatus: "refused", Result: "no such project"},
			[]string{"but the tool refused it", "no such project"},
		},
		{&toolregistryv1.Approval{State: "approved", DecidedBy: "operator:t", CallStatus: "failed", Result: "down"}, []string{"but it failed", "down"}},
		{&toolregistryv1.Approval{State: "approved", DecidedBy: "operator:t", CallStatus: "unknown"}, []string{"its outcome is unknown"}},
		{&toolregistryv1.Approval{State: "denied", DecidedBy: "operator:t", Note: "too early"}, []string{"was denied by operator:t", "too early"}},
		{&toolregistryv1.Approval{State: "expired", DecidedBy: "system"}, []string{"nobody decided in time"}},
		{&toolregistryv1.Approval{State: "cancelled", DecidedBy: "seat:ada"}, []string{"seat:ada took the question back"}},
	} {
		conversation := fmt.Sprintf("slack:%d", i)
		b.deliver(t, uuid.NewString(), conversation, "please file this")
		first := b.turns(t, conversation, 1)[0]
		require.Equal(t, "blocked", first.GetOutcome())
		got, err := b.client.GetTurn(t.Context(), &turnv1.GetTurnRequest{TurnId: first.GetTurnId()})
		require.NoError(t, err)
		require.Equal(t, "parked", got.GetRounds()[0].GetCalls()[0].GetState(), "the timeline shows that the call waits")
		require.Equal(t, parkedText, got.GetRounds()[0].GetCalls()[0].GetResult())

		if i%2 == 1 {
			b.stop() // the decision finds a process that was started anew
			b.start(t)
		}
		c.approval.TurnId, c.approval.ConversationKey, c.approval.Tool = first.GetTurnId(), conversation, "create_work_item"
		b.settle(t, c.approval)
		second := b.turns(t, conversation, 2)[0]
		require.Equal(t, "delivered", second.GetOutcome())
		require.Equal(t, "tool", second.GetObligation(), "the asker is owed what was owed before")
		require.Equal(t, "slack", second.GetSurface())
		got, err = b.client.GetTurn(t.Context(), &turnv1.GetTurnRequest{TurnId: second.GetTurnId()})
		require.NoError(t, err)
		require.Len(t, got.GetMail(), 1, "the same fact is mail once")
		for _, read := range append(c.reads, `{"title":"park"}`, "please file this", "create_work_item") {
			require.Contains(t, got.GetMail()[0].GetBody(), read)
		}
	}
	replies := 0
	for _, call := range registry.made() {
		if strings.HasPrefix(call, "reply") {
			replies++
		}
	}
	require.Equal(t, 7, replies, "one answer each")
}

func TestAnAnswerThatWaitsCountsUntilItIsDecided(t *testing.T) {
	t.Parallel()
	b := setupWith(t, &parking{})
	b.company.put(parkingOffice())
	for conversation, c := range map[string]struct {
		approval *toolregistryv1.Approval
		owed     string
	}{
		"slack:sent":      {&toolregistryv1.Approval{State: "approved", CallStatus: "ok", Reached: []string{"asked"}}, "none"},
		"slack:surface":   {&toolregistryv1.Approval{State: "approved", CallStatus: "ok", Reached: []string{"work", "slack"}}, "none"},
		"slack:elsewhere": {&toolregistryv1.Approval{State: "approved", CallStatus: "ok", Reached: []string{"work"}}, "tool"},
		"slack:denied":    {&toolregistryv1.Approval{State: "denied"}, "tool"},
		"slack:failed":    {&toolregistryv1.Approval{State: "approved", CallStatus: "failed", Reached: []string{"asked"}}, "tool"},
	} {
		b.deliver(t, uuid.NewString(), conversation, "answer me")
		first := b.turns(t, conversation, 1)[0]
		require.Equal(t, "delivered", first.GetOutcome(), "an answer that waits is on its way")
		c.approval.TurnId, c.approval.ConversationKey, c.approval.Tool = first.GetTurnId(), conversation, "reply"
		b.settle(t, c.approval)
		require.Equal(t, c.owed, b.turns(t, conversation, 2)[0].GetObligation(), conversation)
	}
}

func TestADecisionAboutATurnThatIsGoneStillReachesItsSeat(t *testing.T) {
	t.Parallel()
	b := setupWith(t, &parking{})
	b.company.put(parkingOffice())
	b.settle(t, &toolregistryv1.Approval{State: "denied", TurnId: uuid.NewString(), ConversationKey: "slack:gone", Tool: "create_work_item"})
	require.Equal(t, "none", b.turns(t, "slack:gone", 1)[0].GetObligation())
}
