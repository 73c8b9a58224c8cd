package field_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
)

func TestNullClearsAndSoDoesAnEmptyTextOrList(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	res, err := s.Apply(nil, map[string]any{"note": "x", "marks": []any{"red"}, "day": "2026-01-01", "count": 1.0}, resolver(t))
	require.NoError(t, err)
	res, err = s.Apply(stored(t, res.Values), map[string]any{"note": nil, "marks": []any{}, "day": ""}, resolver(t))
	require.NoError(t, err)
	require.True(t, res.Changed)
	require.Equal(t, map[string]any{"count": 1.0}, s.BySlug(res.Values))
	require.Equal(t, field.Described{From: "day=2026-01-01, marks=red, note=x"}, res.Describe)
	res, err = s.Apply(res.Values, map[string]any{"note": nil}, resolver(t))
	require.NoError(t, err)
	require.False(t, res.Changed, "what is not there is cleared already")
}

func TestARefusedValueLeavesAllOfThemAsTheyAre(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	before := map[string]any{}
	_, err := s.Apply(before, map[string]any{"count": 1.0, "done": "yes"}, resolver(t))
	require.Equal(t, "fields.done", refused(t, err).Field)
	require.Empty(t, before)
}

func TestRequiredFieldsMustBeThereAndCannotBeCleared(t *testing.T) {
	t.Parallel()
	doc := declare(t,
		field.Declaration{Slug: "cost", Type: field.Number, Required: true},
		field.Declaration{Slug: "team", Type: field.Text, Required: true, AppliesTo: []string{"bug"}},
		field.Declaration{Slug: "step", Type: field.Number, RequiredInSubtasks: true})
	task := field.Effective(doc, nil, field.Scope{Type: "task"})
	require.Contains(t, refused(t, task.Missing(nil)).Message, "cost, which is demanded")
	bug := field.Effective(doc, nil, field.Scope{Type: "bug"})
	require.Contains(t, refused(t, bug.Missing(nil)).Message, "cost, team, which are demanded")
	subtask := field.Effective(doc, nil, field.Scope{Type: "bug", Subtask: true})
	require.Equal(t, "fields.step", refused(t, subtask.Missing(nil)).Field)
	res, err := task.Apply(nil, map[string]any{"cost": 0.0}, resolver(t))
	require.NoError(t, err)
	require.NoError(t, task.Missing(res.Values))
	_, err = task.Apply(stored(t, res.Values), map[string]any{"cost": nil}, resolver(t))
	require.Contains(t, refused(t, err).Message, "cannot be cleared")
	res, err = subtask.Apply(res.Values, map[string]any{"cost": nil}, resolver(t))
	require.NoError(t, err, "a subtask need not have it")
	require.Empty(t, res.Values)
}

func TestAFieldIsForTheTypesItAppliesTo(t *testing.T) {
	t.Parallel()
	doc := declare(t, field.Declaration{Slug: "steps", Type: field.Text, AppliesTo: []string{"bug"}})
	bug, task := field.Effective(doc, nil, field.Scope{Type: "bug"}), field.Effective(doc, nil, field.Scope{Type: "task"})
	res, err := bug.Apply(nil, map[string]any{"steps": "x"}, resolver(t))
	require.NoError(t, err)
	_, err = task.Apply(nil, map[string]any{"steps": "x"}, resolver(t))
	require.Contains(t, refused(t, err).Message, "that is for bug")
	require.True(t, task.Read(res.Values)[0].Foreign)
	require.False(t, bug.Read(res.Values)[0].Foreign)
	res, err = task.Apply(res.Values, map[string]any{"steps": nil}, resolver(t))
	require.NoError(t, err, "a value that came along can be cleared")
	require.Empty(t, res.Values)
	require.Len(t, field.Effective(doc, nil, field.Scope{}).Fields(), 1, "no type stands for all")
}

func TestTheEffectiveSetIsTheUnionAndAProjectsFieldShadowsTheOneWithItsID(t *testing.T) {
	t.Parallel()
	workspace := declare(t, field.Declaration{Slug: "cost", Type: field.Number}, field.Declaration{Slug: "note", Type: field.Text})
	own, changed, err := field.Document(nil).Revise([]field.Declaration{
		{ID: workspace[0].ID, Slug: "cost", Name: "Cost in EUR", Type: field.Number, Precision: ptr(int32(2))},
		{Slug: "local", Name: "Local", Type: field.Checkbox, Pinned: true},
	}, field.Terms{Types: terms.Types, Workspace: workspace, Author: "ops-lead", Now: declaredAt})
	require.NoError(t, err)
	require.True(t, changed)
	s := field.Effective(workspace, own, field.Scope{Type: "task"})
	var slugs []string
	for _, d := range s.Fields() {
		slugs = append(slugs, d.Slug)
	}
	require.Equal(t, []string{"local", "cost", "note"}, slugs, "pinned ones come first")
	require.Equal(t, []string{workspace[0].ID}, s.Shadowed())
	require.True(t, s.Own(own[1].ID))
	_, err = put(t, s, "cost", 1.25)
	require.NoError(t, err)
	_, err = put(t, set(workspace), "cost", 1.25)
	require.Error(t, err)
	workspace[0].Archived = true
	_, err = put(t, field.Effective(workspace, own, field.Scope{}), "cost", 1.0)
	require.Contains(t, refused(t, err).Message, "archived", "the workspace archives for everybody")
}

