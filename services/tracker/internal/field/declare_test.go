package field_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
)

func reject(t *testing.T, doc field.Document, d field.Declaration) (setting, message string) {
	t.Helper()
	if d.Name == "" {
		d.Name = "Name"
	}
	_, _, err := doc.Revise(append(append([]field.Declaration{}, doc...), d), terms)
	require.Error(t, err, "%+v", d)
	f := refused(t, err)
	setting = strings.TrimPrefix(f.Field, fmt.Sprintf("fields[%d].", len(doc)))
	return setting, f.Message
}

func TestASettingThatATypeCannotReadIsRefused(t *testing.T) {
	t.Parallel()
	for setting, d := range map[string]field.Declaration{
		"options":   {Type: field.Text, Options: options("a")},
		"unit":      {Type: field.Progress, Unit: "h"},
		"precision": {Type: field.Progress, Precision: ptr(int32(0))},
		"min":       {Type: field.Text, Min: ptr(1.0)},
		"max":       {Type: field.Date, Max: ptr(1.0)},
		"time":      {Type: field.Number, Time: true},
		"multi":     {Type: field.Labels, Multi: true, Options: options("a")},
		"progress":  {Type: field.Number, Progress: "manual"},
	} {
		d.Slug = "x"
		at, message := reject(t, nil, d)
		require.Equal(t, setting, at)
		require.Contains(t, message, "does not read "+setting)
	}
}

func TestRollupProgressAutoAndTrackingAreRefusedBecauseNothingComputesThem(t *testing.T) {
	t.Parallel()
	at, message := reject(t, nil, field.Declaration{Slug: "x", Type: field.Rollup})
	require.Equal(t, "type", at)
	require.Contains(t, message, "nothing computes it")
	for _, kept := range []string{"auto", "tracking"} {
		at, message = reject(t, nil, field.Declaration{Slug: "x", Type: field.Progress, Progress: kept})
		require.Equal(t, "progress", at)
		require.Contains(t, message, "nothing computes it")
	}
	at, _ = reject(t, nil, field.Declaration{Slug: "x", Type: field.Progress, Progress: "weekly"})
	require.Equal(t, "progress", at)
}

func TestADeclarationIsRefusedByTheSettingThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at string
		d  field.Declaration
	}{
		{"slug", field.Declaration{Slug: "Has Space", Type: field.Text}},
		{"slug", field.Declaration{Slug: strings.Repeat("x", 65), Type: field.Text}},
		{"name", field.Declaration{Slug: "x", Name: strings.Repeat("x", 129), Type: field.Text}},
		{"type", field.Declaration{Slug: "x", Type: "colour"}},
		{"unit", field.Declaration{Slug: "x", Type: field.Number, Unit: strings.Repeat("h", 17)}},
		{"precision", field.Declaration{Slug: "x", Type: field.Number, Precision: ptr(int32(7))}},
		{"min", field.Declaration{Slug: "x", Type: field.Number, Min: ptr(2.0), Max: ptr(1.0)}},
		{"min", field.Declaration{Slug: "x", Type: field.Progress, Min: ptr(200.0)}},
		{"max", field.Declaration{Slug: "x", Type: field.Number, Max: ptr(math.Inf(1))}},
		{"applies_to[1]", field.Declaration{Slug: "x", Type: field.Text, AppliesTo: []string{"bug", "saga"}}},
		{"hide_from_agents", field.Declaration{Slug: "x", Type: field.Text, HideFromAgents: true, Required: true}},
		{"hide_from_agents", field.Declaration{Slug: "x", Type: field.Text, HideFromAgents: true, RequiredInSubtasks: true}},
		{"options", field.Declaration{Slug: "x", Type: field.Dropdown}},
		{"options[0].slug", field.Declaration{Slug: "x", Type: field.Dropdown, Options: []field.Option{{Slug: "A B", Name: "a"}}}},
		{"options[0].name", field.Declaration{Slug: "x", Type: field.Dropdown, Options: []field.Option{{Slug: "a"}}}},
		{"options[0].color", field.Declaration{Slug: "x", Type: field.Dropdown, Options: []field.Option{{Slug: "a", Name: "A", Color: "red"}}}},
		{"options[1]", field.Declaration{Slug: "x", Type: field.Dropdown, Options: []field.Option{{Slug: "a", Name: "b"}, {Slug: "b", Name: "c"}}}},
		{"options[1]", field.Declaration{Slug: "x", Type: field.Dropdown, Options: []field.Option{{Slug: "a", Name: "One"}, {Slug: "b", Name: "ONE"}}}},
		{"id", field.Declaration{ID: "cost", Slug: "x", Type: field.Text}},
		{"slug", field.Declaration{ID: "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10", Slug: "note", Type: field.Text}},
	} {
		at, _ := reject(t, everything(t), c.d)
		require.Equal(t, c.at, at, "%+v", c.d)
	}
}

