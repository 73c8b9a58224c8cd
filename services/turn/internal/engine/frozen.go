package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/turn/internal/delivery"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/prompt"
)

// submitWork is the tool that ends a turn.
const submitWork = "submit_work"

const (
	defaultMaxRounds   = 24
	defaultToolTimeout = 60 * time.Second
	defaultMCPTimeout  = 300 * time.Second
	defaultIdentical   = 3
)

// frozen is what a turn goes by from its start to its end, whatever changes meanwhile. It is stored with the turn, once for
// all turns that share it.
type frozen struct {
	System         string       `json:"system"`
	Tools          []frozenTool `json:"tools"`
	MaxRounds      int          `json:"max_rounds"`
	IdenticalCalls int          `json:"identical_calls"`
	DisplayName    string       `json:"display_name"`
	// Skills are the tool skills that fit the tools, by key.
	Skills []frozenSkill `json:"skills,omitempty"`
	// Summaries is nil where results are shown whole.
	Summaries *frozenSummaries `json:"summaries,omitempty"`
}

type frozenTool struct {
	Name string `json:"name"`
	// Wire, Schemas and Refused are the registry's word on how models are shown the tool; turns that began before it had one lack them.
	Wire        string                     `json:"wire,omitempty"`
	Schemas     map[string]json.RawMessage `json:"schemas,omitempty"`
	Refused     map[string]string          `json:"refused,omitempty"`
	Description string                     `json:"description"`
	Schema      json.RawMessage            `json:"schema"`
	Source      string                     `json:"source"`
	Delivers    string                     `json:"delivers,omitempty"`
	Surfaces    []string                   `json:"surfaces,omitempty"`
	ReadOnly    *bool                      `json:"read_only,omitempty"`
	Idempotent  *bool                      `json:"idempotent,omitempty"`
	OpenWorld   *bool                      `json:"open_world,omitempty"`
	EngineLocal bool                       `json:"engine_local,omitempty"`
	Timeout     time.Duration              `json:"timeout"`
}

// freeze asks the registry for the seat's catalogue and writes the prompt. dialects are those that the seat's models are asked in.
func (e *Engine) freeze(ctx context.Context, c *companyv1.Company, person *companyv1.Seat, dialects []string) (frozen, error) {
	listed, err := e.catalogues.of(ctx, e.Tools, person.GetHandle())
	if err != nil {
		return frozen{}, fault.New(fault.Unavailable, "The tool registry does not answer.").WithReason(reasonCannotBegin).WithCause(rpc.FromError(err))
	}
	var missing []string
	for _, m := range listed.GetMissingServers() {
		missing = append(missing, fmt.Sprintf("the tools of `%s`: %s", m.GetServer(), m.GetReason()))
	}
	missing = append(missing, unshown(listed.GetTools(), dialects)...)
	f := frozen{
		MaxRounds: int(c.GetTurnEngine().GetMaxToolRounds()), IdenticalCalls: int(c.GetLoopGuardIdenticalCalls()),
		DisplayName: person.GetName(), Summaries: freezeSummaries(c),
	}
	if f.MaxRounds <= 0 {
		f.MaxRounds = defaultMaxRounds
	}
	if f.IdenticalCalls <= 0 {
		f.IdenticalCalls = defaultIdentical
	}
	for _, tool := range listed.GetTools() {
		if tool.GetQuarantine() == "" {
			f.Tools = append(f.Tools, freezeTool(c, tool))
		}
	}
	if _, there := f.tool(submitWork); !there {
		return frozen{}, fault.New(fault.Unavailable, "The tool registry lists no `%s`, so no turn could end.", submitWork).
			WithReason(reasonCannotBegin)
	}
	if f.Skills, err = e.freezeSkills(ctx, c, person, f); err != nil {
		return frozen{}, err
	}
	f.System = prompt.System(c, person, missing, f.told())
	return f, nil
}

