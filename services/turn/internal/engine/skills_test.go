package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

// withSkills is a company that keeps tool skills.
func withSkills() *companyv1.Company {
	c := newCompany()
	c.SkillsContainer = "TS"
	return c
}

func skill(key string, required bool, tools ...string) *toolregistryv1.ToolSkill {
	return &toolregistryv1.ToolSkill{
		Key: key, Summary: "About " + key + ".", Required: required, Phases: []string{"execute"}, Tools: tools,
	}
}

func loader() *toolregistryv1.Tool {
	yes := true
	return &toolregistryv1.Tool{
		Name: "load_tool_skill", Source: "builtin", InputSchemaJson: `{"type":"object"}`, Annotations: &toolregistryv1.Annotations{ReadOnly: &yes},
	}
}

// skilled is a bundle whose registry has skills, and a model that plays rounds; asked holds what it was told last.
func skilled(t *testing.T, tools []*toolregistryv1.Tool, skills []*toolregistryv1.ToolSkill, rounds ...model.Answer) (b *bundle, asked func() model.Request) {
	t.Helper()
	b = setup(t, withSkills())
	b.registry.tools, b.registry.skills = tools, skills
	var mu sync.Mutex
	var last model.Request
	b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
		mu.Lock()
		defer mu.Unlock()
		last = r
		return rounds[len(r.Rounds)], nil
	}}
	return b, func() model.Request {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

var giveUp = calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`)

func TestARequiredSkillHoldsItsToolsBackUntilItWasLoaded(t *testing.T) {
	t.Parallel()
	b, asked := skilled(t, append(tools(), loader()), []*toolregistryv1.ToolSkill{
		skill("filing", true, "create_work_item"), skill("style", true, "create_work_item", "reply"), skill("tips", false, "get_work_item"),
		{Key: "reviewing", Required: true, Phases: []string{"review"}, Tools: []string{"reply"}},
	},
		calls("create_work_item", `{"title":"a"}`, "get_work_item", `{}`),
		calls("load_tool_skill", `{"key":"filing"}`, "create_work_item", `{"title":"b"}`),
		calls("load_tool_skill", `{"key":"style"}`, "create_work_item", `{"title":"c"}`),
		giveUp)
	b.post(t, letter("ada", "slack:1", "hello"))
	b.start(t, "n1", nil)
	turn := b.ended(t, 1)[0]
	require.Equal(t, "blocked", turn.Outcome)
	j := b.journal(t, turn.ID)
	require.Equal(t, []string{
		"create_work_item failed forbidden", "get_work_item done",
		"load_tool_skill done", "create_work_item failed forbidden",
		"load_tool_skill done", "create_work_item done", "submit_work done",
	}, states(j))
	first, second := j.Calls()[0].Result.Text, j.Calls()[3].Result.Text
	require.Contains(t, first, "the skills `filing`, `style`", "every missing key is named")
	require.Contains(t, second, "the skill `style`")
	require.NotContains(t, second, "`filing`")
	require.Equal(t, []string{"get_work_item {}", `load_tool_skill {"key":"filing"}`, `load_tool_skill {"key":"style"}`, `create_work_item {"title":"c"}`},
		b.registry.did(), "a call that is held back is not dispatched")

	_, listed, _ := strings.Cut(asked().System, "## Tool skills\n")
	require.Contains(t, listed, "- `filing`, required, for `create_work_item`: About filing.\n- `style`, required, for `create_work_item`, `reply`: About style.\n"+
		"- `tips`, for `get_work_item`: About tips.")
	require.NotContains(t, listed, "reviewing", "a skill for another phase is not for this one")
}

func TestALoadThatFailedUnlocksNothing(t *testing.T) {
	t.Parallel()
	b, _ := skilled(t, append(tools(), loader()), []*toolregistryv1.ToolSkill{skill("filing", true, "create_work_item")},
		calls("load_tool_skill", `{"key":"filing"}`, "create_work_item", `{}`), giveUp)
	b.registry.before = func(_ context.Context, r *toolregistryv1.CallToolRequest) error {
		if r.GetTool() == "load_tool_skill" {
			return fault.New(fault.NotFound, "There is no tool skill.")
		}
		return nil
	}
	b.post(t, letter("ada", "slack:1", "hello"))
	b.start(t, "n1", nil)
	turn := b.ended(t, 1)[0]
	require.Equal(t, []string{"load_tool_skill failed not_found", "create_work_item failed forbidden", "submit_work done"}, states(b.journal(t, turn.ID)))
}

func TestWithoutALoaderNothingIsHeldBack(t *testing.T) {
	t.Parallel()
	b, asked := skilled(t, tools(), []*toolregistryv1.ToolSkill{skill("filing", true, "create_work_item")},
		calls("create_work_item", `{}`), giveUp)
	b.post(t, letter("ada", "slack:1", "hello"))
	b.start(t, "n1", nil)
	turn := b.ended(t, 1)[0]
	require.Equal(t, []string{"create_work_item done", "submit_work done"}, states(b.journal(t, turn.ID)))
	require.NotContains(t, asked().System, "Tool skills")
}

// A worker that takes a turn up knows from the journal what was loaded.
func TestAResumedTurnRemembersWhatItLoaded(t *testing.T) {
	t.Parallel()
	b, _ := skilled(t, append(tools(), loader()), []*toolregistryv1.ToolSkill{skill("filing", true, "create_work_item")},
		calls("load_tool_skill", `{"key":"filing"}`), calls("create_work_item", `{}`), giveUp)
	inner := b.models.(stub)
	reached := make(chan struct{})
	var once sync.Once
	hang := stub{ask: func(ctx context.Context, r model.Request) (model.Answer, error) {
		if len(r.Rounds) == 1 {
			once.Do(func() { close(reached) })
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		return inner.Ask(ctx, r)
	}}
	b.models = hang
	b.options.DrainTimeout = 1
	b.post(t, letter("ada", "slack:1", "hello"))
	first := b.start(t, "n1", nil)
	<-reached
	first.stop()
	b.models = inner
	b.start(t, "n2", nil)
	turn := b.ended(t, 1)[0]
	require.EqualValues(t, 1, turn.Resumes)
	require.Equal(t, []string{"load_tool_skill done", "create_work_item done", "submit_work done"}, states(b.journal(t, turn.ID)))
}

func TestATurnWhoseSkillsNobodyKnowsDoesNotBegin(t *testing.T) {
	t.Parallel()
	b, _ := skilled(t, append(tools(), loader()), nil, giveUp)
	b.registry.noSkills = errors.New("down")
	b.post(t, letter("ada", "slack:1", "hello"))
	w := b.start(t, "n1", nil)
	require.Eventually(t, func() bool { return strings.Contains(w.HeldSeats()["ada"], "tool skills") }, patience, 5*time.Millisecond)
	b.registry.mu.Lock()
	b.registry.noSkills = nil
	b.registry.mu.Unlock()
	require.Equal(t, journal.OutcomeBlocked, b.ended(t, 1)[0].Outcome)
}
