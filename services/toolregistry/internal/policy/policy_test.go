package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/toolrule"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/policy"
)

var org = policy.Org{
	Seats: map[string]policy.Seat{
		"ada": {Unit: "payments", Kind: "agent"}, "bob": {Unit: "sales", Kind: "agent"}, "root": {Kind: "agent"},
	},
	Parents: map[string]string{"payments": "engineering", "engineering": "", "sales": ""},
}

func compile(rules ...toolrule.Rule) *policy.Policy {
	for i := range rules {
		if rules[i].Name == "" {
			rules[i].Name = "r"
		}
	}
	return policy.Compile(toolrule.Policy{Rules: rules}, org)
}

func TestTheFirstRuleThatFitsDecides(t *testing.T) {
	t.Parallel()
	p := compile(
		toolrule.Rule{Name: "payments may order", Effect: toolrule.Allow, Units: []string{"engineering"}, Tools: []string{"order"}},
		toolrule.Rule{Name: "nobody orders", Effect: toolrule.Deny, Tools: []string{"order"}, Reason: "Orders are closed."},
		toolrule.Rule{Name: "shop asks", Effect: toolrule.Ask, Sources: []string{"mcp:shop*"}, ExpireSeconds: 60},
	)
	require.Equal(t, "payments may order", p.Decide(policy.Subject{Seat: "ada", Tool: "order"}, nil).Rule, "sub-units are in a unit")
	require.Equal(t, policy.Decision{Effect: toolrule.Deny, Rule: "nobody orders", Reason: "Orders are closed.", Expire: toolrule.DefaultExpire},
		p.Decide(policy.Subject{Seat: "bob", Tool: "order"}, nil))
	require.Equal(t, "nobody orders", p.Decide(policy.Subject{Seat: "root", Tool: "order"}, nil).Rule, "a seat at the root is in no unit")
	require.Equal(t, policy.Decision{Effect: toolrule.Ask, Rule: "shop asks", Expire: time.Minute},
		p.Decide(policy.Subject{Seat: "bob", Tool: "buy", Source: "mcp:shop2"}, nil))
	require.Equal(t, policy.Decision{Effect: toolrule.Allow}, p.Decide(policy.Subject{Seat: "bob", Tool: "read", Source: "builtin"}, nil))
}

func TestWithoutAFittingRuleTheCompanysWordHolds(t *testing.T) {
	t.Parallel()
	require.True(t, policy.Compile(toolrule.Policy{}, org).Idle())
	strict := policy.Compile(toolrule.Policy{Otherwise: toolrule.Deny}, org)
	require.False(t, strict.Idle())
	require.Equal(t, policy.Decision{Effect: toolrule.Deny}, strict.Decide(policy.Subject{Seat: "ada", Tool: "x"}, nil))
}

func TestAConditionThatFailsNeverAllows(t *testing.T) {
	t.Parallel()
	args := map[string]any{"other": int64(1)}
	for effect, want := range map[string]string{toolrule.Allow: toolrule.Deny, toolrule.Deny: toolrule.Deny, toolrule.Ask: toolrule.Ask} {
		for _, when := range []string{"args.amount < 5", "!tool.read_only", "this does not compile"} {
			p := policy.Compile(toolrule.Policy{
				Otherwise: toolrule.Deny, Rules: []toolrule.Rule{{Name: "r", Effect: effect, When: when}},
			}, org)
			require.Equal(t, want, p.Decide(policy.Subject{Seat: "ada", Tool: "x"}, args).Effect, "%s when %s", effect, when)
		}
	}
}

func TestADecisionDependsOnlyWhereArgumentsCanChangeIt(t *testing.T) {
	t.Parallel()
	big := toolrule.Rule{Name: "big", Effect: toolrule.Deny, When: "args.amount > 5"}
	all := toolrule.Rule{Name: "all", Effect: toolrule.Deny}
	s := policy.Subject{Seat: "ada", Tool: "order"}
	require.Equal(t, policy.Depends, compile(big).Decide(s, nil).Effect)
	require.Equal(t, toolrule.Deny, compile(big, all).Decide(s, nil).Effect, "whatever the amount, it is denied")
	require.Equal(t, toolrule.Deny, compile(big).Decide(s, map[string]any{"amount": int64(6)}).Effect)
	require.Equal(t, toolrule.Allow, compile(big).Decide(s, map[string]any{"amount": int64(5)}).Effect)
	p := compile(big, toolrule.Rule{Name: "bob", Effect: toolrule.Ask, Seats: []string{"bob"}})
	require.Equal(t, []policy.Trace{
		{Rule: "big", Effect: toolrule.Deny, Verdict: policy.Depends, Because: "its condition needs arguments that are not known"},
		{Rule: "bob", Effect: toolrule.Ask, Verdict: policy.DoesNotFit, Because: "its seats do not name `ada`"},
	}, p.Trace(s, nil))
}

// What is decided without arguments holds with any: this is what makes it right to hide a tool that is denied so.
func TestWhatIsDecidedWithoutArgumentsHoldsWithAny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		p := toolrule.Policy{Otherwise: pick("otherwise", toolrule.Allow, toolrule.Deny)}
		for range rapid.IntRange(0, 5).Draw(t, "rules") {
			r := toolrule.Rule{
				Name: pick("name", "a", "b", "c"), Effect: pick("effect", toolrule.Allow, toolrule.Deny, toolrule.Ask),
				When: pick("when", "", "args.n > 2", "seat.handle == 'bob'", "tool.read_only == true || args.n == 1", "has(args.n)", "args.m"),
			}
			if rapid.Bool().Draw(t, "narrow") {
				r.Tools = []string{pick("tool", "x", "y", "*")}
			}
			p.Rules = append(p.Rules, r)
		}
		compiled := policy.Compile(p, org)
		s := policy.Subject{Seat: pick("seat", "ada", "bob"), Tool: pick("called", "x", "y")}
		before := compiled.Decide(s, nil)
		args := map[string]any{}
		if rapid.Bool().Draw(t, "given") {
			args["n"] = rapid.Int64Range(0, 4).Draw(t, "n")
		}
		after := compiled.Decide(s, args)
		require.NotEqual(t, policy.Depends, after.Effect)
		if before.Effect != policy.Depends {
			require.Equal(t, before.Effect, after.Effect)
		}
	})
}
