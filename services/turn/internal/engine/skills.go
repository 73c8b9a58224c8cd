package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/prompt"
)

// loadToolSkill is the tool that loads a skill.
const loadToolSkill = "load_tool_skill"

// phase is the one that turns have.
const phase = "execute"

// reasonSkill is a call that a required skill holds back.
const reasonSkill = "TOOL_SKILL_NOT_LOADED"

// frozenSkill is a tool skill as it was when the turn began.
type frozenSkill struct {
	Key     string `json:"key"`
	Summary string `json:"summary"`
	// Required holds Tools back until the skill was loaded in this turn.
	Required bool     `json:"required,omitempty"`
	Tools    []string `json:"tools"`
}

// freezeSkills asks the registry for the seat's tool skills. A company that keeps some, and cannot say now which, starts no turn:
// nobody knows what they hold back. Without a loader nothing could ever be unlocked, so nothing is held back then.
func (e *Engine) freezeSkills(ctx context.Context, c *companyv1.Company, person *companyv1.Seat, f frozen) ([]frozenSkill, error) {
	if c.GetSkillsContainer() == "" {
		return nil, nil
	}
	listed, err := e.Tools.ListToolSkills(ctx, &toolregistryv1.ListToolSkillsRequest{Seat: person.GetHandle()})
	if err != nil {
		return nil, fault.New(fault.Unavailable, "The tool skills cannot be listed, so nobody knows which tools they hold back.").
			WithReason(reasonCannotBegin).WithCause(rpc.FromError(err))
	}
	_, loader := f.tool(loadToolSkill)
	var skills []frozenSkill
	for _, s := range listed.GetSkills() {
		if !slices.Contains(s.GetPhases(), phase) {
			continue
		}
		if s.GetRequired() && !loader {
			e.Log.Warn("a required tool skill holds nothing back: the seat has no tool to load it with", "seat", person.GetHandle(), "skill", s.GetKey())
		}
		skills = append(skills, frozenSkill{
			Key: s.GetKey(), Summary: s.GetSummary(), Required: s.GetRequired() && loader, Tools: s.GetTools(),
		})
	}
	return skills, nil
}

// told answers the skills as the prompt lists them; none where they could not be loaded.
func (f frozen) told() []prompt.Skill {
	if _, loader := f.tool(loadToolSkill); !loader {
		return nil
	}
	var told []prompt.Skill
	for _, s := range f.Skills {
		told = append(told, prompt.Skill{Key: s.Key, Summary: s.Summary, Required: s.Required, Tools: s.Tools})
	}
	return told
}

// guard refuses a tool while a required skill of it has not been loaded in this turn. What was loaded is read off the journal, so
// a worker that takes the turn up knows it too. The loader itself and what ends a turn are never held back.
func (t *turn) guard(tool frozenTool) error {
	if tool.EngineLocal || tool.Name == loadToolSkill {
		return nil
	}
	loaded := t.loaded()
	var missing []string
	for _, s := range t.frozen.Skills {
		if s.Required && !loaded[s.Key] && slices.Contains(s.Tools, tool.Name) {
			missing = append(missing, "`"+s.Key+"`")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	what := "the skill " + missing[0]
	if len(missing) > 1 {
		what = "the skills " + strings.Join(missing, ", ")
	}
	return fault.New(fault.Forbidden, "`%s` is held back until you have loaded %s: call `%s` with each key, read what it says, and then "+
		"make this call. Nothing was done.", tool.Name, what, loadToolSkill).WithReason(reasonSkill).WithFact("skills", fmt.Sprint(len(missing)))
}

// loaded answers the keys of the skills that this turn has loaded. A load that failed is none.
func (t *turn) loaded() map[string]bool {
	keys := map[string]bool{}
	for _, call := range t.journal.Calls() {
		if call.Tool != loadToolSkill || call.State != journal.Done {
			continue
		}
		var args struct {
			Key string `json:"key"`
		}
		if json.Unmarshal([]byte(call.Args), &args) == nil {
			keys[args.Key] = true
		}
	}
	return keys
}