func TestAFieldThatIsLeftOutIsArchivedAndThatIsOneWay(t *testing.T) {
	t.Parallel()
	doc := declare(t, field.Declaration{Slug: "a", Type: field.Text}, field.Declaration{Slug: "b", Type: field.Text})
	next, changed, err := doc.Revise(doc[:1], terms)
	require.NoError(t, err)
	require.True(t, changed)
	require.Len(t, next, 2)
	require.True(t, next[1].Archived)
	_, changed, err = next.Revise(doc[:1], terms)
	require.NoError(t, err)
	require.False(t, changed, "again is no change")
	_, _, err = next.Revise(doc, terms)
	require.Contains(t, refused(t, err).Message, "stays so")
	next, _, err = next.Revise([]field.Declaration{doc[0], {Slug: "b", Name: "Another", Type: field.Number}}, terms)
	require.NoError(t, err, "the slug is free again")
	require.Len(t, next, 3)
	require.NotEqual(t, doc[1].ID, next[1].ID)
}

func TestAFieldIsItselfByItsIDOrByItsSlugAndKeepsItsTypeAndItsStamps(t *testing.T) {
	t.Parallel()
	doc := declare(t, field.Declaration{Slug: "team", Type: field.Dropdown, Options: options("core", "web")})
	later := field.Terms{Types: terms.Types, Author: "bob", Now: declaredAt.Add(time.Hour)}
	next, changed, err := doc.Revise([]field.Declaration{{Slug: "team", Name: "Squad", Type: field.Dropdown, Options: options("web", "api"), Author: "mallory"}}, later)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, doc[0].ID, next[0].ID)
	require.Equal(t, "ines", next[0].Author, "who declared it is not for a caller to say")
	require.Equal(t, declaredAt, next[0].CreatedAt)
	require.Equal(t, doc[0].Options[1].ID, next[0].Options[0].ID)
	require.Equal(t, "core", next[0].Options[2].Slug)
	require.True(t, next[0].Options[2].Archived, "an option that is left out is archived")
	renamed := next[0]
	renamed.Slug = "squad"
	next, _, err = next.Revise([]field.Declaration{renamed}, later)
	require.NoError(t, err)
	require.Equal(t, doc[0].ID, next[0].ID)
	_, _, err = next.Revise([]field.Declaration{{Slug: "squad", Name: "x", Type: field.Text}}, later)
	require.Contains(t, refused(t, err).Message, "cannot become a text")
}

