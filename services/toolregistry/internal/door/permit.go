package door

import (
	"context"
	"slices"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// permit decides whether this caller may call this tool now.
func (d *Door) permit(_ context.Context, p *passage) error {
	switch {
	case p.tool.EngineLocal:
		return fault.New(fault.Forbidden, "`%s` is run by the turn engine itself and cannot be called through the registry.", p.tool.Name).
			WithReason("ENGINE_LOCAL")
	case !slices.Contains(p.tool.Audiences, p.caller.audience) && p.caller.audience == catalogue.Operator:
		return fault.New(fault.Forbidden, "`%s` is a seat's tool; an operator cannot call it.", p.tool.Name)
	case !slices.Contains(p.tool.Audiences, p.caller.audience):
		return fault.New(fault.Forbidden, "`%s` is an operator's tool; a seat cannot call it.", p.tool.Name)
	case p.tool.Quarantine != "":
		return fault.New(fault.Unavailable, "`%s` of %s cannot be called: %s.", p.tool.Name, p.tool.Source, p.tool.Quarantine).
			WithReason("QUARANTINED")
	case p.tool.Change == surface.Held:
		return fault.New(fault.Forbidden, "`%s` of %s is not what it was when it was first seen, and waits until an operator has accepted its new "+
			"definition (`bullpen tools changes`). Do without it for now.", p.tool.Name, p.tool.Source).WithReason("TOOL_HELD")
	default:
		return nil
	}
}

// offered refuses a tool that the caller's turn was not given, once nothing else has.
func (d *Door) offered(_ context.Context, p *passage) error {
	if !p.request.NotOffered {
		return nil
	}
	return fault.New(fault.Forbidden, "`%s` was not among the tools of this turn when it began. It can be called from the next turn on; use the tools you "+
		"were given.", p.record.Tool).WithReason("NOT_OFFERED")
}
