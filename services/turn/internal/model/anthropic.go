package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

const dialectAnthropic = "anthropic"

// Anthropic asks through the vendor's client, streaming, so that a dead connection is seen and long answers are allowed.
type Anthropic struct {
	Model string
	// BaseURL is empty for the vendor's own.
	BaseURL string
	// MaxTokens of an answer.
	MaxTokens int64
	Timeout   time.Duration
}

// Ask implements [Provider].
func (a Anthropic) Ask(ctx context.Context, key string, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	// The service is made without the client, which would read credentials from the environment.
	options := []option.RequestOption{
		option.WithEnvironmentProduction(), option.WithHTTPClient(bounded()), option.WithAPIKey(key), option.WithMaxRetries(0),
	}
	if a.BaseURL != "" {
		options = append(options, option.WithBaseURL(a.BaseURL))
	}
	service := anthropic.NewMessageService(options...)
	stream := service.NewStreaming(ctx, a.params(r))
	defer stream.Close()
	var (
		message anthropic.Message
		args    = map[int64]*strings.Builder{}
		whole   bool
		size    int
	)
	for stream.Next() {
		event := stream.Current()
		size += anthropicSize(event)
		if size > maxAnswerBytes || len(message.Content) > maxAnswerCalls {
			answer := a.answer(r, message, args)
			answer.Stop = journal.StopLength
			return answer, nil
		}
		whole = whole || event.Type == "message_stop"
		if event.Type == "content_block_delta" && event.Delta.Type == "input_json_delta" {
			if args[event.Index] == nil {
				args[event.Index] = &strings.Builder{}
			}
			args[event.Index].WriteString(event.Delta.PartialJSON)
		}
		// It objects to arguments that are no JSON; those are kept as they came, in args.
		if err := message.Accumulate(event); err != nil && event.Type != "content_block_stop" {
			return Answer{}, &Failure{Kind: Broken, Message: "the stream makes no sense"}
		}
	}
	if err := stream.Err(); err != nil {
		return Answer{}, anthropicFailure(err)
	}
	if !whole {
		return Answer{}, &Failure{Kind: Broken, Message: "the answer broke off"}
	}
	return a.answer(r, message, args), nil
}

// anthropicSize answers how much an event adds to an answer.
func anthropicSize(event anthropic.MessageStreamEventUnion) int {
	start, delta := event.ContentBlock, event.Delta
	return len(start.Text) + len(start.Thinking) + len(start.ID) + len(start.Name) +
		len(delta.Text) + len(delta.PartialJSON) + len(delta.Thinking) + len(delta.Signature)
}

func (a Anthropic) params(r Request) anthropic.MessageNewParams {
	params := anthropic.MessageNewParams{
		Model: a.Model, MaxTokens: a.MaxTokens,
		System: []anthropic.TextBlockParam{{Text: r.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}},
	}
	known, offered := namesOf(r.Tools), offeredIn(dialectAnthropic, r.Tools)
	for i, tool := range offered {
		t := anthropic.ToolParam{
			Name: known.toWire(tool.Name), Description: anthropic.String(tool.Description), InputSchema: anthropicSchema(tool.Schema),
		}
		if i == len(offered)-1 {
			t.CacheControl = anthropic.NewCacheControlEphemeralParam()
		}
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &t})
	}
	params.Messages = append(params.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(r.Opening)))
	for _, round := range r.Rounds {
		if m, some := anthropicAssistant(round, known); some {
			params.Messages = append(params.Messages, m)
		}
		var back []anthropic.ContentBlockParamUnion
		for i, result := range round.Results {
			back = append(back, anthropic.NewToolResultBlock(round.Calls[i].ID, result.Text, result.Failed))
		}
		if round.Note != "" {
			back = append(back, anthropic.NewTextBlock(round.Note))
		}
		if len(back) > 0 {
			params.Messages = append(params.Messages, anthropic.NewUserMessage(back...))
		}
	}
	return params
}

func anthropicSchema(schema json.RawMessage) (s anthropic.ToolInputSchemaParam) {
	fields := members(schema)
	delete(fields, "type") // the client says so itself
	s.ExtraFields = fields
	return s
}

func anthropicAssistant(round Round, known names) (anthropic.MessageParam, bool) {
	var m anthropic.MessageParam
	if round.Dialect == dialectAnthropic && len(round.Raw) > 0 && json.Unmarshal(round.Raw, &m) == nil {
		return m, m.OfAssistant != nil && len(m.OfAssistant.Content) > 0
	}
	var blocks []anthropic.ContentBlockParamUnion
	if round.Text != "" {
		blocks = append(blocks, anthropic.NewTextBlock(round.Text))
	}
	for _, call := range round.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(call.ID, object(call.Args), known.toWire(call.Tool)))
	}
	return anthropic.NewAssistantMessage(blocks...), len(blocks) > 0
}

// object answers arguments as a JSON object; broken ones cannot be sent back and become an empty one, as the result beside
// it says what was wrong.
func object(args string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &fields) != nil || fields == nil {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(args)
}

func (a Anthropic) answer(r Request, message anthropic.Message, args map[int64]*strings.Builder) Answer {
	answer := Answer{
		Model: message.Model, Stop: journal.StopEnd, Dialect: dialectAnthropic, OutputTokens: message.Usage.OutputTokens,
		CachedTokens: message.Usage.CacheReadInputTokens,
		InputTokens:  message.Usage.InputTokens + message.Usage.CacheReadInputTokens + message.Usage.CacheCreationInputTokens,
	}
	offered, plain := namesOf(r.Tools), true
	for i, block := range message.Content {
		switch block.Type {
		case "text":
			answer.Text += block.Text
		case "tool_use":
			written := string(block.Input)
			if parts := args[int64(i)]; parts != nil && parts.Len() > 0 {
				written = parts.String()
			}
			plain = plain && json.Valid([]byte(written))
			answer.Calls = append(answer.Calls, Call{ID: block.ID, Tool: offered.fromWire(block.Name), Args: written})
		}
	}
	switch message.StopReason {
	case anthropic.StopReasonMaxTokens:
		answer.Stop = journal.StopLength
	case anthropic.StopReasonRefusal:
		answer.Stop = journal.StopRefusal
	case anthropic.StopReasonModelContextWindowExceeded:
		answer.Stop = journal.StopContext
	default:
		if len(answer.Calls) > 0 {
			answer.Stop = journal.StopCalls
		}
	}
	if plain {
		// Kept for what our own form does not hold, such as signed thoughts.
		if raw, err := json.Marshal(message.ToParam()); err == nil {
			answer.Raw = raw
		}
	}
	return answer
}

func anthropicFailure(err error) *Failure {
	refused, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		return fromTransport(err)
	}
	f := &Failure{Kind: kindOf(refused.StatusCode), Status: refused.StatusCode, Message: refused.Message}
	f.RetryAfter = retryAfter(refused.Response, time.Now())
	switch {
	case refused.StatusCode == http.StatusOK:
		// An error event in a stream that had begun.
		f.Kind = Broken
	case f.Kind == Rejected && strings.Contains(refused.Message, "prompt is too long"):
		f.Kind = ContextFull
	}
	return f
}