func freezeTool(c *companyv1.Company, tool *toolregistryv1.Tool) frozenTool {
	t := frozenTool{
		Name: tool.GetName(), Description: tool.GetDescription(), Schema: json.RawMessage(tool.GetInputSchemaJson()),
		Source: tool.GetSource(), Delivers: tool.GetDelivers(), Surfaces: tool.GetSurfaces(), EngineLocal: tool.GetEngineLocal(),
		Timeout: defaultToolTimeout,
	}
	t.Wire, t.Refused = tool.GetWireName(), tool.GetProviderQuarantine()
	for provider, schema := range tool.GetProviderSchemas() {
		if t.Schemas == nil {
			t.Schemas = map[string]json.RawMessage{}
		}
		t.Schemas[provider] = json.RawMessage(schema)
	}
	if !json.Valid(t.Schema) {
		t.Schema = json.RawMessage(`{"type":"object"}`)
	}
	if a := tool.GetAnnotations(); a != nil {
		t.ReadOnly, t.Idempotent, t.OpenWorld = a.ReadOnly, a.Idempotent, a.OpenWorld
	}
	if seconds := c.GetTurnEngine().GetToolTimeoutSeconds(); seconds > 0 {
		t.Timeout = time.Duration(seconds) * time.Second
	}
	if server, external := strings.CutPrefix(t.Source, "mcp:"); external {
		t.Timeout = defaultMCPTimeout
		for _, declared := range c.GetMcpServers() {
			if declared.GetName() != server {
				continue
			}
			// By the tool's raw name, or with the server's prefix.
			own := declared.GetToolTimeoutSeconds()
			raw := strings.TrimPrefix(t.Name, declared.GetToolPrefix())
			if seconds := cmp.Or(own[t.Name], own[raw], declared.GetRequestTimeoutSeconds()); seconds > 0 {
				t.Timeout = time.Duration(seconds) * time.Second
			}
		}
	}
	return t
}

// unshown answers the tools that none of the seat's models can be shown, with why: the seat should know what it lacks.
func unshown(tools []*toolregistryv1.Tool, dialects []string) []string {
	var lines []string
	for _, tool := range tools {
		refused := tool.GetProviderQuarantine()
		everywhere := len(dialects) > 0
		for _, dialect := range dialects {
			everywhere = everywhere && refused[dialect] != ""
		}
		if everywhere && tool.GetQuarantine() == "" {
			lines = append(lines, fmt.Sprintf("the tool `%s`: %s", tool.GetName(), refused[dialects[0]]))
		}
	}
	return lines
}

// leftOut says once a turn which tools a model of the seat's is not shown.
func (f frozen) leftOut(log *slog.Logger, dialects []string) {
	for _, dialect := range dialects {
		var tools []string
		for _, t := range f.Tools {
			if why := t.Refused[dialect]; why != "" {
				tools = append(tools, t.Name+": "+why)
			}
		}
		if len(tools) > 0 {
			log.Warn("tools are not shown to a model provider", "provider", dialect, "tools", tools)
		}
	}
}

func (f frozen) tool(name string) (frozenTool, bool) {
	for _, t := range f.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return frozenTool{}, false
}

func (f frozen) limits() journal.Limits {
	return journal.Limits{MaxRounds: f.MaxRounds, IdenticalCalls: f.IdenticalCalls}
}

func (f frozen) offered() []model.Tool {
	tools := make([]model.Tool, len(f.Tools))
	for i, t := range f.Tools {
		tools[i] = model.Tool{
			Name: t.Name, Wire: t.Wire, Description: t.Description, Schema: t.Schema, Schemas: t.Schemas, Refused: t.Refused,
		}
	}
	return tools
}

func (f frozen) reach() []delivery.Tool {
	tools := make([]delivery.Tool, 0, len(f.Tools))
	for _, t := range f.Tools {
		if !t.EngineLocal {
			tools = append(tools, t.reach())
		}
	}
	return tools
}

func (t frozenTool) reach() delivery.Tool {
	return delivery.Tool{Name: t.Name, Source: t.Source, Delivers: t.Delivers, Surfaces: t.Surfaces, ReadOnly: t.ReadOnly}
}

func (t frozenTool) external() bool { return strings.HasPrefix(t.Source, "mcp:") }

func (t frozenTool) readOnly() bool { return t.ReadOnly != nil && *t.ReadOnly }

// repeatable reports whether a call in doubt may simply be made again: a first-party write has its operation id, a server's
// tool must have said so.
func (t frozenTool) repeatable() bool {
	return !t.external() || t.readOnly() || t.Idempotent != nil && *t.Idempotent
}

// outside reports whether a call reaches what no operation id protects, or somebody.
func (t frozenTool) outside() bool {
	if t.EngineLocal || t.readOnly() {
		return false
	}
	return t.external() || t.OpenWorld == nil || *t.OpenWorld
}
