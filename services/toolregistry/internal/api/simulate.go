package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/toolrule"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/policy"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

const (
	// defaultSimulated is how many calls are looked at when nobody says.
	defaultSimulated = 1000
	// simulatedPage is how many calls are read at a time.
	simulatedPage = 200
)

// SimulatePolicy implements the RPC of that name.
func (h *Handler) SimulatePolicy(ctx context.Context, req *toolregistryv1.SimulatePolicyRequest) (*toolregistryv1.SimulatePolicyResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService); err != nil {
		return nil, err
	}
	company := h.Company(ctx, "")
	if company == nil {
		return nil, fault.New(fault.Unavailable, "No company is active, so nobody has called a tool. Put a company document first.").
			WithReason("NO_ACTIVE_REVISION")
	}
	written, problems := toolrule.Parse(req.GetPolicyYaml())
	if len(problems) == 0 {
		problems = located(&written, company)
	}
	if len(problems) > 0 {
		return nil, unusable(problems)
	}
	s := simulation{
		handler: h, company: company, rules: policy.Compile(written, door.OrgOf(company)), views: map[[2]string]*door.View{},
		response: &toolregistryv1.SimulatePolicyResponse{Decisions: map[string]int32{}},
	}
	return s.response, s.run(ctx, req)
}

// unusable names everything that is wrong with a policy.
func unusable(problems []toolrule.Problem) error {
	var lines []string
	for _, p := range problems {
		lines = append(lines, strings.TrimSpace(p.Path+" "+p.Message))
	}
	return fault.New(fault.Invalid, "The policy cannot be used: %s.", strings.Join(lines, "; ")).WithField("policy_yaml")
}

// located writes seats as handles and units as ids, as a document may name both by their names, and answers what names nobody.
func located(p *toolrule.Policy, company *companyv1.Company) (problems []toolrule.Problem) {
	for i := range p.Rules {
		for j, ref := range p.Rules[i].Seats {
			at := slices.IndexFunc(company.GetSeats(), func(s *companyv1.Seat) bool { return s.GetHandle() == ref || s.GetName() == ref })
			if at < 0 {
				problems = append(problems, toolrule.Problem{
					Path: fmt.Sprintf("rules[%d].seats[%d]", i, j), Message: fmt.Sprintf("no seat has the handle or name %q", ref),
				})
				continue
			}
			p.Rules[i].Seats[j] = company.GetSeats()[at].GetHandle()
		}
		for j, ref := range p.Rules[i].Units {
			at := slices.IndexFunc(company.GetUnits(), func(u *companyv1.Unit) bool { return u.GetUnitId() == ref || u.GetName() == ref })
			if at < 0 {
				problems = append(problems, toolrule.Problem{
					Path: fmt.Sprintf("rules[%d].units[%d]", i, j), Message: fmt.Sprintf("no unit has the name or id %q", ref),
				})
				continue
			}
			p.Rules[i].Units[j] = company.GetUnits()[at].GetUnitId()
		}
	}
	return problems
}

// simulation runs a policy over recorded calls.
type simulation struct {
	handler  *Handler
	company  *companyv1.Company
	rules    *policy.Policy
	views    map[[2]string]*door.View // by seat and tool; nil for a tool that is gone
	response *toolregistryv1.SimulatePolicyResponse
}

func (s *simulation) run(ctx context.Context, req *toolregistryv1.SimulatePolicyRequest) error {
	left := int(req.GetLimit())
	if left == 0 {
		left = defaultSimulated
	}
	var since time.Time
	if req.GetSince() != nil {
		since = req.GetSince().AsTime()
	}
	for after, more := (store.After{}), true; more; {
		var page []*call.Record
		var err error
		if page, more, err = s.handler.Store.ListCalls(ctx, store.Filter{Seat: req.GetSeat()}, after, simulatedPage); err != nil {
			return err
		}
		for _, r := range page {
			if left == 0 || r.StartedAt.Before(since) {
				return nil
			}
			if r.Decision != "" && !again(r) {
				s.examine(ctx, r)
				left--
			}
			after = store.After{StartedAt: r.StartedAt, ID: r.ID}
		}
	}
	return nil
}

// again reports the record of an approved call that was made: the call itself is the one that was parked.
func again(r *call.Record) bool { return r.ApprovalID != "" && r.Status != call.Parked }

func (s *simulation) examine(ctx context.Context, r *call.Record) {
	decision := s.rules.Decide(s.subject(ctx, r))
	s.response.Examined++
	s.response.Decisions[decision.Effect]++
	if decision.Effect != r.Decision {
		s.response.Differences = append(s.response.Differences, &toolregistryv1.PolicyDifference{
			AuditId: r.ID.String(), Seat: r.Seat, Tool: r.Tool, Was: r.Decision, WasRule: r.Rule, WouldBe: decision.Effect, WouldBeRule: decision.Rule,
		})
	}
}

// subject answers a recorded call as rules see it, the tool as it is now. One that is gone claims nothing.
func (s *simulation) subject(ctx context.Context, r *call.Record) (policy.Subject, map[string]any) {
	key := [2]string{r.Seat, r.Tool}
	view, seen := s.views[key]
	if !seen {
		view, _ = s.handler.Door.View(ctx, s.company, r.Seat, r.Tool)
		s.views[key] = view
	}
	if view == nil || view.Tool.Source != r.Source {
		args, err := toolrule.Arguments(r.Arguments)
		if err != nil {
			args = map[string]any{}
		}
		return policy.Subject{Seat: r.Seat, Tool: r.Tool, Source: r.Source}, args
	}
	args, err := s.handler.Door.ReadForRules(view, r.Arguments)
	if err != nil || args == nil {
		args = map[string]any{}
	}
	return door.SubjectOf(r.Seat, view.Tool), args
}
