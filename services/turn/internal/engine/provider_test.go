package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

// failing is what happens when the double fails once in a way, at the first question of a turn.
type failing struct {
	outcome, kind string
	// turns is how many there are in the end.
	turns int
}

func TestProviderFaults(t *testing.T) {
	t.Parallel()
	again := failing{outcome: "delivered", turns: 2}
	for kind, want := range map[modeldouble.Kind]failing{
		modeldouble.RateLimited:    again,
		modeldouble.Unauthorized:   again,
		modeldouble.RequestTimeout: again,
		modeldouble.ServerError:    again,
		modeldouble.Overloaded:     again,
		modeldouble.Hang:           again,
		modeldouble.Drop:           again,
		modeldouble.Cut:            again,
		modeldouble.BadRequest:     again,
		modeldouble.BadArguments:   {outcome: "delivered", turns: 1},
		modeldouble.UnknownTool:    {outcome: "delivered", turns: 1},
		modeldouble.Empty:          {outcome: "delivered", turns: 1},
		modeldouble.Refusal:        {outcome: "incomplete", kind: "refused", turns: 1},
		modeldouble.MaxTokens:      {outcome: "incomplete", kind: "length", turns: 1},
		modeldouble.ContextFull:    {outcome: "incomplete", kind: "context_full", turns: 1},
	} {
		for vendor := range providers("") {
			t.Run(string(kind)+", "+vendor, func(t *testing.T) {
				t.Parallel()
				model := careful(t)
				provider := providers(model.URL())[vendor]
				provider.TimeoutSeconds, provider.RateLimitCooldownSeconds, provider.AuthCooldownSeconds = 1, 1, 1
				b := setup(t, newCompany(provider))
				model.Inject(modeldouble.Fault{Kind: kind, RetryAfter: time.Second})
				b.post(t, letter("ada", "slack:1", "hello"))
				b.start(t, "n1", nil)
				turns := b.ended(t, want.turns)
				last := turns[len(turns)-1]
				require.Equal(t, want.outcome, last.Outcome, last.Summary)
				require.Equal(t, want.kind, last.ErrorKind)
				for _, turn := range turns {
					require.NotContains(t, turn.Summary, "sk-secret-key")
					require.Equal(t, turns[0].WorkKey, turn.WorkKey, "the same mail is the same work")
				}
			})
		}
	}
}

// careful is a model that replies until a reply has succeeded, and then submits.
func careful(t *testing.T) *modeldouble.Server {
	t.Helper()
	s, err := modeldouble.Start(modeldouble.Options{Answer: func(r modeldouble.Request) (modeldouble.Answer, error) {
		for _, m := range r.Messages {
			if m.Role == "tool" && strings.Contains(m.Text, "OPS-") {
				return modeldouble.Answer{Calls: []modeldouble.Call{{Tool: "submit_work", Args: `{"summary":"done"}`}}}, nil
			}
		}
		return modeldouble.Answer{Calls: []modeldouble.Call{{Tool: "reply", Args: `{"body":"Hi."}`}}}, nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestChain(t *testing.T) {
	t.Parallel()
	const hello = `
rules:
  - rounds:
      - call: {tool: reply, args: {body: Hi.}}
      - submit: {summary: done}
`
	chain := func(b *bundle, c *companyv1.Company) {
		for _, seat := range c.GetSeats() {
			seat.Llm = map[string]*companyv1.ProviderChain{"default": {Providers: []string{"first", "second"}}}
		}
		b.office.put(c)
	}

	t.Run("goes on to the next provider when the first cannot answer", func(t *testing.T) {
		t.Parallel()
		for _, kind := range []modeldouble.Kind{
			modeldouble.RateLimited, modeldouble.Unauthorized, modeldouble.ServerError, modeldouble.Overloaded, modeldouble.Cut,
		} {
			one, two := double(t, hello), double(t, hello)
			first, second := providers(one.URL())["anthropic"], providers(two.URL())["openai"]
			first.Key, second.Key = "first", "second"
			b := setup(t, nil)
			chain(b, newCompany(first, second))
			one.Inject(modeldouble.Fault{Kind: kind, Times: 9})
			b.post(t, letter("ada", "slack:1", "hello"))
			b.start(t, "n1", nil)
			turn := b.ended(t, 1)[0]
			require.Equal(t, "delivered", turn.Outcome, "%s: %s", kind, turn.Summary)
			require.Empty(t, one.Bills())
			require.Len(t, two.Bills(), 2)
			require.Equal(t, "second", b.journal(t, turn.ID).Rounds[0].Provider)
		}
	})

	t.Run("never takes a refusal elsewhere", func(t *testing.T) {
		t.Parallel()
		one, two := double(t, hello), double(t, hello)
		first, second := providers(one.URL())["anthropic"], providers(two.URL())["openai"]
		first.Key, second.Key = "first", "second"
		b := setup(t, nil)
		chain(b, newCompany(first, second))
		one.Inject(modeldouble.Fault{Kind: modeldouble.Refusal})
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		require.Equal(t, "refused", b.ended(t, 1)[0].ErrorKind)
		require.Zero(t, two.Requests())
	})

	t.Run("a conversation begun with one vendor goes on with the other", func(t *testing.T) {
		t.Parallel()
		one, two := double(t, hello), double(t, hello)
		first, second := providers(one.URL())["anthropic"], providers(two.URL())["openai"]
		first.Key, second.Key = "first", "second"
		b := setup(t, nil)
		chain(b, newCompany(first, second))
		round := 1
		one.Inject(modeldouble.Fault{Kind: modeldouble.ServerError, Rounds: &round, Times: 9})
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, "delivered", turn.Outcome, turn.Summary)
		rounds := b.journal(t, turn.ID).Rounds
		require.Equal(t, []string{"first", "second"}, []string{rounds[0].Provider, rounds[1].Provider})
	})

	t.Run("a second key is used while the first one rests", func(t *testing.T) {
		t.Parallel()
		one := double(t, hello)
		provider := providers(one.URL())["openai"]
		provider.ApiKeys = []string{"sk-first-key", "sk-second-key"}
		b := setup(t, newCompany(provider))
		one.Inject(modeldouble.Fault{Kind: modeldouble.RateLimited, Key: "sk-first-key", RetryAfter: time.Hour})
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		require.Equal(t, "delivered", b.ended(t, 1)[0].Outcome)
		for _, bill := range one.Bills() {
			require.Equal(t, "sk-second-key", bill.Key)
		}
	})

	t.Run("a secret that the model says is not kept", func(t *testing.T) {
		t.Parallel()
		one := double(t, strings.ReplaceAll(hello, "Hi.", "my key is sk-secret-key"))
		b := setup(t, newCompany(providers(one.URL())["openai"]))
		b.post(t, letter("ada", "slack:1", "hello"))
		b.start(t, "n1", nil)
		turn := b.ended(t, 1)[0]
		require.Equal(t, `{"body":"my key is [REDACTED:secret]"}`, b.journal(t, turn.ID).Calls()[0].Args)
		require.Equal(t, []string{`reply {"body":"my key is [REDACTED:secret]"}`}, b.registry.did())
	})
}