func TestAnUnknownFieldIsRefusedWithTheNearest(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	_, err := s.Apply(nil, map[string]any{"severty": "low"}, resolver(t))
	f := refused(t, err)
	require.Equal(t, "fields.severty", f.Field)
	require.Contains(t, f.Message, "did you mean severity?")
	_, err = set(nil).Apply(nil, map[string]any{"x": 1.0}, resolver(t))
	require.Contains(t, refused(t, err).Message, "there are none here")
}

func TestAFieldCannotBeNamedTwiceInOneChange(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	_, err := set(doc).Apply(nil, map[string]any{"note": "a", doc[0].ID: "b"}, resolver(t))
	require.Contains(t, refused(t, err).Message, "twice")
}

func TestFieldsHiddenFromAgentsAreNotThereForThem(t *testing.T) {
	t.Parallel()
	s := set(declare(t, field.Declaration{Slug: "salary", Type: field.Number, HideFromAgents: true}, field.Declaration{Slug: "note", Type: field.Text}))
	res, err := s.Apply(nil, map[string]any{"salary": 5.0, "note": "x"}, resolver(t))
	require.NoError(t, err)
	seen := s.ForAgents()
	require.Equal(t, map[string]any{"note": "x"}, seen.BySlug(res.Values))
	require.Len(t, seen.Read(res.Values), 1, "nor under its id")
	_, err = seen.Apply(res.Values, map[string]any{"salary": 6.0}, resolver(t))
	require.NotContains(t, refused(t, err).Message, "salary,")
	require.Len(t, s.Read(res.Values), 2)
}

func TestAnArchivedFieldKeepsItsValuesAndTakesNoNewOnes(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	res, err := set(doc).Apply(nil, map[string]any{"note": "x"}, resolver(t))
	require.NoError(t, err)
	doc, _, err = doc.Revise(doc[1:], terms)
	require.NoError(t, err)
	s := set(doc)
	require.Equal(t, map[string]any{"note": "x"}, s.BySlug(res.Values))
	_, err = s.Apply(res.Values, map[string]any{"note": "y"}, resolver(t))
	require.Contains(t, refused(t, err).Message, "archived")
	res, err = s.Apply(res.Values, map[string]any{"note": nil}, resolver(t))
	require.NoError(t, err)
	require.Empty(t, res.Values)
}

func TestAnArchivedOptionStaysWhereItIs(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	res, err := set(doc).Apply(nil, map[string]any{"marks": []any{"red", "green"}}, resolver(t))
	require.NoError(t, err)
	for n := range doc {
		if doc[n].Slug == "marks" {
			doc[n].Options[0].Archived = true
		}
	}
	s := set(doc)
	res, err = s.Apply(stored(t, res.Values), map[string]any{"marks": []any{"red", "blue"}}, resolver(t))
	require.NoError(t, err, "the item has it already")
	require.Equal(t, []any{"red", "blue"}, s.BySlug(res.Values)["marks"])
	_, err = s.Apply(nil, map[string]any{"marks": "red"}, resolver(t))
	require.Contains(t, refused(t, err).Message, "there are green, blue")
}

func TestWhatNothingDeclaresIsSaidToBeSo(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	values := map[string]any{"0193a3d0-5f1e-7c1c-9c55-000000000000": "old"}
	require.Empty(t, s.BySlug(values))
	readings := s.Read(values)
	require.Len(t, readings, 1)
	require.True(t, readings[0].Undeclared)
}

func TestAnItemHasAHundredAndTwentyEightValuesAtMost(t *testing.T) {
	t.Parallel()
	var wanted, own []field.Declaration
	for n := range field.MaxFields {
		wanted = append(wanted, field.Declaration{Slug: fmt.Sprint("w", n), Type: field.Checkbox})
		own = append(own, field.Declaration{Slug: fmt.Sprint("p", n), Type: field.Checkbox})
	}
	s := field.Effective(declare(t, wanted...), declare(t, own...), field.Scope{})
	full := map[string]any{"gone": "x"}
	change := map[string]any{}
	for n := range field.MaxFields {
		change[fmt.Sprint("w", n)], change[fmt.Sprint("p", n)] = true, true
	}
	res, err := s.Apply(nil, change, resolver(t))
	require.NoError(t, err)
	require.Len(t, res.Values, field.MaxValues)
	_, err = s.Apply(full, change, resolver(t))
	require.Contains(t, refused(t, err).Message, "129 values; an item has 128 at most")
}

func TestHistoryDescribesValuesAndCutsSetsAtAWholeMember(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	res, err := s.Apply(nil, map[string]any{"note": strings.Repeat("x", 700), "severity": "high", "cost": 12.5, "done": true, "marks": []any{"red", "blue"}}, resolver(t))
	require.NoError(t, err)
	require.Equal(t, "cost=12.5, done=true, marks=red blue, note=700 bytes, severity=high", res.Describe.To)
	var wanted []field.Declaration
	change := map[string]any{}
	for n := range 40 {
		slug := fmt.Sprintf("field-%02d", n)
		wanted = append(wanted, field.Declaration{Slug: slug, Type: field.Text})
		change[slug] = strings.Repeat("y", 30)
	}
	res, err = set(declare(t, wanted...)).Apply(nil, change, resolver(t))
	require.NoError(t, err)
	require.LessOrEqual(t, len(res.Describe.To), 600)
	require.Regexp(t, `y, \+\d+ more$`, res.Describe.To)
	var many []string
	for n := range 128 {
		many = append(many, fmt.Sprintf("option-%03d", n))
	}
	res, err = set(declare(t, field.Declaration{Slug: "m", Type: field.Labels, Options: options(many...)})).Apply(nil, map[string]any{"m": anys(many)}, resolver(t))
	require.NoError(t, err)
	require.Regexp(t, `^m=option-000 .* \+\d+ more$`, res.Describe.To)
}