func TestAProjectChangesAFieldOfTheWorkspaceByItsIDAndDoesNotTakeItsSlug(t *testing.T) {
	t.Parallel()
	workspace := declare(t, field.Declaration{Slug: "cost", Type: field.Number})
	own := field.Terms{Types: terms.Types, Workspace: workspace, Author: "ops-lead", Now: declaredAt}
	_, _, err := field.Document(nil).Revise([]field.Declaration{{Slug: "cost", Name: "Cost", Type: field.Number}}, own)
	require.Contains(t, refused(t, err).Message, workspace[0].ID, "the id to give is named")
	_, _, err = field.Document(nil).Revise([]field.Declaration{{ID: workspace[0].ID, Slug: "cost", Name: "Cost", Type: field.Text}}, own)
	require.Contains(t, refused(t, err).Message, "cannot become")
	doc, _, err := field.Document(nil).Revise([]field.Declaration{{ID: workspace[0].ID, Slug: "price", Name: "Price", Type: field.Number}}, own)
	require.NoError(t, err)
	doc, changed, err := doc.Revise(nil, own)
	require.NoError(t, err)
	require.True(t, changed)
	require.Empty(t, doc, "left out, the workspace's form is back")
	workspace[0].Archived = true
	_, _, err = field.Document(nil).Revise([]field.Declaration{{ID: workspace[0].ID, Slug: "cost", Name: "Cost", Type: field.Number}}, own)
	require.Contains(t, refused(t, err).Message, "whole workspace")
}

func TestTheWorkspaceDoesNotTakeWhatAProjectHas(t *testing.T) {
	t.Parallel()
	own := declare(t, field.Declaration{Slug: "cost", Type: field.Number})
	workspace := declare(t, field.Declaration{Slug: "note", Type: field.Text}, field.Declaration{Slug: "cost", Type: field.Number})
	f := refused(t, workspace.Clash("OPS", own))
	require.Equal(t, "fields[1].slug", f.Field)
	require.Contains(t, f.Message, "project OPS")
	promoted := declare(t, field.Declaration{ID: own[0].ID, Slug: "cost", Type: field.Number})
	require.NoError(t, promoted.Clash("OPS", own))
	promoted[0].Type = field.Text
	require.Equal(t, "fields[0].type", refused(t, promoted.Clash("OPS", own)).Field)
}

func TestDocumentsHaveLimits(t *testing.T) {
	t.Parallel()
	var wanted []field.Declaration
	for n := range field.MaxFields + 1 {
		wanted = append(wanted, field.Declaration{Slug: fmt.Sprint("f", n), Name: "F", Type: field.Text})
	}
	_, _, err := field.Document(nil).Revise(wanted, terms)
	require.Contains(t, refused(t, err).Message, "there may be 64")
	doc, _, err := field.Document(nil).Revise(wanted[:field.MaxFields], terms)
	require.NoError(t, err)
	doc, _, err = doc.Revise(wanted[1:], terms)
	require.NoError(t, err, "archived ones do not count")
	require.Len(t, doc, field.MaxFields+1)

	many := make([]string, field.MaxOptions+1)
	for n := range many {
		many[n] = fmt.Sprint("o", n)
	}
	at, _ := reject(t, nil, field.Declaration{Slug: "x", Type: field.Labels, Options: options(many...)})
	require.Equal(t, "options", at)
	var full []field.Declaration
	for n := range field.MaxDocumentOptions / field.MaxOptions {
		full = append(full, field.Declaration{Slug: fmt.Sprint("f", n), Name: "F", Type: field.Labels, Options: options(many[1:]...)})
	}
	_, _, err = field.Document(nil).Revise(full, terms)
	require.NoError(t, err)
	_, _, err = field.Document(nil).Revise(append(full, field.Declaration{Slug: "y", Name: "Y", Type: field.Labels, Options: options("one")}), terms)
	require.Contains(t, refused(t, err).Message, "2049 options")
}

func TestOperatorsAreRestrictedByTypeAndTheAdmissibleAreNamed(t *testing.T) {
	t.Parallel()
	doc := everything(t)
	seen := map[field.Operator]bool{}
	for _, d := range doc {
		for _, o := range d.Operators() {
			seen[o] = true
			require.NoError(t, d.Admit("f."+d.Slug, o))
		}
	}
	require.Len(t, seen, 17)
	cost, _ := set(doc).Find("cost")
	f := refused(t, cost.Admit("f.cost", field.Contains))
	require.Equal(t, "f.cost", f.Field)
	require.Contains(t, f.Message, "eq, ne, lt, lte, gt, gte, range, in, not_in, set, unset")
}
