package model_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

// answers is a provider that fails as it is told, key by key.
type answers map[string]error

func (a answers) Ask(_ context.Context, key string, _ model.Request) (model.Answer, error) {
	return model.Answer{Text: key}, a[key]
}

// clock is moved by hand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestPool(t *testing.T) {
	t.Parallel()
	cooldowns := model.Cooldowns{RateLimit: time.Hour, Auth: time.Minute}

	t.Run("rests a refused key, and tries another", func(t *testing.T) {
		t.Parallel()
		c := &clock{at: time.Unix(0, 0)}
		p := model.NewPool("p", answers{"a": &model.Failure{Kind: model.RateLimited}}, []string{"a", "b"}, cooldowns, model.NewBench(), c.now)
		for range 3 {
			answer, err := p.Ask(t.Context(), model.Request{})
			require.NoError(t, err)
			require.Equal(t, "b", answer.Text)
			require.Equal(t, "p", answer.Provider)
		}
		require.Zero(t, p.Rests())
	})

	t.Run("takes the vendor's word for how long", func(t *testing.T) {
		t.Parallel()
		c := &clock{at: time.Unix(0, 0)}
		failure := &model.Failure{Kind: model.RateLimited, RetryAfter: 7 * time.Second}
		p := model.NewPool("p", answers{"a": failure}, []string{"a"}, cooldowns, model.NewBench(), c.now)
		_, err := p.Ask(t.Context(), model.Request{})
		require.Error(t, err)
		require.Equal(t, 7*time.Second, p.Rests())
		c.at = c.at.Add(7 * time.Second)
		require.Zero(t, p.Rests())
	})

	t.Run("rests a key that is refused again for twice as long", func(t *testing.T) {
		t.Parallel()
		c := &clock{at: time.Unix(0, 0)}
		p := model.NewPool("p", answers{"a": &model.Failure{Kind: model.Unauthorized}}, []string{"a"}, cooldowns, model.NewBench(), c.now)
		for _, minutes := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
			_, err := p.Ask(t.Context(), model.Request{})
			require.Error(t, err)
			require.Equal(t, time.Duration(minutes)*time.Minute, p.Rests())
			c.at = c.at.Add(p.Rests())
		}
	})

	t.Run("remembers over revisions", func(t *testing.T) {
		t.Parallel()
		c := &clock{at: time.Unix(0, 0)}
		bench := model.NewBench()
		failing := answers{"a": &model.Failure{Kind: model.RateLimited}}
		_, err := model.NewPool("p", failing, []string{"a"}, cooldowns, bench, c.now).Ask(t.Context(), model.Request{})
		require.Error(t, err)
		require.Equal(t, time.Hour, model.NewPool("p", failing, []string{"a"}, cooldowns, bench, c.now).Rests())
	})
}

func TestChainGoesOnOnlyWhereThatHelps(t *testing.T) {
	t.Parallel()
	for kind, goesOn := range map[model.Kind]bool{
		model.RateLimited: true, model.Unauthorized: true, model.TimedOut: true, model.Broken: true,
		model.ContextFull: false, model.Rejected: false,
	} {
		c := &clock{at: time.Unix(0, 0)}
		pool := func(name string, a answers) *model.Pool {
			return model.NewPool(name, a, []string{"k"}, model.Cooldowns{RateLimit: time.Hour, Auth: time.Hour}, model.NewBench(), c.now)
		}
		var told []string
		chain := model.NewChain(func(from string, why model.Kind) { told = append(told, from+" "+string(why)) },
			pool("one", answers{"k": &model.Failure{Kind: kind}}), pool("two", answers{}))
		answer, err := chain.Ask(t.Context(), model.Request{})
		if goesOn {
			require.NoError(t, err)
			require.Equal(t, "two", answer.Provider)
			require.Equal(t, []string{"one " + string(kind)}, told)
			continue
		}
		failure, ok := errors.AsType[*model.Failure](err)
		require.True(t, ok)
		require.Equal(t, kind, failure.Kind)
		require.Empty(t, told)
	}
}

