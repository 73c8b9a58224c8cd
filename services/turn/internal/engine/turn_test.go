package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

const filing = `
rules:
  - when: {contains: broken}
    rounds:
      - say: I file it.
        call: {tool: create_work_item, args: {title: "{{fact.seat}}: broken"}}
      - call: {tool: reply, args: {body: "Filed as {{result.create_work_item.key}}."}}
      - submit: {outcome: delivered, summary: "Filed {{result.create_work_item.key}}.", deliveries: [reply]}
`

func factName(t testing.TB, payload []byte) string {
	t.Helper()
	event := &turnv1.TurnEvent{}
	require.NoError(t, proto.Unmarshal(payload, event))
	return strings.TrimPrefix(fmt.Sprintf("%T", event.GetFact()), "*turnv1.TurnEvent_")
}

func TestTurn(t *testing.T) {
	t.Parallel()

	t.Run("a mention becomes one turn that works and answers", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany(scripted(filing)))
		w := b.start(t, "n1", nil)
		b.post(t, letter("ada", "slack:T/C/1", "the till is broken"))
		w.Wake("ada")
		turn := b.ended(t, 1)[0]

		require.Equal(t, "delivered", turn.Outcome)
		require.Equal(t, "Filed OPS-1.", turn.Summary)
		require.True(t, turn.Scripted)
		require.EqualValues(t, 3, turn.Rounds)
		require.EqualValues(t, 3, turn.Calls)
		require.Equal(t, []string{`create_work_item {"title":"ada: broken"}`, `reply {"body":"Filed as OPS-1."}`}, b.registry.did())
		j := b.journal(t, turn.ID)
		require.Equal(t, []string{"create_work_item done", "reply done", "submit_work done"}, states(j))
		require.Equal(t, "slack", j.Calls()[1].Result.Delivered)
		require.Equal(t, "scripted", j.Rounds[0].Model)
		require.Equal(t, []string{"TurnStarted", "TurnCompleted"}, b.facts(t))
		mail, err := b.store.ListMail(t.Context(), "ada", "done", 10)
		require.NoError(t, err)
		require.Len(t, mail, 1)
	})

	t.Run("what waits in one conversation becomes one turn, conversations oldest first", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		var mu sync.Mutex
		var openings []string
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			openings = append(openings, r.Opening)
			return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
		}}
		first := letter("ada", "slack:busy", "one")
		dm := letter("ada", "slack:dm", "quiet question")
		second, third := letter("ada", "slack:busy", "two"), letter("ada", "slack:busy", "three")
		for i, m := range []*mailbox.Mail{&first, &dm, &second, &third} {
			m.ReceiveAt = m.ReceiveAt.Add(time.Duration(i) * time.Millisecond)
		}
		b.post(t, third, second, dm, first)
		b.start(t, "n1", nil)
		turns := b.ended(t, 2)
		require.Equal(t, []string{"slack:busy", "slack:dm"}, []string{turns[0].ConversationKey, turns[1].ConversationKey})
		require.Len(t, turns[0].MailIDs, 3)
		require.Contains(t, openings[0], "one")
		require.Less(t, strings.Index(openings[0], "two"), strings.Index(openings[0], "three"))
	})

	t.Run("mistakes of the model come back as failed results", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		answers := []model.Answer{
			calls("no_such_tool", `{}`, "create_work_item", `{"title": "unfin`, "post.message", `{}`),
			{Provider: "stub", Text: "All done!", Stop: journal.StopEnd},
			calls("submit_work", `{"summary":"x"}`, "reply", `{"body":"hi"}`),
			calls("submit_work", `{"conclusion":"x"}`),
			calls("submit_work", `{"outcome":"finished","summary":"x"}`),
			calls("submit_work", `{"summary":"x","deliveries":["create_work_item"]}`),
			calls("submit_work", `{"summary":"answered"}`),
		}
		var last model.Request
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			last = r
			return answers[len(r.Rounds)], nil
		}}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, "delivered", turn.Outcome)
		require.Equal(t, []string{
			"no_such_tool failed not_found", "create_work_item failed invalid", "post.message done",
			"submit_work failed invalid", "reply done", "submit_work failed invalid", "submit_work failed invalid",
			"submit_work failed invalid", "submit_work done",
		}, states(b.journal(t, turn.ID)))
		require.Contains(t, last.Rounds[1].Note, "submit_work")
		require.Contains(t, last.Rounds[2].Results[0].Text, "must be the last call")
		require.Contains(t, last.Rounds[3].Results[0].Text, "Unknown argument `conclusion`; it takes `outcome`")
		require.Contains(t, last.Rounds[4].Results[0].Text, "outcome")
		require.Contains(t, last.Rounds[5].Results[0].Text, "`create_work_item` has not delivered in this turn. What can be cited: `reply`")
	})

	t.Run("what no database keeps is taken out of an answer, and the turn goes on", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		odd := calls("no_such\x00tool\xff", `{}`, "create_work_item", "{\"title\":\"a\x00\"}")
		odd.Calls[0].ID, odd.Raw = "call\x00", []byte("the vendor's form")
		odd.Text = "I\x00 say"
		answers := []model.Answer{
			odd, calls("submit_work", `{"outcome":"blocked","summary":"x\u0000","evidence":"y"}`),
			calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`),
		}
		var asked atomic.Int32
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			asked.Add(1)
			return answers[len(r.Rounds)], nil
		}}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, "blocked", turn.Outcome)
		require.EqualValues(t, 3, asked.Load(), "no answer was paid for twice")
		j := b.journal(t, turn.ID)
		require.Equal(t, "no_suchtool\uFFFD", j.Rounds[0].Calls[0].Tool)
		require.Equal(t, "call_1_1", j.Rounds[0].Calls[0].ID)
		require.Empty(t, j.Rounds[0].Raw, "the vendor's form still holds what was taken out")
		require.Equal(t, "submit_work failed invalid", states(j)[2])
	})

	t.Run("a provider's words that no database keeps end the turn all the same", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		var asked atomic.Int32
		b.models = stub{ask: func(context.Context, model.Request) (model.Answer, error) {
			if asked.Add(1) == 1 {
				return model.Answer{}, &model.Failure{Kind: model.Rejected, Provider: "stub", Message: "bad\x00 \xff"}
			}
			return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
		}}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		require.Equal(t, "failed", b.ended(t, 1)[0].Outcome)
	})

	t.Run("nobody is told delivered who was not answered where they asked", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		var refusals []string
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			for _, round := range r.Rounds {
				for _, result := range round.Results {
					if result.Failed {
						refusals = append(refusals, result.Text)
					}
				}
			}
			return []model.Answer{
				calls("create_work_item", `{"title":"a"}`), calls("submit_work", `{"summary":"did it"}`),
				calls("submit_work", `{"outcome":"no_action","summary":"nothing"}`),
				{Stop: journal.StopEnd},
				{Stop: journal.StopEnd},
				{Stop: journal.StopEnd},
			}[len(r.Rounds)], nil
		}}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, "incomplete", turn.Outcome)
		require.Equal(t, "not_submitted", turn.ErrorKind)
		require.Contains(t, turn.Summary, "has not been delivered")
		require.Contains(t, refusals[0], "`slack`, where the answer is owed")
		require.Contains(t, refusals[0], "went elsewhere: `create_work_item`")
		require.Contains(t, refusals[len(refusals)-1], "Somebody waits")
	})

	t.Run("the loop guard stops the fourth identical call and then the turn", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			if len(r.Rounds) == 1 {
				return calls("get_work_item", `{"title": "x"}`, "get_work_item", `{"title":"x" }`), nil
			}
			return calls("get_work_item", `{"title":"x"}`), nil
		}}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, "incomplete", turn.Outcome)
		require.Equal(t, "tool_loop", turn.ErrorKind)
		require.Len(t, b.registry.did(), 3)
		all := states(b.journal(t, turn.ID))
		require.Equal(t, "get_work_item failed loop_detected", all[3])
		require.Equal(t, "get_work_item planned", all[4])
	})

	t.Run("a turn ends when its rounds are used up", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			return calls("get_work_item", fmt.Sprintf(`{"title":"%d"}`, len(r.Rounds))), nil
		}}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, []string{"incomplete", "max_rounds"}, []string{turn.Outcome, turn.ErrorKind})
		require.EqualValues(t, 8, turn.Rounds)
	})

	t.Run("a write that times out is unknown, its repetition is the same operation", func(t *testing.T) {
		t.Parallel()
		c := newCompany()
		c.TurnEngine.ToolTimeoutSeconds = 1
		b := setup(t, c)
		var tried atomic.Bool
		b.registry.before = func(ctx context.Context, r *toolregistryv1.CallToolRequest) error {
			if r.GetTool() == "reply" && !tried.Swap(true) {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		var text string
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			if len(r.Rounds) == 1 {
				text = r.Rounds[0].Results[0].Text
			}
			return []model.Answer{
				calls("reply", `{"body":"hi"}`), calls("reply", `{"body":"hi"}`), calls("submit_work", `{"summary":"said hi"}`),
			}[len(r.Rounds)], nil
		}}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, "delivered", turn.Outcome)
		require.Equal(t, []string{"reply unknown unavailable", "reply done", "submit_work done"}, states(b.journal(t, turn.ID)))
		require.Contains(t, text, "The outcome is unknown.")
		require.Contains(t, text, "Repeat exactly the same call")
		asked := b.registry.asked()
		require.Equal(t, asked[0].GetOperationId(), asked[1].GetOperationId())
		require.Len(t, b.registry.did(), 1)
	})

	t.Run("a panic is recorded and never retried", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		b.models = stub{ask: func(context.Context, model.Request) (model.Answer, error) { panic("kaput") }}
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, []string{"failed", "unhandled_exception"}, []string{turn.Outcome, turn.ErrorKind})
		require.Contains(t, turn.Summary, "kaput")
		require.NotContains(t, turn.Summary, "goroutine")
		mail, err := b.store.ListMail(t.Context(), "ada", "done", 10)
		require.NoError(t, err)
		require.Len(t, mail, 1)
	})

	t.Run("long texts are kept once and read back whole", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		long := strings.Repeat("ä", 20_000)
		b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
			args := quote(map[string]string{"title": long})
			return []model.Answer{
				calls("create_work_item", args, "get_work_item", args), calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`),
			}[len(r.Rounds)], nil
		}}
		b.post(t, letter("ada", "slack:1", long))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Contains(t, b.journal(t, turn.ID).Calls()[1].Args, long)
		var payloads int
		require.NoError(t, b.pool.QueryRow(t.Context(), `select count(*) from payloads`).Scan(&payloads))
		require.Equal(t, 3, payloads, "the frozen base, the opening, and the arguments once")
	})
}

