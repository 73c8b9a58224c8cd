package door

import (
	"sync"
	"sync/atomic"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/toolrule"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/policy"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// submitWork ends a turn. No policy takes it from a seat: a seat that cannot end its turn is not safer, it is stuck.
const submitWork = "submit_work"

// rules keeps the policy of the company that was asked about last, compiled. Safe for concurrent use.
type rules struct {
	last      atomic.Pointer[compiled]
	compiling sync.Mutex
}

type compiled struct {
	company *companyv1.Company
	policy  *policy.Policy
}

// of answers the policy of a company, which is not changed after it was read.
func (r *rules) of(company *companyv1.Company) *policy.Policy {
	if last := r.last.Load(); last != nil && last.company == company {
		return last.policy
	}
	r.compiling.Lock()
	defer r.compiling.Unlock()
	if last := r.last.Load(); last != nil && last.company == company {
		return last.policy // whoever had the lock before compiled it
	}
	next := &compiled{company, policy.Compile(written(company.GetToolPolicy()), OrgOf(company))}
	r.last.Store(next)
	return next.policy
}

// Policy answers a company's policy, compiled.
func (d *Door) Policy(company *companyv1.Company) *policy.Policy { return d.rules.of(company) }

// Hides answers whether the policy takes a tool from a seat's list: whatever the arguments, a call would be refused.
func (d *Door) Hides(company *companyv1.Company, seat string, tool *surface.Tool) bool {
	if rules := d.rules.of(company); seat != "" && !rules.Idle() && tool.Name != submitWork {
		return rules.Decide(SubjectOf(seat, tool), nil).Effect == toolrule.Deny
	}
	return false
}

// SubjectOf answers a call of a tool as rules see it.
func SubjectOf(seat string, tool *surface.Tool) policy.Subject {
	return policy.Subject{
		Seat: seat, Tool: tool.Name, Source: tool.Source, Delivers: tool.Delivers,
		ReadOnly: tool.Hints.ReadOnly, Destructive: tool.Hints.Destructive, Idempotent: tool.Hints.Idempotent, OpenWorld: tool.Hints.OpenWorld,
	}
}

// OrgOf answers who is where in a company.
func OrgOf(company *companyv1.Company) policy.Org {
	org := policy.Org{Seats: map[string]policy.Seat{}, Parents: map[string]string{}}
	for _, unit := range company.GetUnits() {
		org.Parents[unit.GetUnitId()] = unit.GetParentId()
	}
	for _, seat := range company.GetSeats() {
		org.Seats[seat.GetHandle()] = policy.Seat{Unit: seat.GetUnitId(), Kind: seat.GetKind()}
	}
	return org
}

// written reads the contract's form of a policy.
func written(p *companyv1.ToolPolicy) toolrule.Policy {
	out := toolrule.Policy{Otherwise: p.GetOtherwise(), HoldChangedTools: p.GetHoldChangedTools()}
	for _, r := range p.GetRules() {
		out.Rules = append(out.Rules, toolrule.Rule{
			Name: r.GetName(), Effect: r.GetEffect(), Seats: r.GetSeats(), Units: r.GetUnits(), Tools: r.GetTools(), Sources: r.GetSources(),
			When: r.GetWhen(), Reason: r.GetReason(), ExpireSeconds: int(r.GetExpireSeconds()),
		})
	}
	return out
}