// TestClientsCarryWhatVendorsTake asks through the real clients with names and histories that vendors are particular about.
func TestClientsCarryWhatVendorsTake(t *testing.T) {
	t.Parallel()
	long := "server." + strings.Repeat("very_long_name_", 8)
	var offered []string
	s, err := modeldouble.Start(modeldouble.Options{Answer: func(r modeldouble.Request) (modeldouble.Answer, error) {
		offered = r.Tools
		return modeldouble.Answer{Text: "Hm.", Calls: []modeldouble.Call{
			{Tool: r.Tools[0], Args: `{"a":1}`}, {Tool: r.Tools[1], Args: `{}`}, {Tool: r.Tools[2], Args: `{}`}, {Tool: "other", Args: `{}`},
		}}, nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	request := model.Request{
		System: "You are.", Opening: "Hi.", Seat: "ada",
		Tools: []model.Tool{
			{Name: "plain", Description: "d", Schema: []byte(`{"type":"object"}`)},
			{Name: "chat.post", Schema: []byte(`{"type":"object"}`)},
			{Name: long, Schema: []byte(`{"type":"object"}`)},
		},
		Rounds: []model.Round{
			{
				Text: "I look.", Calls: []model.Call{{ID: "c1", Tool: "chat.post", Args: `{"broken`}}, Dialect: "elsewhere",
				Results: []model.Result{{Text: "no", Failed: true}},
			},
			{Text: "Done.", Note: "Call submit_work."},
			{Note: "Again."},
		},
	}
	for name, provider := range map[string]model.Provider{
		"anthropic": model.Anthropic{Model: "m", BaseURL: s.URL(), MaxTokens: 100, Timeout: 10 * time.Second},
		"openai":    model.OpenAI{Model: "m", BaseURL: s.URL() + "/v1", MaxTokens: 100, Timeout: 10 * time.Second},
		"compatible": model.OpenAI{
			Model: "m", BaseURL: s.URL() + "/v1", MaxTokens: 100, Timeout: 10 * time.Second, Compatible: true,
		},
	} {
		answer, err := provider.Ask(t.Context(), "key", request)
		require.NoError(t, err, name)
		require.Equal(t, "Hm.", answer.Text)
		require.Equal(t, journal.StopCalls, answer.Stop)
		require.Positive(t, answer.InputTokens)
		var tools []string
		for _, call := range answer.Calls {
			tools = append(tools, call.Tool)
		}
		require.Equal(t, []string{"plain", "chat.post", long, "other"}, tools, "names come back as they are in the catalogue")
		require.Equal(t, "plain", offered[0])
		for _, wire := range offered {
			require.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, wire)
		}
		again := request
		again.Rounds = append(again.Rounds, model.Round{
			Text: answer.Text, Raw: answer.Raw, Dialect: answer.Dialect, Calls: answer.Calls,
			Results: make([]model.Result, len(answer.Calls)),
		})
		_, err = provider.Ask(t.Context(), "key", again)
		require.NoError(t, err, "%s takes its own answer back", name)
	}
	bills := s.Bills()
	require.Len(t, bills, 6)
}

func TestFailuresNameNoKey(t *testing.T) {
	t.Parallel()
	s, err := modeldouble.Start(modeldouble.Options{Answer: func(modeldouble.Request) (modeldouble.Answer, error) {
		return modeldouble.Answer{Text: "x"}, nil
	}, Keys: []string{"sk-right"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, provider := range []model.Provider{
		model.Anthropic{Model: "m", BaseURL: s.URL(), MaxTokens: 1, Timeout: time.Second},
		model.OpenAI{Model: "m", BaseURL: s.URL() + "/v1", MaxTokens: 1, Timeout: time.Second},
	} {
		_, err := provider.Ask(t.Context(), "sk-very-wrong", model.Request{System: "s", Opening: "o"})
		failure, ok := errors.AsType[*model.Failure](err)
		require.True(t, ok)
		require.Equal(t, model.Unauthorized, failure.Kind)
		require.Equal(t, http.StatusUnauthorized, failure.Status)
		require.NotContains(t, err.Error(), "sk-very-wrong")
		require.NotContains(t, err.Error(), s.URL())
	}
}
