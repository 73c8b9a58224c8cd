// Package delivery decides whether a turn may end as it says: whether somebody waits for an answer, and whether the answer
// has been put where the asker is.
//
// A seat's word is not enough. `delivered` needs a recorded call that reached the surface the answer is owed on; `no_action`
// is refused while somebody waits. Each refusal says what can be cited and how to deliver.
//
// It is pure.
package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Asked is the surface that a tool names when it answers where the turn was asked: in a conversation outside.
const Asked = "asked"

// Own reports a surface of the suite itself: an answer is put there by a tool that writes there, and by none that answers outside.
func Own(surface string) bool { return surface == "work" || surface == "page" }

// The obligations.
const (
	ObligationTool   = "tool"
	ObligationEngine = "engine"
	ObligationNone   = "none"
)

// Obligation is what a turn owes.
type Obligation struct {
	// Kind is one of the obligations.
	Kind string
	// Surface is where; empty for anywhere.
	Surface string
}

// Waiting reports whether somebody waits for an answer.
func (o Obligation) Waiting() bool { return o.Kind == ObligationTool || o.Kind == ObligationEngine }

// Tool is what the catalogue says of a tool's reach.
type Tool struct {
	Name string
	// Source is `builtin` or `mcp:<server>`.
	Source string
	// Delivers is a first-party tool's surface, or [Asked].
	Delivers string
	// Surfaces are an MCP server's, when it declares them.
	Surfaces []string
	// ReadOnly is what the tool claims; nil claims nothing.
	ReadOnly *bool
}

// Reaches answers the surfaces on which a successful call puts something in front of somebody. An MCP tool that is not proven
// read-only may: on the surfaces its server declares, or on one that bears the server's name.
func (t Tool) Reaches(o Obligation) []string {
	server, external := strings.CutPrefix(t.Source, "mcp:")
	switch {
	case !external && t.Delivers == "":
		return nil
	case !external && t.Delivers == Asked:
		if o.Surface == "" || Own(o.Surface) {
			return []string{Asked}
		}
		return []string{o.Surface}
	case !external:
		return []string{t.Delivers}
	case t.ReadOnly != nil && *t.ReadOnly:
		return nil
	case len(t.Surfaces) > 0:
		return t.Surfaces
	default:
		return []string{server}
	}
}

// Call is a call as it is recorded.
type Call struct {
	Tool string
	// Succeeded: it ended done, and if it was a write, applied, pending or unchanged; or it waits for a person.
	Succeeded bool
}

// Submission is a seat's word.
type Submission struct {
	// Outcome is `delivered`, `no_action` or `blocked`.
	Outcome string
	// Deliveries name the tools it answered by; may be empty.
	Deliveries []string
}

// Check refuses, with class invalid, a submission that the record does not bear out.
func Check(o Obligation, s Submission, calls []Call, tools []Tool) error {
	switch {
	case s.Outcome == "no_action" && o.Waiting():
		return fault.New(fault.Invalid, "Somebody waits for an answer, so this turn cannot end as `no_action`. %s Or submit "+
			"`blocked` with evidence.", how(o, tools)).WithField("outcome")
	case s.Outcome != "delivered" || o.Kind != ObligationTool:
		return nil
	}
	citable := Citable(o, calls, tools)
	if len(citable) == 0 {
		return fault.New(fault.Invalid, "No call of this turn has reached %s, so it cannot end as `delivered`. %s%s",
			place(o, tools), how(o, tools), elsewhere(calls, tools, o)).WithField("outcome")
	}
	for i, name := range s.Deliveries {
		if !slices.Contains(citable, name) {
			return fault.New(fault.Invalid, "`%s` has not delivered in this turn. What can be cited: %s.", name, list(citable)).
				WithField(fmt.Sprintf("deliveries[%d]", i))
		}
	}
	return nil
}

// Citable answers the tools of calls that reached the owed surface, each once, in the order of the calls.
func Citable(o Obligation, calls []Call, tools []Tool) []string {
	narrow := narrowed(o, tools)
	var names []string
	for _, call := range calls {
		if !call.Succeeded || slices.Contains(names, call.Tool) {
			continue
		}
		i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == call.Tool })
		if i < 0 {
			continue
		}
		reached := tools[i].Reaches(o)
		if len(reached) > 0 && (!narrow || slices.Contains(reached, o.Surface)) {
			names = append(names, call.Tool)
		}
	}
	return names
}

// narrowed reports whether only the owed surface counts. It does not when none is named, or the seat has no tool there.
func narrowed(o Obligation, tools []Tool) bool {
	return o.Surface != "" && len(reaching(o, tools)) > 0
}

// reaching answers the tools that can deliver to the owed surface.
func reaching(o Obligation, tools []Tool) []string {
	var names []string
	for _, t := range tools {
		reached := t.Reaches(o)
		if len(reached) > 0 && (o.Surface == "" || slices.Contains(reached, o.Surface)) {
			names = append(names, t.Name)
		}
	}
	return names
}

func place(o Obligation, tools []Tool) string {
	if narrowed(o, tools) {
		return "`" + o.Surface + "`, where the answer is owed"
	}
	return "anybody"
}

func how(o Obligation, tools []Tool) string {
	names := reaching(o, tools)
	if len(names) == 0 {
		anywhere := o
		anywhere.Surface = ""
		names = reaching(anywhere, tools)
	}
	if len(names) == 0 {
		return "You hold no tool that reaches anybody: submit `blocked` and say so in `evidence`."
	}
	return "Answer first, with " + list(names) + "."
}

// elsewhere names what was delivered, but not where the answer is owed.
func elsewhere(calls []Call, tools []Tool, o Obligation) string {
	anywhere := Obligation{Kind: o.Kind}
	names := Citable(anywhere, calls, tools)
	if len(names) == 0 {
		return " Nothing that this turn has done can be cited."
	}
	return " What this turn has delivered so far went elsewhere: " + list(names) + "."
}

func list(names []string) string {
	const shown = 8
	quoted := make([]string, 0, shown)
	for _, name := range names[:min(len(names), shown)] {
		quoted = append(quoted, "`"+name+"`")
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
