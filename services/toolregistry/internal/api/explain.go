package api

import (
	"context"
	"fmt"
	"slices"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/toolrule"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/policy"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// ExplainTool implements the RPC of that name.
func (h *Handler) ExplainTool(ctx context.Context, req *toolregistryv1.ExplainToolRequest) (*toolregistryv1.ExplainToolResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService); err != nil {
		return nil, err
	}
	company := h.Company(ctx, "")
	if company == nil {
		return nil, fault.New(fault.Unavailable, "No company is active, so there are no tools yet. Put a company document first.").
			WithReason("NO_ACTIVE_REVISION")
	}
	seat := req.GetSeat()
	i := slices.IndexFunc(company.GetSeats(), func(s *companyv1.Seat) bool { return s.GetHandle() == seat })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "The company has no seat `%s`.", seat).WithField("seat")
	}
	view, err := h.Door.View(ctx, company, seat, req.GetTool())
	if err != nil {
		return refusedExplanation(err)
	}
	response := &toolregistryv1.ExplainToolResponse{Tool: ToolToProto(view.Tool), Decision: "refused"}
	seats := slices.Contains(view.Tool.Audiences, catalogue.Seat)
	response.Listed = seats && !h.Door.Hides(company, seat, view.Tool)
	switch {
	case company.GetSeats()[i].GetKind() != "agent":
		response.Listed = false
		response.Explanation = fmt.Sprintf("`%s` is held by a person, and only agents call tools as a seat.", seat)
		return response, nil
	case !seats:
		response.Explanation = fmt.Sprintf("`%s` is an operator's tool; no seat has it.", view.Tool.Name)
		return response, nil
	case view.Tool.Quarantine != "":
		response.Explanation = fmt.Sprintf("`%s` of %s cannot be called: %s.", view.Tool.Name, view.Tool.Source, view.Tool.Quarantine)
		return response, nil
	case view.Tool.Change == surface.Held:
		response.Listed = false
		response.Explanation = fmt.Sprintf("`%s` of %s is not what it was when it was first seen; it is held until an operator accepts its new definition.",
			view.Tool.Name, view.Tool.Source)
		return response, nil
	}
	args, err := h.Door.ReadForRules(view, req.GetArgumentsJson())
	if err != nil {
		return nil, err
	}
	rules, subject := h.Door.Policy(company), door.SubjectOf(seat, view.Tool)
	decision := rules.Decide(subject, args)
	response.Decision, response.Rule = decision.Effect, decision.Rule
	response.Explanation = explained(seat, view.Tool.Name, decision)
	if view.Tool.EngineLocal {
		response.Explanation += " The turn engine runs this tool itself: it is called inside a turn only."
	}
	for _, t := range rules.Trace(subject, args) {
		response.Rules = append(response.Rules, &toolregistryv1.RuleTrace{Rule: t.Rule, Effect: t.Effect, Verdict: t.Verdict, Because: t.Because})
	}
	return response, nil
}

// refusedExplanation turns a name that means nothing for the seat into an answer.
func refusedExplanation(err error) (*toolregistryv1.ExplainToolResponse, error) {
	f, ok := fault.As(err)
	if !ok {
		return nil, err
	}
	return &toolregistryv1.ExplainToolResponse{Decision: "refused", Explanation: f.Message}, nil
}

func explained(seat, tool string, d policy.Decision) string {
	by := fmt.Sprintf("the rule `%s` decides", d.Rule)
	if d.Rule == "" {
		by = fmt.Sprintf("no rule fits, and `otherwise` is `%s`", d.Effect)
	}
	switch d.Effect {
	case toolrule.Allow:
		return fmt.Sprintf("`%s` may call `%s`: %s.", seat, tool, by)
	case toolrule.Deny:
		return fmt.Sprintf("`%s` may not call `%s`: %s.", seat, tool, by)
	case toolrule.Ask:
		return fmt.Sprintf("A call of `%s` by `%s` waits for a person, for %s at the most: %s.", tool, seat, d.Expire, by)
	default:
		return fmt.Sprintf("It depends on the arguments whether `%s` may call `%s`; give them to see.", seat, tool)
	}
}
