package modeldouble

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// openaiWire is chat completions.
type openaiWire struct{}

type openaiCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openaiRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []openaiCall    `json:"tool_calls"`
	} `json:"messages"`
}

func (openaiWire) key(r *http.Request) string { return bearer(r) }

func bearer(r *http.Request) string {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

// checkToolName is a rule of both vendors.
func checkToolName(name string) error {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(name) {
		return fmt.Errorf("tools: the name %q does not match '^[a-zA-Z0-9_-]{1,64}$'", name)
	}
	return nil
}

func (openaiWire) parse(body []byte) (Request, error) {
	var in openaiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	if len(in.Messages) == 0 {
		return Request{}, errors.New("messages: at least one message is required")
	}
	r := Request{Vendor: "openai", Model: in.Model, Stream: in.Stream}
	for _, tool := range in.Tools {
		if err := checkToolName(tool.Function.Name); err != nil {
			return Request{}, err
		}
		r.Tools = append(r.Tools, tool.Function.Name)
	}
	open := map[string]bool{}
	for i, m := range in.Messages {
		text, err := anthropicText(m.Content)
		if err != nil && string(m.Content) != "null" {
			return Request{}, fmt.Errorf("messages[%d].content: %w", i, err)
		}
		message := Message{Role: m.Role, Text: text, CallID: m.ToolCallID}
		switch m.Role {
		case "system", "developer":
			r.System += text
			continue
		case "tool":
			if !open[m.ToolCallID] {
				return Request{}, fmt.Errorf("messages[%d]: no tool call has the id %q", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		case "assistant", "user":
			if len(open) > 0 {
				return Request{}, errors.New("an assistant message with 'tool_calls' must be followed by tool messages for each of them")
			}
			for _, c := range m.ToolCalls {
				open[c.ID] = true
				message.Calls = append(message.Calls, Call{ID: c.ID, Tool: c.Function.Name, Args: c.Function.Arguments})
			}
		}
		r.Messages = append(r.Messages, message)
	}
	return r, nil
}

func (openaiWire) usage(r Request, a Answer) map[string]any {
	in := tokens(r.System)
	for _, m := range r.Messages {
		in += tokens(m.Text)
	}
	out := tokens(a.Text)
	for _, c := range a.Calls {
		out += tokens(c.Args)
	}
	return map[string]any{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details": map[string]any{"cached_tokens": tokens(r.System)},
	}
}

// openaiStop answers the finish reason. A full context has none of its own: the vendor answers 400.
func openaiStop(stop string) string {
	switch stop {
	case "tool_calls":
		return "tool_calls"
	case "length":
		return "length"
	case "refusal":
		return "content_filter"
	default:
		return "stop"
	}
}

func openaiCalls(a Answer, indexed bool) []openaiCall {
	calls := make([]openaiCall, 0, len(a.Calls))
	for i, c := range a.Calls {
		call := openaiCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Tool, c.Args
		if indexed {
			call.Index = &i
		}
		calls = append(calls, call)
	}
	return calls
}

func (v openaiWire) write(w http.ResponseWriter, r Request, a Answer, number int) error {
	if a.Stop == "context" {
		v.fail(w, http.StatusBadRequest, "context_length_exceeded", "This model's maximum context length is exceeded.")
		return errUnbilled
	}
	message := map[string]any{"role": "assistant", "content": a.Text, "refusal": nil}
	if a.Stop == "refusal" {
		message["content"], message["refusal"] = nil, a.Text
	}
	if calls := openaiCalls(a, false); len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", number), "object": "chat.completion", "created": 1, "model": r.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": openaiStop(a.Stop), "logprobs": nil}},
		"usage":   v.usage(r, a),
	})
}

func (v openaiWire) stream(e *events, r Request, a Answer, number int) error {
	if a.Stop == "context" {
		v.fail(e.w, http.StatusBadRequest, "context_length_exceeded", "This model's maximum context length is exceeded.")
		return errUnbilled
	}
	chunk := func(delta map[string]any, finish any) error {
		return e.send("", map[string]any{
			"id": fmt.Sprintf("chatcmpl-%d", number), "object": "chat.completion.chunk", "created": 1, "model": r.Model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": nil}},
		})
	}
	if err := chunk(map[string]any{"role": "assistant", "content": ""}, nil); err != nil {
		return err
	}
	field := "content"
	if a.Stop == "refusal" {
		field = "refusal"
	}
	for _, part := range halves(a.Text) {
		if err := chunk(map[string]any{field: part}, nil); err != nil {
			return err
		}
	}
	for _, call := range openaiCalls(a, true) {
		whole := call.Function.Arguments
		call.Function.Arguments = ""
		if err := chunk(map[string]any{"tool_calls": []openaiCall{call}}, nil); err != nil {
			return err
		}
		for _, part := range halves(whole) {
			next := openaiCall{Index: call.Index}
			next.Function.Arguments = part
			if err := chunk(map[string]any{"tool_calls": []openaiCall{next}}, nil); err != nil {
				return err
			}
		}
	}
	if err := chunk(map[string]any{}, openaiStop(a.Stop)); err != nil {
		return err
	}
	if err := e.send("", map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", number), "object": "chat.completion.chunk", "created": 1, "model": r.Model,
		"choices": []any{}, "usage": v.usage(r, a),
	}); err != nil {
		return err
	}
	return e.raw("", "[DONE]")
}

func (openaiWire) fail(w http.ResponseWriter, status int, kind, message string) {
	if status == statusOverloaded {
		status = http.StatusServiceUnavailable
	}
	_ = writeJSON(w, status, map[string]any{
		"error": map[string]any{"message": message, "type": kind, "param": nil, "code": kind},
	})
}
