package modeldouble_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/modeldouble"
)

const scenario = `
rules:
  - when: {contains: file it, seat: ada}
    rounds:
      - say: I file it.
        call: {tool: create_work_item, args: {title: "Größe 😀"}}
      - submit: {summary: "filed as {{result.create_work_item.key}}"}
`

// said is an answer as an SDK read it.
type said struct {
	text, stop, tool, args string
	in, out                int64
}

// client asks through one SDK in one manner. history is either empty or the first answer's call and its result.
type client func(ctx context.Context, url, key string, history ...string) (said, error)

func clients() map[string]client {
	return map[string]client{
		"anthropic, plain":    anthropicClient(false),
		"anthropic, streamed": anthropicClient(true),
		"openai, plain":       openaiClient(false),
		"openai, streamed":    openaiClient(true),
	}
}

func anthropicClient(streamed bool) client {
	return func(ctx context.Context, url, key string, history ...string) (said, error) {
		service := anthropic.NewMessageService(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey(key),
			anthropicoption.WithMaxRetries(0))
		params := anthropic.MessageNewParams{
			Model: "m", MaxTokens: 100, System: []anthropic.TextBlockParam{{Text: "Your handle is `ada`."}},
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("please file it"))},
			Tools:    []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "create_work_item"}}},
		}
		if len(history) == 2 {
			params.Messages = append(params.Messages,
				anthropic.NewAssistantMessage(anthropic.NewToolUseBlock(history[0], map[string]any{}, "create_work_item")),
				anthropic.NewUserMessage(anthropic.NewToolResultBlock(history[0], history[1], false)))
		}
		var message anthropic.Message
		if streamed {
			stream := service.NewStreaming(ctx, params)
			for stream.Next() {
				if err := message.Accumulate(stream.Current()); err != nil {
					return said{}, err
				}
			}
			if err := stream.Err(); err != nil {
				return said{}, err
			}
		} else {
			answer, err := service.New(ctx, params)
			if err != nil {
				return said{}, err
			}
			message = *answer
		}
		s := said{stop: string(message.StopReason), in: message.Usage.InputTokens, out: message.Usage.OutputTokens}
		for _, block := range message.Content {
			s.text += block.Text
			if block.Type == "tool_use" {
				s.tool, s.args = block.Name, string(block.Input)
			}
		}
		return s, nil
	}
}

func openaiClient(streamed bool) client {
	return func(ctx context.Context, url, key string, history ...string) (said, error) {
		service := openai.NewChatCompletionService(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey(key),
			openaioption.WithMaxRetries(0))
		params := openai.ChatCompletionNewParams{
			Model: "m",
			Messages: []openai.ChatCompletionMessageParamUnion{
				openai.SystemMessage("Your handle is `ada`."), openai.UserMessage("please file it"),
			},
			Tools: []openai.ChatCompletionToolUnionParam{
				openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "create_work_item"}),
			},
		}
		if len(history) == 2 {
			var call openai.ChatCompletionMessageFunctionToolCallParam
			call.ID, call.Function.Name, call.Function.Arguments = history[0], "create_work_item", "{}"
			assistant := openai.ChatCompletionAssistantMessageParam{
				ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{OfFunction: &call}},
			}
			params.Messages = append(params.Messages,
				openai.ChatCompletionMessageParamUnion{OfAssistant: &assistant}, openai.ToolMessage(history[1], history[0]))
		}
		var completion openai.ChatCompletion
		if streamed {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
			stream := service.NewStreaming(ctx, params)
			var all openai.ChatCompletionAccumulator
			for stream.Next() {
				all.AddChunk(stream.Current())
			}
			if err := stream.Err(); err != nil {
				return said{}, err
			}
			completion = all.ChatCompletion
		} else {
			answer, err := service.New(ctx, params)
			if err != nil {
				return said{}, err
			}
			completion = *answer
		}
		choice := completion.Choices[0]
		s := said{
			text: choice.Message.Content + choice.Message.Refusal, stop: choice.FinishReason,
			in: completion.Usage.PromptTokens, out: completion.Usage.CompletionTokens,
		}
		if len(choice.Message.ToolCalls) > 0 {
			s.tool, s.args = choice.Message.ToolCalls[0].Function.Name, choice.Message.ToolCalls[0].Function.Arguments
		}
		return s, nil
	}
}

