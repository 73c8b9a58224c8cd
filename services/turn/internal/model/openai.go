package model

import (
	"context"
	"errors"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

const dialectOpenAI = "openai"

// OpenAI asks through the vendor's client for chat completions, streaming. With a base URL it asks whoever is compatible.
type OpenAI struct {
	Model string
	// BaseURL ends before `/chat/completions`; empty for the vendor's own.
	BaseURL string
	// MaxTokens of an answer.
	MaxTokens int64
	Timeout   time.Duration
	// Compatible servers know the older name of the output cap.
	Compatible bool
}

// Ask implements [Provider].
func (o OpenAI) Ask(ctx context.Context, key string, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	// The service is made without the client, which would read credentials from the environment.
	options := []option.RequestOption{option.WithHTTPClient(bounded()), option.WithAPIKey(key), option.WithMaxRetries(0)}
	if o.BaseURL != "" {
		options = append(options, option.WithBaseURL(o.BaseURL))
	} else {
		options = append(options, option.WithEnvironmentProduction())
	}
	service := openai.NewChatCompletionService(options...)
	stream := service.NewStreaming(ctx, o.params(r))
	defer stream.Close()
	var (
		all  openai.ChatCompletionAccumulator
		size int
	)
	for stream.Next() {
		chunk := stream.Current()
		more, sound := openaiSize(chunk)
		if !sound || !all.AddChunk(chunk) {
			return Answer{}, &Failure{Kind: Broken, Message: "the stream makes no sense"}
		}
		if size += more; size > maxAnswerBytes && len(all.Choices) > 0 {
			answer := o.answer(r, all.ChatCompletion)
			answer.Stop = journal.StopLength
			return answer, nil
		}
	}
	if err := stream.Err(); err != nil {
		return Answer{}, openaiFailure(err)
	}
	if len(all.Choices) == 0 || all.Choices[0].FinishReason == "" {
		return Answer{}, &Failure{Kind: Broken, Message: "the answer broke off"}
	}
	return o.answer(r, all.ChatCompletion), nil
}

// openaiSize answers how much a chunk adds to an answer. Places are checked here, as the accumulator makes room up to any that it
// is told.
func openaiSize(chunk openai.ChatCompletionChunk) (size int, sound bool) {
	for _, choice := range chunk.Choices {
		if choice.Index != 0 {
			return 0, false // only one was asked for
		}
		size += len(choice.Delta.Content) + len(choice.Delta.Refusal)
		for _, call := range choice.Delta.ToolCalls {
			if call.Index < 0 || call.Index >= maxAnswerCalls {
				return 0, false
			}
			size += len(call.ID) + len(call.Function.Name) + len(call.Function.Arguments)
		}
	}
	return size, true
}

func (o OpenAI) params(r Request) openai.ChatCompletionNewParams {
	params := openai.ChatCompletionNewParams{Model: o.Model}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	if o.Compatible {
		params.MaxTokens = openai.Int(o.MaxTokens)
	} else {
		params.MaxCompletionTokens = openai.Int(o.MaxTokens)
	}
	known := namesOf(r.Tools)
	for _, tool := range offeredIn(dialectOpenAI, r.Tools) {
		parameters := shared.FunctionParameters(members(tool.Schema))
		if parameters == nil {
			parameters = shared.FunctionParameters{"type": "object", "properties": map[string]any{}}
		}
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: known.toWire(tool.Name), Description: openai.String(tool.Description), Parameters: parameters,
		}))
	}
	params.Messages = append(params.Messages, openai.SystemMessage(r.System), openai.UserMessage(r.Opening))
	for _, round := range r.Rounds {
		if round.Text != "" || len(round.Calls) > 0 {
			params.Messages = append(params.Messages, openaiAssistant(round, known))
		}
		for i, result := range round.Results {
			params.Messages = append(params.Messages, openai.ToolMessage(result.Text, round.Calls[i].ID))
		}
		if round.Note != "" {
			params.Messages = append(params.Messages, openai.UserMessage(round.Note))
		}
	}
	return params
}

func openaiAssistant(round Round, known names) openai.ChatCompletionMessageParamUnion {
	var m openai.ChatCompletionAssistantMessageParam
	if round.Text != "" {
		m.Content.OfString = openai.String(round.Text)
	}
	for _, call := range round.Calls {
		var c openai.ChatCompletionMessageFunctionToolCallParam
		c.ID, c.Function.Name, c.Function.Arguments = call.ID, known.toWire(call.Tool), string(object(call.Args))
		m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &c})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &m}
}

func (o OpenAI) answer(r Request, completion openai.ChatCompletion) Answer {
	choice := completion.Choices[0]
	answer := Answer{
		Model: completion.Model, Text: choice.Message.Content, Stop: journal.StopEnd, Dialect: dialectOpenAI,
		InputTokens: completion.Usage.PromptTokens, OutputTokens: completion.Usage.CompletionTokens,
		CachedTokens: completion.Usage.PromptTokensDetails.CachedTokens,
	}
	offered := namesOf(r.Tools)
	for _, call := range choice.Message.ToolCalls {
		answer.Calls = append(answer.Calls, Call{
			ID: call.ID, Tool: offered.fromWire(call.Function.Name), Args: call.Function.Arguments,
		})
	}
	switch {
	case choice.Message.Refusal != "" || choice.FinishReason == "content_filter":
		answer.Stop = journal.StopRefusal
		if answer.Text == "" {
			answer.Text = choice.Message.Refusal
		}
	case choice.FinishReason == "length":
		answer.Stop = journal.StopLength
	case len(answer.Calls) > 0:
		answer.Stop = journal.StopCalls
	}
	return answer
}

func openaiFailure(err error) *Failure {
	refused, ok := errors.AsType[*openai.Error](err)
	if !ok {
		return fromTransport(err)
	}
	f := &Failure{Kind: kindOf(refused.StatusCode), Status: refused.StatusCode, Message: refused.Message}
	f.RetryAfter = retryAfter(refused.Response, time.Now())
	if refused.Code == "context_length_exceeded" {
		f.Kind = ContextFull
	}
	return f
}
