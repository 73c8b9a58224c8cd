// Package skill reads tool skills: pages of the company's knowledge that say how tools are to be used here. It is pure.
//
// A page is a skill when it begins with a block of YAML between two lines of `---`:
//
//	---
//	key: push-to-main
//	trigger: {tool: push}            # or mcp_server, or any_of / all_of: a list of these two
//	summary: Who may push to main, and when.
//	phases: [execute]                # of execute, review, subagent; all of them when left out
//	required: true                   # the default: its tools are held back until it was loaded
//	---
//	The text that a seat loads, with ${wiki_url} filled in from skill_variables.
//
// A page that is none is listed as refused with the reason, never dropped in silence: whoever wrote it believes that it holds.
package skill

import "slices"

// The limits of a skill, in bytes.
const (
	MaxSummary = 240
	MaxBody    = 32 << 10
	MaxTitle   = 256
	// maxFront bounds the block of YAML.
	maxFront = 8 << 10
)

// The phases of a turn that a skill can be for.
const (
	Execute  = "execute"
	Review   = "review"
	Subagent = "subagent"
)

// Page is a page of the skills container as it is read.
type Page struct{ ID, Title, Body string }

// Skill is a page that was admitted. It is shared and never changed.
type Skill struct {
	Key, Title, Summary string
	// Required holds the trigger's tools back until the skill was loaded.
	Required bool
	Phases   []string
	// Body is the text, variables filled in.
	Body   string
	PageID string

	trigger trigger
}

// Refused is a page that is no skill.
type Refused struct{ PageID, Title, Reason string }

// Tool is a tool of a surface, as far as triggers look at it.
type Tool struct{ Name, Raw, Server string }

// trigger says which tools a skill is about; exactly one of its parts is set.
type trigger struct {
	Tool   string    `yaml:"tool"`
	Server string    `yaml:"mcp_server"`
	AnyOf  []trigger `yaml:"any_of"`
	AllOf  []trigger `yaml:"all_of"`
}

// Tools answers the names of the tools among all that the skill is about; none when its trigger does not fit them. A tool is named
// by the name it is called by, or as its server names it.
func (s *Skill) Tools(all []Tool) []string {
	found, ok := s.trigger.tools(all)
	if !ok {
		return nil
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (t trigger) tools(all []Tool) (found []string, ok bool) {
	each := t.AnyOf
	if t.AllOf != nil {
		each = t.AllOf
	}
	for _, part := range each {
		more, fits := part.tools(all)
		if !fits && t.AllOf != nil {
			return nil, false
		}
		found = append(found, more...)
	}
	for _, tool := range all {
		if t.Tool != "" && (tool.Name == t.Tool || tool.Raw == t.Tool) || t.Server != "" && tool.Server == t.Server {
			found = append(found, tool.Name)
		}
	}
	return found, len(found) > 0
}

// Set is what a complete walk over the container found. It is shared and never changed.
type Set struct {
	// Skills are in the order of their keys, Refused in that of the walk.
	Skills  []*Skill
	Refused []Refused
	// Warnings are for the log: what is in order and yet may not do what is meant.
	Warnings []string
}

// Lookup finds a skill by its key.
func (s *Set) Lookup(key string) (*Skill, bool) {
	if s == nil {
		return nil, false
	}
	for _, skill := range s.Skills {
		if skill.Key == key {
			return skill, true
		}
	}
	return nil, false
}

// Keys answers the keys, in order.
func (s *Set) Keys() []string {
	if s == nil {
		return nil
	}
	keys := make([]string, 0, len(s.Skills))
	for _, skill := range s.Skills {
		keys = append(keys, skill.Key)
	}
	return keys
}

// Empty reports that there is nothing to load.
func (s *Set) Empty() bool { return s == nil || len(s.Skills) == 0 }
