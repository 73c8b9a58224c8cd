package toolregistry_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// ruled is the company under a policy.
func ruled(otherwise string, rules ...*companyv1.ToolRule) *companyv1.Company {
	c := companyOf()
	c.Units = []*companyv1.Unit{{UnitId: "ops"}, {UnitId: "desk", ParentId: "ops"}}
	c.Seats[0].UnitId = "desk"
	c.ToolPolicy = &companyv1.ToolPolicy{Otherwise: otherwise, Rules: rules}
	return c
}

func (w *world) listed(t *testing.T, seat string) []string {
	t.Helper()
	answer, err := w.console.ListTools(asOperator(t.Context()), &toolregistryv1.ListToolsRequest{Seat: seat})
	require.NoError(t, err)
	var names []string
	for _, tool := range answer.GetTools() {
		names = append(names, tool.GetName())
	}
	return names
}

// obliging makes every tool answer.
func (w *world) obliging() *world {
	w.neighbours.bring("ada", brought())
	w.neighbours.create = func(context.Context, *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		return &trackerv1.CreateWorkItemResponse{Outcome: "applied", Position: "tracker@1:1", Key: "OPS-1"}, nil
	}
	w.neighbours.read = func(context.Context) error { return nil }
	w.neighbours.call = func(context.Context, *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[{"type":"text","text":"done"}]}`}, nil
	}
	return w
}

func TestADeniedToolIsAbsentAndRefusedByName(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true, company: ruled("allow",
		&companyv1.ToolRule{Name: "no comments", Effect: "deny", Units: []string{"ops"}, Sources: []string{"mcp:gh"}, When: "tool.read_only != true", Reason: "Ask ines."},
		&companyv1.ToolRule{Name: "small items", Effect: "deny", Tools: []string{"create_*"}, When: "args.title.size() > 20"},
	)}, func(t *testing.T, w *world) {
		w.obliging()
		names := w.listed(t, "ada")
		require.NotContains(t, names, "gh_comment")
		require.Contains(t, names, "gh_get", "what the operator says only reads")
		require.Contains(t, names, "create_work_item", "a tool that is denied for some arguments is there")
		require.Contains(t, w.listed(t, "bo"), "create_work_item")

		_, err := call(t, w, "gh_comment", `{"no":"look at arguments"}`)
		f := refusal(t, err)
		require.Equal(t, fault.Forbidden, f.Class)
		require.Equal(t, "DENIED_BY_POLICY", f.Reason)
		require.Equal(t, "The company's policy does not let you make this call of `gh_comment`. Ask ines.", f.Message)
		require.Equal(t, "no comments", f.Facts["rule"])
		_, err = call(t, w, "gh_get", `{}`)
		require.NoError(t, err)

		_, err = call(t, w, "create_work_item", `{"title":"short"}`)
		require.NoError(t, err)
		_, err = call(t, w, "create_work_item", `{"title":"much, much longer than short"}`)
		require.Equal(t, "small items", refusal(t, err).Facts["rule"])
		_, err = w.console.CallTool(asOperator(t.Context()), &toolregistryv1.CallToolRequest{
			Tool: "create_work_item", ArgumentsJson: `{"title":"much, much longer than short"}`,
		})
		require.NoError(t, err, "the policy is about seats")
	})
}

func TestNoSpellingOfAnArgumentPassesARuleBy(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: ruled("allow",
		&companyv1.ToolRule{Name: "few", Effect: "deny", Tools: []string{"create_work_item"}, When: "args.estimate_minutes > 5"},
		&companyv1.ToolRule{Name: "one", Effect: "deny", Tools: []string{"gh_comment"}, When: "args.id == 1"},
	)}).obliging()
	for _, minutes := range []string{`6`, `"6"`, `6e0`, `6.0`} {
		_, err := call(t, w, "create_work_item", `{"title":"x","estimate_minutes":`+minutes+`}`)
		require.Equal(t, "few", refusal(t, err).Facts["rule"], minutes)
	}
	_, err := call(t, w, "gh_comment", `{"id":1,"id":2}`)
	require.Contains(t, refusal(t, err).Message, "`id` is given twice")
	_, err = call(t, w, "gh_comment", `{}`)
	require.Equal(t, "one", refusal(t, err).Facts["rule"], "a condition that fails does not allow")
	_, err = call(t, w, "gh_comment", `{"id":2}`)
	require.NoError(t, err)
	_, err = call(t, w, "gh_comment", `{"id":1.0}`)
	require.Equal(t, "one", refusal(t, err).Facts["rule"])
}

func TestWhateverIsDeniedASeatCanEndItsTurn(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: ruled("deny", &companyv1.ToolRule{Name: "read", Effect: "allow", Tools: []string{"gh_get"}})}).obliging()
	require.ElementsMatch(t, []string{"gh_get", "submit_work"}, w.listed(t, "ada"))
	_, err := call(t, w, "create_work_item", `{"title":"x"}`)
	require.Equal(t, "DENIED_BY_POLICY", refusal(t, err).Reason)
	require.Empty(t, refusal(t, err).Facts["rule"])
}

func TestEveryDecisionIsKeptWithItsRule(t *testing.T) {
	t.Parallel()
	w := build(t, options{bus: true, company: ruled("allow",
		&companyv1.ToolRule{Name: "open", Effect: "allow", Tools: []string{"gh_get"}},
		&companyv1.ToolRule{Name: "closed", Effect: "deny", Tools: []string{"gh_*"}},
	)}).obliging()
	for _, tool := range []string{"gh_get", "gh_comment", "search", "no_such_tool"} {
		_, _ = call(t, w, tool, `{}`)
	}
	kept := map[string][]string{}
	require.Eventually(t, func() bool {
		for _, c := range calls(t, w, &toolregistryv1.ListCallsRequest{Seat: "ada"}).GetCalls() {
			kept[c.GetTool()] = []string{c.GetDecision(), c.GetRule(), c.GetStatus()}
		}
		return len(kept) == 4
	}, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, map[string][]string{
		"gh_get": {"allow", "open", "ok"}, "gh_comment": {"deny", "closed", "refused"}, "search": {"allow", "", "ok"}, "no_such_tool": {"", "", "refused"},
	}, kept)

	t.Run("and another policy is tried on them", func(t *testing.T) {
		since := timestamppb.New(time.Now().Add(-time.Hour))
		answer, err := w.console.SimulatePolicy(asOperator(t.Context()), &toolregistryv1.SimulatePolicyRequest{Since: since, PolicyYaml: `
tool_policy:
  otherwise: deny
  rules:
    - {name: reads, effect: allow, when: tool.read_only == true}
    - {name: comments, effect: ask, units: [desk], tools: [gh_comment], when: "!has(args.id)"}
`})
		require.NoError(t, err)
		require.EqualValues(t, 3, answer.GetExamined(), "a call that ended before the policy was asked is not decided now either")
		require.Equal(t, map[string]int32{"allow": 1, "ask": 1, "deny": 1}, answer.GetDecisions())
		var differences [][]string
		for _, d := range answer.GetDifferences() {
			differences = append(differences, []string{d.GetTool(), d.GetWas(), d.GetWasRule(), d.GetWouldBe(), d.GetWouldBeRule()})
		}
		slices.SortFunc(differences, slices.Compare)
		require.Equal(t, [][]string{{"gh_comment", "deny", "closed", "ask", "comments"}, {"search", "allow", "", "deny", ""}}, differences)

		answer, err = w.console.SimulatePolicy(asOperator(t.Context()), &toolregistryv1.SimulatePolicyRequest{Limit: 1})
		require.NoError(t, err)
		require.EqualValues(t, 1, answer.GetExamined())
		for yaml, want := range map[string]string{
			"rules: [{name: a, effect: deny, seats: [eve]}]":       `rules[0].seats[0] no seat has the handle or name "eve"`,
			"rules: [{name: a, effect: deny, units: [nowhere]}]":   `rules[0].units[0] no unit has the name or id "nowhere"`,
			"rules: [{name: a, effect: deny, when: 'seat.x > 1'}]": "rules[0].when line 1",
		} {
			_, err = w.console.SimulatePolicy(asOperator(t.Context()), &toolregistryv1.SimulatePolicyRequest{PolicyYaml: yaml})
			require.Equal(t, fault.Invalid, refusal(t, err).Class)
			require.Contains(t, refusal(t, err).Message, want)
		}
	})
}

func TestAnExplanationSaysWhyASeatHasAToolOrLacksIt(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: ruled("allow",
		&companyv1.ToolRule{Name: "bo only", Effect: "allow", Seats: []string{"bo"}},
		&companyv1.ToolRule{Name: "big", Effect: "ask", Tools: []string{"gh_comment"}, When: "args.id > 5", ExpireSeconds: 60},
		&companyv1.ToolRule{Name: "no search", Effect: "deny", Tools: []string{"search"}},
	)}).obliging()
	explain := func(seat, tool, arguments string) *toolregistryv1.ExplainToolResponse {
		t.Helper()
		answer, err := w.console.ExplainTool(asOperator(t.Context()), &toolregistryv1.ExplainToolRequest{Seat: seat, Tool: tool, ArgumentsJson: arguments})
		require.NoError(t, err)
		return answer
	}
	open := explain("ada", "gh_comment", "")
	require.Equal(t, "depends", open.GetDecision())
	require.True(t, open.GetListed())
	require.Equal(t, "mcp:gh", open.GetTool().GetSource())
	require.Equal(t, []string{"does_not_fit", "depends", "does_not_fit"},
		[]string{open.GetRules()[0].GetVerdict(), open.GetRules()[1].GetVerdict(), open.GetRules()[2].GetVerdict()})
	require.Equal(t, "its seats do not name `ada`", open.GetRules()[0].GetBecause())
	big := explain("ada", "gh_comment", `{"id":6}`)
	require.Equal(t, []string{"ask", "big"}, []string{big.GetDecision(), big.GetRule()})
	require.Equal(t, "A call of `gh_comment` by `ada` waits for a person, for 1m0s at the most: the rule `big` decides.", big.GetExplanation())
	require.Equal(t, "allow", explain("ada", "gh_comment", `{"id":5}`).GetDecision())
	denied := explain("ada", "search", "")
	require.Equal(t, "deny", denied.GetDecision())
	require.False(t, denied.GetListed())
	require.Equal(t, "allow", explain("ada", "submit_work", "").GetDecision())
	require.Equal(t, "refused", explain("ada", "odd", "").GetDecision())
	require.Contains(t, explain("ada", "odd", "").GetExplanation(), "cannot be called")
	require.Contains(t, explain("ada", "gh_coment", "").GetExplanation(), "Did you mean `gh_comment`?")
	require.Contains(t, explain("ada", "search_knowledge", "").GetExplanation(), "which this company does not run")
	_, err := w.console.ExplainTool(asOperator(t.Context()), &toolregistryv1.ExplainToolRequest{Seat: "eve", Tool: "search"})
	require.Equal(t, fault.NotFound, refusal(t, err).Class)
	_, err = w.turn.ExplainTool(asSeat(t.Context()), &toolregistryv1.ExplainToolRequest{Seat: "ada", Tool: "search"})
	require.Equal(t, fault.Forbidden, refusal(t, err).Class)
}
