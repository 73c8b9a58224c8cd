package modeldouble

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// anthropicWire is the Messages API.
type anthropicWire struct{}

type anthropicRequest struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	System    json.RawMessage `json:"system"`
	Stream    bool            `json:"stream"`
	Tools     []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
}

// key reads both headers that the vendor takes: its client sends one or the other, depending on its version.
func (anthropicWire) key(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return bearer(r)
}

func (anthropicWire) parse(body []byte) (Request, error) {
	var in anthropicRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	if in.MaxTokens <= 0 {
		return Request{}, errors.New("max_tokens: field required")
	}
	if len(in.Messages) == 0 {
		return Request{}, errors.New("messages: at least one message is required")
	}
	system, err := anthropicText(in.System)
	if err != nil {
		return Request{}, fmt.Errorf("system: %w", err)
	}
	r := Request{Vendor: "anthropic", Model: in.Model, System: system, Stream: in.Stream}
	for _, tool := range in.Tools {
		if err := checkToolName(tool.Name); err != nil {
			return Request{}, err
		}
		r.Tools = append(r.Tools, tool.Name)
	}
	open := map[string]bool{}
	for i, m := range in.Messages {
		if err := r.addAnthropic(m.Role, m.Content, open); err != nil {
			return Request{}, fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if len(open) > 0 {
		return Request{}, errors.New("messages: `tool_use` ids were found without `tool_result` blocks immediately after")
	}
	return r, nil
}

// addAnthropic adds a message; open holds the calls that still want a result, as the vendor checks it.
func (r *Request) addAnthropic(role string, content json.RawMessage, open map[string]bool) error {
	blocks, err := anthropicBlocks(content)
	if err != nil {
		return err
	}
	m := Message{Role: role}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			m.Text += b.Text
		case "tool_use":
			open[b.ID] = true
			m.Calls = append(m.Calls, Call{ID: b.ID, Tool: b.Name, Args: string(b.Input)})
		case "tool_result":
			if !open[b.ToolUseID] {
				return fmt.Errorf("unexpected `tool_use_id` found in `tool_result` blocks: %s", b.ToolUseID)
			}
			delete(open, b.ToolUseID)
			text, err := anthropicText(b.Content)
			if err != nil {
				return err
			}
			r.Messages = append(r.Messages, Message{Role: "tool", CallID: b.ToolUseID, Text: text, Failed: b.IsError})
		}
	}
	if m.Text != "" || len(m.Calls) > 0 || role == "assistant" {
		r.Messages = append(r.Messages, m)
	}
	return nil
}

func anthropicBlocks(content json.RawMessage) ([]anthropicBlock, error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []anthropicBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, err
	}
	return blocks, nil
}

func anthropicText(content json.RawMessage) (string, error) {
	if len(content) == 0 {
		return "", nil
	}
	blocks, err := anthropicBlocks(content)
	if err != nil {
		return "", err
	}
	texts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n"), nil
}

func (anthropicWire) usage(r Request, a Answer) map[string]any {
	in := tokens(r.System)
	for _, m := range r.Messages {
		in += tokens(m.Text)
	}
	out := tokens(a.Text)
	for _, c := range a.Calls {
		out += tokens(c.Args)
	}
	return map[string]any{
		"input_tokens": in, "output_tokens": out, "cache_read_input_tokens": tokens(r.System), "cache_creation_input_tokens": 0,
	}
}

func anthropicStop(stop string) string {
	switch stop {
	case "tool_calls":
		return "tool_use"
	case "length":
		return "max_tokens"
	case "refusal":
		return "refusal"
	case "context":
		return "model_context_window_exceeded"
	default:
		return "end_turn"
	}
}

func (v anthropicWire) message(r Request, a Answer, number int) map[string]any {
	content := []map[string]any{}
	if a.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": a.Text})
	}
	for _, c := range a.Calls {
		input := json.RawMessage(c.Args)
		if !json.Valid(input) {
			input = json.RawMessage(`{}`)
		}
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": input})
	}
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", number), "type": "message", "role": "assistant", "model": r.Model, "content": content,
		"stop_reason": anthropicStop(a.Stop), "stop_sequence": nil, "usage": v.usage(r, a),
	}
}

func (v anthropicWire) write(w http.ResponseWriter, r Request, a Answer, number int) error {
	return writeJSON(w, http.StatusOK, v.message(r, a, number))
}

// stream writes the events; the arguments go out as they are, broken ones too, as a vendor's partial JSON may be.
func (v anthropicWire) stream(e *events, r Request, a Answer, number int) error {
	start := v.message(r, Answer{}, number)
	start["stop_reason"] = nil
	if err := e.send("message_start", map[string]any{"type": "message_start", "message": start}); err != nil {
		return err
	}
	if err := e.send("ping", map[string]any{"type": "ping"}); err != nil {
		return err
	}
	index := 0
	if a.Text != "" {
		block := map[string]any{"type": "text", "text": ""}
		if err := v.block(e, index, block, "text_delta", "text", a.Text); err != nil {
			return err
		}
		index++
	}
	for _, c := range a.Calls {
		block := map[string]any{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": map[string]any{}}
		if err := v.block(e, index, block, "input_json_delta", "partial_json", c.Args); err != nil {
			return err
		}
		index++
	}
	usage := v.usage(r, a)
	if err := e.send("message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": anthropicStop(a.Stop), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": usage["output_tokens"]},
	}); err != nil {
		return err
	}
	return e.send("message_stop", map[string]any{"type": "message_stop"})
}

func (anthropicWire) block(e *events, index int, block map[string]any, delta, field, text string) error {
	if err := e.send("content_block_start", map[string]any{
		"type": "content_block_start", "index": index, "content_block": block,
	}); err != nil {
		return err
	}
	for _, part := range halves(text) {
		if err := e.send("content_block_delta", map[string]any{
			"type": "content_block_delta", "index": index, "delta": map[string]any{"type": delta, field: part},
		}); err != nil {
			return err
		}
	}
	return e.send("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
}

func (anthropicWire) fail(w http.ResponseWriter, status int, kind, message string) {
	_ = writeJSON(w, status, map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
}
