package door

import (
	"context"
	"fmt"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/nearest"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// maxNearest is how many names a refusal offers.
const maxNearest = 3

// resolve finds the tool that the name means for this caller.
func (d *Door) resolve(ctx context.Context, p *passage) error {
	seen := d.Seats.Surface(ctx, p.company, p.caller.seat)
	tool, ok := seen.Lookup(p.request.Tool)
	if !ok && p.caller.seat != "" && len(seen.Missing()) > 0 {
		// Its server may have become ready since.
		d.Seats.Invalidate(p.caller.seat)
		seen = d.Seats.Surface(ctx, p.company, p.caller.seat)
		tool, ok = seen.Lookup(p.request.Tool)
	}
	if !ok {
		return d.unresolved(p, seen)
	}
	p.tool = tool
	// The audit knows a tool by one name, whichever the caller took.
	p.record.Tool, p.record.Source = tool.Name, tool.Source
	if tool.Source == surface.Builtin {
		p.builtin, _ = d.Catalogue.Lookup(tool.Name)
	}
	return nil
}

// unresolved says why a name means nothing here: the company does not run the tool, or nobody has one of that name.
func (d *Door) unresolved(p *passage, seen *surface.Surface) error {
	name := p.record.Tool
	if declared, ok := d.Catalogue.Lookup(p.request.Tool); ok {
		p.record.Source = surface.Builtin
		missing, _ := runs(p.company, declared.Requires)
		return fault.New(fault.Unavailable, "`%s` needs `%s`, which this company does not run.", name, missing)
	}
	text := fmt.Sprintf("There is no tool `%s`.", name)
	if near := nearest.Few(p.request.Tool, seen.Names(), maxNearest); len(near) > 0 {
		text += fmt.Sprintf(" Did you mean `%s`?", strings.Join(near, "`, `"))
	}
	for _, server := range seen.Missing() {
		text += fmt.Sprintf(" The tools of the server `%s` are missing now: %s.", server.Server, because(server))
	}
	return fault.New(fault.NotFound, "%s", text).WithField("tool")
}

func because(m surface.Missing) string {
	if first, _, _ := strings.Cut(m.Reason, "\n"); first != "" {
		return strings.TrimSuffix(first, ".") // what a program wrote at its end is for operators; `GET /mcp-servers` has it
	}
	return "it is in the state " + m.State
}

// runs reports whether a company runs everything that a tool requires, and what it misses first.
func runs(company *companyv1.Company, requires []string) (missing string, ok bool) {
	for _, requirement := range requires {
		switch requirement {
		case "tracker:" + company.GetTrackerBackend(), "knowledge:" + company.GetKnowledgeBackend():
		case "tool_results:" + company.GetToolResults().GetMode():
		case "tool_skills":
			if company.GetSkillsContainer() == "" {
				return requirement, false
			}
		default:
			return requirement, false
		}
	}
	return "", true
}
