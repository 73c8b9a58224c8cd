package api

import (
	"context"
	"slices"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/skill"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// loader is the tool that is listed only while there is something to load.
const loader = "load_tool_skill"

// ListToolSkills implements the RPC of that name.
func (h *Handler) ListToolSkills(ctx context.Context, req *toolregistryv1.ListToolSkillsRequest) (*toolregistryv1.ListToolSkillsResponse, error) {
	from, seat, company, err := h.asked(ctx, req.GetSeat(), "tool skills")
	if err != nil {
		return nil, err
	}
	set, err := h.skills(company)
	if err != nil {
		return nil, err
	}
	response := &toolregistryv1.ListToolSkillsResponse{}
	tools := h.toolsOf(ctx, company, seat)
	for _, s := range set.Skills {
		fits := s.Tools(tools)
		if seat != "" && len(fits) == 0 {
			continue
		}
		response.Skills = append(response.Skills, &toolregistryv1.ToolSkill{
			Key: s.Key, Title: s.Title, Summary: s.Summary, Required: s.Required, Phases: s.Phases, Tools: fits, PageId: s.PageID,
		})
	}
	if from.GetKind() == rpc.KindSeat {
		return response, nil
	}
	for _, r := range set.Refused {
		response.Refused = append(response.Refused, &toolregistryv1.RefusedSkill{PageId: r.PageID, Title: r.Title, Reason: r.Reason})
	}
	return response, nil
}

// skills answers those in force. Where the company keeps skills and none have been read yet, nobody knows what they hold back, and
// that is said.
func (h *Handler) skills(company *companyv1.Company) (*skill.Set, error) {
	if company.GetSkillsContainer() == "" {
		return &skill.Set{}, nil
	}
	if set := h.Skills(); set != nil {
		return set, nil
	}
	return nil, fault.New(fault.Unavailable, "The company's tool skills have not been read yet: the knowledge base does not answer.")
}

// toolsOf answers what a seat can call, as triggers look at it; without a seat, what any seat can.
func (h *Handler) toolsOf(ctx context.Context, company *companyv1.Company, seat string) []skill.Tool {
	var tools []skill.Tool
	seen := []*surface.Surface{h.Seats.Surface(ctx, company, seat)}
	if seat == "" {
		seen = append(seen, h.Seats.Seen()...)
	}
	for _, s := range seen {
		for _, tool := range s.Tools() {
			switch {
			case tool.Quarantine != "", !slices.Contains(tool.Audiences, catalogue.Seat), seat != "" && h.Door.Hides(company, seat, tool):
			default:
				tools = append(tools, skill.Tool{Name: tool.Name, Raw: tool.Raw, Server: tool.Server})
			}
		}
	}
	return tools
}

// withoutLoader leaves the loader out of a list while there is nothing to load: a model that is shown a tool which always fails
// learns to distrust all.
func (h *Handler) withoutLoader(company *companyv1.Company, all *toolregistryv1.ListToolsResponse) *toolregistryv1.ListToolsResponse {
	isLoader := func(t *toolregistryv1.Tool) bool { return t.GetName() == loader && t.GetSource() == surface.Builtin }
	if company.GetSkillsContainer() == "" || !h.Skills().Empty() || !slices.ContainsFunc(all.GetTools(), isLoader) {
		return all
	}
	return &toolregistryv1.ListToolsResponse{
		Tools: slices.DeleteFunc(slices.Clone(all.GetTools()), isLoader), Digest: surface.Digest(all.GetDigest(), "without "+loader),
		MissingServers: all.GetMissingServers(),
	}
}

// LoadToolSkill implements the tool of that name, which the registry runs itself.
func (h *Handler) LoadToolSkill(ctx context.Context, req *toolregistryv1.LoadToolSkillRequest) (*toolregistryv1.LoadToolSkillResponse, error) {
	from, err := throughDoor(ctx)
	if err != nil {
		return nil, err
	}
	company := h.Company(ctx, from.GetTurn().GetRevisionId())
	set, err := h.skills(company)
	if err != nil {
		return nil, err
	}
	s, ok := set.Lookup(req.GetKey())
	if !ok {
		there := "there are none now"
		if keys := set.Keys(); len(keys) > 0 {
			there = "there are `" + strings.Join(keys, "`, `") + "`"
		}
		return nil, fault.New(fault.NotFound, "There is no tool skill `%s`; %s.", req.GetKey(), there).WithField("key")
	}
	return &toolregistryv1.LoadToolSkillResponse{Key: s.Key, Title: s.Title, Body: s.Body}, nil
}

// throughDoor lets a seat ask whose call came through the door, which is how it reaches tools that the registry itself runs.
func throughDoor(ctx context.Context) (*rpc.Principal, error) {
	from, err := rpc.RequireKind(ctx, rpc.KindSeat)
	if err != nil {
		return nil, err
	}
	if from.GetIssuer() != "toolregistry" {
		return nil, fault.New(fault.Forbidden, "A seat calls tools with CallTool.")
	}
	return from, nil
}
