package policy

import (
	"fmt"

	"github.com/bullpenhq/bullpen/libs/toolrule"
)

// Verdicts of a rule about a call.
const (
	Fits       = "fits"
	DoesNotFit = "does_not_fit"
)

// Trace is what one rule makes of a call.
type Trace struct {
	Rule, Effect string
	// Verdict is [Fits], [DoesNotFit] or [Depends].
	Verdict string
	// Because is half a sentence.
	Because string
}

// Trace answers what every rule makes of a call, in order, those behind the one that decides included.
func (p *Policy) Trace(s Subject, args map[string]any) []Trace {
	facts, units := p.facts(s, args)
	var traces []Trace
	for i := range p.rules {
		r := &p.rules[i]
		truth, missed, err := r.judge(facts, units)
		t := Trace{Rule: r.Name, Effect: r.Effect, Verdict: Fits, Because: "everything that it names fits"}
		switch {
		case err != nil && r.Effect == toolrule.Allow:
			t.Verdict, t.Because = DoesNotFit, fmt.Sprintf("its condition fails, and that never allows: %s", err)
		case err != nil:
			t.Because = fmt.Sprintf("its condition fails, which counts as fitting: %s", err)
		case truth == toolrule.Depends:
			t.Verdict, t.Because = Depends, "its condition needs arguments that are not known"
		case truth == toolrule.False && missed == "when":
			t.Verdict, t.Because = DoesNotFit, "its condition is false"
		case truth == toolrule.False:
			t.Verdict, t.Because = DoesNotFit, missing(missed, s)
		}
		traces = append(traces, t)
	}
	return traces
}

func missing(part string, s Subject) string {
	switch part {
	case "seats":
		return fmt.Sprintf("its seats do not name `%s`", s.Seat)
	case "units":
		return fmt.Sprintf("`%s` is in none of its units", s.Seat)
	case "tools":
		return fmt.Sprintf("its tools do not name `%s`", s.Tool)
	default:
		return fmt.Sprintf("its sources do not name `%s`", s.Source)
	}
}
