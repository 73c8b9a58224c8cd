// Package policy decides about calls by the rules of a company: allow, deny, or ask a person. It is pure.
//
// Rules are tried in document order and the first that fits decides; where none fits, `otherwise` does. A rule that needs
// arguments which are not known yet may or may not fit: then the decision is [Depends], unless every way it can go ends the same.
//
// A condition that fails when it is evaluated (an argument is missing, a type does not fit, it costs too much) never allows
// anything: the rule fits if its effect is `deny` or `ask`, and does not if it is `allow`.
package policy

import (
	"slices"
	"time"

	"github.com/bullpenhq/bullpen/libs/toolrule"
)

// Depends is the decision about a call whose arguments decide and are not known.
const Depends = "depends"

// Org is who is where in the company.
type Org struct {
	// Seats by handle.
	Seats map[string]Seat
	// Parents are the units above units, by id; "" ends a chain.
	Parents map[string]string
}

// Seat is a seat's place.
type Seat struct{ Unit, Kind string }

// Subject is a call of a tool by a seat, without its arguments.
type Subject struct {
	Seat, Tool, Source, Delivers                 string
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Decision is what becomes of a call.
type Decision struct {
	// Effect is [toolrule.Allow], [toolrule.Deny], [toolrule.Ask] or [Depends].
	Effect string
	// Rule is the one that decided, Reason what it says; both are empty where `otherwise` did, and for [Depends].
	Rule, Reason string
	// Expire is how long a question waits.
	Expire time.Duration
}

// Policy is a company's rules, compiled. Safe for concurrent use.
type Policy struct {
	rules     []rule
	otherwise string
	org       Org
}

type rule struct {
	toolrule.Rule
	condition *toolrule.Condition
	// broken is why the condition does not compile; it then fails for every call.
	broken error
}

// Compile makes a policy. A condition that does not compile, which the company refuses, fails whenever it is evaluated.
func Compile(p toolrule.Policy, org Org) *Policy {
	compiled := &Policy{otherwise: p.Otherwise, org: org}
	if compiled.otherwise != toolrule.Deny {
		compiled.otherwise = toolrule.Allow
	}
	language, err := toolrule.NewLanguage()
	for _, r := range p.Rules {
		next := rule{Rule: r}
		switch {
		case r.When == "":
		case err != nil:
			next.broken = err
		default:
			next.condition, next.broken = language.Compile(r.When)
		}
		compiled.rules = append(compiled.rules, next)
	}
	return compiled
}

// Idle reports whether the policy allows everything without a look at anything.
func (p *Policy) Idle() bool { return len(p.rules) == 0 && p.otherwise == toolrule.Allow }

// Decide answers what becomes of a call; args are nil while they are not known, and as [toolrule.Arguments] reads them.
func (p *Policy) Decide(s Subject, args map[string]any) Decision {
	facts, units := p.facts(s, args)
	var open []string // effects of rules that may fit
	for i := range p.rules {
		r := &p.rules[i]
		truth, _, err := r.judge(facts, units)
		switch {
		case err != nil && r.Effect == toolrule.Allow, err == nil && truth == toolrule.False:
		case err == nil && truth == toolrule.Depends:
			open = append(open, r.Effect)
		default:
			return settled(open, Decision{Effect: r.Effect, Rule: r.Name, Reason: r.Reason, Expire: r.Expire()})
		}
	}
	return settled(open, Decision{Effect: p.otherwise})
}

// settled answers the decision that is left when rules before it may fit.
func settled(open []string, certain Decision) Decision {
	if slices.ContainsFunc(open, func(effect string) bool { return effect != certain.Effect }) {
		return Decision{Effect: Depends}
	}
	return certain
}

// facts joins a call with the seat's place; units are the seat's and those above it.
func (p *Policy) facts(s Subject, args map[string]any) (facts toolrule.Facts, units []string) {
	seat := p.org.Seats[s.Seat]
	for unit := seat.Unit; unit != "" && !slices.Contains(units, unit); unit = p.org.Parents[unit] {
		units = append(units, unit)
	}
	return toolrule.Facts{
		Seat: s.Seat, Unit: seat.Unit, Kind: seat.Kind, Tool: s.Tool, Source: s.Source, Delivers: s.Delivers,
		ReadOnly: s.ReadOnly, Destructive: s.Destructive, Idempotent: s.Idempotent, OpenWorld: s.OpenWorld, Args: args,
	}, units
}

// judge answers whether the rule fits, and which part of it does not.
func (r *rule) judge(f toolrule.Facts, units []string) (truth toolrule.Truth, missed string, err error) {
	fits := func(patterns []string, name string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool { return toolrule.Match(pattern, name) })
	}
	switch {
	case len(r.Seats) > 0 && !slices.Contains(r.Seats, f.Seat):
		return toolrule.False, "seats", nil
	case len(r.Units) > 0 && !slices.ContainsFunc(r.Units, func(unit string) bool { return slices.Contains(units, unit) }):
		return toolrule.False, "units", nil
	case !fits(r.Tools, f.Tool):
		return toolrule.False, "tools", nil
	case !fits(r.Sources, f.Source):
		return toolrule.False, "sources", nil
	case r.broken != nil:
		return toolrule.False, "when", r.broken
	case r.condition == nil:
		return toolrule.True, "", nil
	}
	truth, err = r.condition.Holds(f)
	return truth, "when", err
}