func TestHeldMail(t *testing.T) {
	t.Parallel()

	held := func(t *testing.T, b *bundle, seat, says string) {
		t.Helper()
		require.Eventually(t, func() bool {
			mail, err := b.store.ListMail(t.Context(), seat, "held", 10)
			require.NoError(t, err)
			return len(mail) == 1 && strings.Contains(mail[0].Reason, says)
		}, patience, 5*time.Millisecond)
	}

	t.Run("without a company, and taken up as soon as there is one", func(t *testing.T) {
		t.Parallel()
		b := setup(t, nil)
		w := b.start(t, "n1", nil)
		b.post(t, letter("ada", "slack:1", "it is broken"))
		w.Wake("ada")
		held(t, b, "ada", "No company is active")
		require.Contains(t, w.HeldBecause(), "No company is active")
		b.office.put(newCompany(scripted(filing)))
		require.Equal(t, "delivered", b.ended(t, 1)[0].Outcome)
		require.Empty(t, w.HeldBecause())
	})

	t.Run("without a model, with the words that say so", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		w := b.start(t, "n1", nil)
		b.post(t, letter("ada", "slack:1", "it is broken"))
		w.Wake("ada")
		held(t, b, "ada", "No model is configured")
		require.Eventually(t, func() bool { return strings.Contains(w.HeldBecause(), "No model is configured") },
			patience, 5*time.Millisecond)
		b.office.put(newCompany(scripted(filing)))
		require.Equal(t, "delivered", b.ended(t, 1)[0].Outcome)
	})

	t.Run("with a key that has no value, named", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany(&companyv1.LlmProvider{Key: "default", Type: "anthropic", Model: "m", ApiKeys: []string{"${MISSING}"}}))
		w := b.start(t, "n1", nil)
		b.post(t, letter("ada", "slack:1", "it is broken"))
		w.Wake("ada")
		held(t, b, "ada", "${MISSING}")
	})

	t.Run("for a seat that the company has not", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany(scripted(filing)))
		w := b.start(t, "n1", nil)
		b.post(t, letter("zoe", "slack:1", "hello"))
		w.Wake("zoe")
		held(t, b, "zoe", "no agent seat of this handle")
	})

	t.Run("while the tool registry is away", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany(scripted(filing)))
		b.registry.down = fault.New(fault.Unavailable, "away").WithCause(errDown)
		w := b.start(t, "n1", nil)
		b.post(t, letter("ada", "slack:1", "it is broken"))
		w.Wake("ada")
		held(t, b, "ada", "tool registry does not answer")
		b.registry.mu.Lock()
		b.registry.down = nil
		b.registry.mu.Unlock()
		require.Equal(t, "delivered", b.ended(t, 1)[0].Outcome)
		require.Equal(t, []string{"TurnStarted", "TurnCompleted"}, b.facts(t), "no turn was begun in vain")
	})
}