func start(t *testing.T, o modeldouble.Options) *modeldouble.Server {
	t.Helper()
	if o.Scenario == "" {
		o.Scenario = scenario
	}
	s, err := modeldouble.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestBothVendorsPlayTheSameScenario(t *testing.T) {
	t.Parallel()
	for name, ask := range clients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, modeldouble.Options{})
			first, err := ask(t.Context(), s.URL(), "key")
			require.NoError(t, err)
			require.Equal(t, "I file it.", first.text)
			require.Contains(t, []string{"tool_use", "tool_calls"}, first.stop)
			require.Equal(t, "create_work_item", first.tool)
			require.JSONEq(t, `{"title":"Größe 😀"}`, first.args)
			require.Positive(t, first.in)
			require.Positive(t, first.out)

			second, err := ask(t.Context(), s.URL(), "key", "call_1", `{"key":"OPS-1"}`)
			require.NoError(t, err)
			require.Equal(t, "submit_work", second.tool)
			require.JSONEq(t, `{"summary":"filed as OPS-1"}`, second.args)

			bills := s.Bills()
			require.Len(t, bills, 2)
			require.Equal(t, []int{0, 1}, []int{bills[0].Rounds, bills[1].Rounds})
			require.NotEqual(t, bills[0].Request, bills[1].Request)

			_, err = ask(t.Context(), s.URL(), "key")
			require.NoError(t, err)
			require.Equal(t, bills[0].Request, s.Bills()[2].Request, "the same question has the same digest")
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	failing := []modeldouble.Kind{
		modeldouble.RateLimited, modeldouble.Unauthorized, modeldouble.BadRequest, modeldouble.RequestTimeout,
		modeldouble.ServerError, modeldouble.Overloaded, modeldouble.Hang, modeldouble.Drop, modeldouble.Cut,
	}
	for name, ask := range clients() {
		for _, kind := range failing {
			t.Run(string(kind)+" fails once, "+name, func(t *testing.T) {
				t.Parallel()
				s := start(t, modeldouble.Options{})
				s.Inject(modeldouble.Fault{Kind: kind, RetryAfter: time.Second})
				ctx := t.Context()
				if kind == modeldouble.Hang {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
					defer cancel()
				}
				answer, err := ask(ctx, s.URL(), "key")
				// A cut may end at the border of an event, where a stream looks whole until its stop is missed.
				require.True(t, err != nil || answer.stop == "", "%+v", answer)
				require.Empty(t, s.Bills())

				_, err = ask(t.Context(), s.URL(), "key")
				require.NoError(t, err)
				require.Len(t, s.Bills(), 1)
				require.Equal(t, 2, s.Requests())
			})
		}
	}

	t.Run("spoiled answers are answers, and billed", func(t *testing.T) {
		t.Parallel()
		ask := openaiClient(true)
		s := start(t, modeldouble.Options{})
		s.Inject(modeldouble.Fault{Kind: modeldouble.BadArguments}, modeldouble.Fault{Kind: modeldouble.UnknownTool},
			modeldouble.Fault{Kind: modeldouble.Refusal}, modeldouble.Fault{Kind: modeldouble.MaxTokens},
			modeldouble.Fault{Kind: modeldouble.Empty})
		bad, err := ask(t.Context(), s.URL(), "key")
		require.NoError(t, err)
		require.False(t, json.Valid([]byte(bad.args)))
		unknown, err := ask(t.Context(), s.URL(), "key")
		require.NoError(t, err)
		require.Equal(t, "no_such_tool", unknown.tool)
		refusal, err := ask(t.Context(), s.URL(), "key")
		require.NoError(t, err)
		require.Equal(t, "content_filter", refusal.stop)
		length, err := ask(t.Context(), s.URL(), "key")
		require.NoError(t, err)
		require.Equal(t, "length", length.stop)
		empty, err := ask(t.Context(), s.URL(), "key")
		require.NoError(t, err)
		require.Equal(t, said{stop: "stop", in: empty.in, out: empty.out}, empty)
		require.Len(t, s.Bills(), 5)
	})

	t.Run("a full context is a stop reason at one vendor and an error at the other", func(t *testing.T) {
		t.Parallel()
		s := start(t, modeldouble.Options{})
		s.Inject(modeldouble.Fault{Kind: modeldouble.ContextFull, Times: 2})
		answer, err := anthropicClient(true)(t.Context(), s.URL(), "key")
		require.NoError(t, err)
		require.Equal(t, "model_context_window_exceeded", answer.stop)
		_, err = openaiClient(true)(t.Context(), s.URL(), "key")
		refused, ok := errors.AsType[*openai.Error](err)
		require.True(t, ok)
		require.Equal(t, "context_length_exceeded", refused.Code)
		require.Len(t, s.Bills(), 1)
	})

	t.Run("a fault may wait for a key or a round", func(t *testing.T) {
		t.Parallel()
		s := start(t, modeldouble.Options{Keys: []string{"a", "b"}})
		ask := anthropicClient(true)
		round := 1
		s.Inject(modeldouble.Fault{Kind: modeldouble.RateLimited, Key: "b"}, modeldouble.Fault{Kind: modeldouble.ServerError, Rounds: &round})
		_, err := ask(t.Context(), s.URL(), "a")
		require.NoError(t, err)
		_, err = ask(t.Context(), s.URL(), "b")
		require.ErrorContains(t, err, "429")
		_, err = ask(t.Context(), s.URL(), "a", "call_1", "{}")
		require.ErrorContains(t, err, "500")
		_, err = ask(t.Context(), s.URL(), "wrong")
		require.ErrorContains(t, err, "401")
	})
}
