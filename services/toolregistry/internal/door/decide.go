package door

import (
	"context"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/toolrule"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/policy"
)

// judge asks the policy before the arguments are read: who may not call the tool at all does not learn what it takes. The policy
// is about seats; people and tokens are bound by their audience.
func (d *Door) judge(_ context.Context, p *passage) error {
	if p.caller.audience != catalogue.Seat {
		return nil
	}
	rules := d.rules.of(p.company)
	if rules.Idle() {
		p.record.Decision = toolrule.Allow
		return nil
	}
	return p.decided(rules.Decide(SubjectOf(p.caller.seat, p.tool), nil))
}

// weigh asks the policy again where the arguments decide.
func (d *Door) weigh(_ context.Context, p *passage) error {
	if p.decision.Effect != policy.Depends {
		return nil
	}
	args, err := p.asRulesSee()
	if err != nil {
		return err
	}
	return p.decided(d.rules.of(p.company).Decide(SubjectOf(p.caller.seat, p.tool), args))
}

// decided keeps a decision, and refuses the call when it is a denial.
func (p *passage) decided(decision policy.Decision) error {
	p.decision = decision
	if decision.Effect == policy.Depends {
		return nil
	}
	p.record.Decision, p.record.Rule = decision.Effect, decision.Rule
	if decision.Effect == toolrule.Deny {
		return denied(p.record.Tool, decision)
	}
	return nil
}

// ReasonDenied is the reason of every refusal by the policy.
const ReasonDenied = "DENIED_BY_POLICY"

func denied(tool string, decision policy.Decision) error {
	text := "The company's policy does not let you make this call of `" + tool + "`."
	if decision.Reason != "" {
		text += " " + decision.Reason
	}
	return fault.New(fault.Forbidden, "%s", text).WithReason(ReasonDenied).WithFact("rule", decision.Rule)
}

// asRulesSee answers the arguments as the tool will understand them. Those of a tool of ours are taken from the message that was
// read, so that no other spelling of a value (a number as text) passes a rule by: plain fields that were left out have their zero
// value, optional ones are absent. A server's are taken as written, and a name given twice is refused.
func (p *passage) asRulesSee() (map[string]any, error) {
	if p.builtin != nil {
		return RuleArguments(p.input)
	}
	args, err := toolrule.Arguments(p.request.Arguments)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The arguments cannot be read: %s.", err)
	}
	return args, nil
}

// RuleArguments answers the request of a tool of ours as rules see it.
func RuleArguments(input proto.Message) (map[string]any, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(input)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The arguments cannot be read.").WithCause(err)
	}
	args, err := toolrule.Arguments(string(text))
	if err != nil {
		return nil, fault.New(fault.Invalid, "The arguments cannot be read: %s.", err)
	}
	return args, nil
}
