// Package model asks language models, whoever makes them.
//
// A [Provider] speaks one dialect and answers an error that says what kind of failure it was; it tries once. A [Pool] gives it
// one of several keys and rests those that a vendor has refused. A [Chain] goes on to the next provider where the failure is
// the provider's and not the question's: a rate limit, a refused key, a timeout, a failing server. A refusal by the model is
// an answer, and never goes to the next one.
//
// What is asked is built from a journal, so it must be the same bytes each time: system and tools first and unchanged
// through a turn, which is also what vendors cache.
package model

import (
	"context"
	"encoding/json"
)

// Request is a question.
type Request struct {
	System string
	Tools  []Tool
	// Opening is the first user message.
	Opening string
	// Rounds are the answers so far, each with what followed it.
	Rounds []Round
	// Seat is who asks; only scripts look at it.
	Seat string
}

// Tool is a tool on offer, by its canonical name.
type Tool struct {
	Name string
	// Wire is the name that every vendor takes; empty where none was given, and one is made then.
	Wire        string
	Description string
	// Schema is a JSON Schema of the arguments.
	Schema json.RawMessage
	// Schemas take its place, by dialect, where a vendor would refuse it.
	Schemas map[string]json.RawMessage
	// Refused says, by dialect, why a vendor cannot be shown the tool at all: it is not offered there.
	Refused map[string]string
}

// offeredIn answers the tools that can be shown in a dialect, each with the schema for it.
func offeredIn(dialect string, tools []Tool) []Tool {
	offered := make([]Tool, 0, len(tools))
	for _, tool := range tools {
		if tool.Refused[dialect] != "" {
			continue
		}
		if schema, other := tool.Schemas[dialect]; other {
			tool.Schema = schema
		}
		offered = append(offered, tool)
	}
	return offered
}

// members answers a schema's outermost members, each as it was written: numbers keep their digits, arguments their order.
func members(schema json.RawMessage) map[string]any {
	var raw map[string]json.RawMessage
	if json.Unmarshal(schema, &raw) != nil {
		return nil
	}
	fields := make(map[string]any, len(raw))
	for name, value := range raw {
		fields[name] = value
	}
	return fields
}

// Round is an answer and what came back.
type Round struct {
	Text  string
	Calls []Call
	// Raw is the answer in the dialect it was given in; used when the same dialect is asked again.
	Raw     []byte
	Dialect string
	// Results are one a call, in order.
	Results []Result
	// Note is a user message that follows; empty for none.
	Note string
}

// Call is a tool call by its canonical name.
type Call struct {
	ID   string
	Tool string
	// Args are as the model wrote them: JSON, or what was meant to be.
	Args string
}

// Result is what a call gave.
type Result struct {
	Text   string
	Failed bool
}

// Answer is what a model said.
type Answer struct {
	// Provider is the key in the company document.
	Provider string
	Model    string
	Text     string
	Calls    []Call
	// Stop is one of journal's Stop constants.
	Stop string
	// Raw and Dialect are as in Round.
	Raw          []byte
	Dialect      string
	InputTokens  int64
	CachedTokens int64
	OutputTokens int64
	// Scripted: a script answered, no model.
	Scripted bool
}

// Asker answers questions.
type Asker interface {
	Ask(ctx context.Context, r Request) (Answer, error)
}

// Provider asks one vendor with one key, once.
type Provider interface {
	Ask(ctx context.Context, key string, r Request) (Answer, error)
}
