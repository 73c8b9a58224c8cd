package query_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

func refused(t *testing.T, params query.Params, field, says string) {
	t.Helper()
	_, err := query.Parse(params)
	f, ok := fault.As(err)
	require.True(t, ok, "%v must be refused", params)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, field, f.Field, f.Message)
	require.Contains(t, f.Message, says)
}

func TestAnUnparsedParameterIsRefusedNeverIgnored(t *testing.T) {
	t.Parallel()
	refused(t, query.Params{"asignee": "me"}, "asignee", "did you mean assignee")
	refused(t, query.Params{"colour": "red"}, "colour", "asked_by, asked_of")
	refused(t, query.Params{"status": "doing"}, "status", "todo, in_progress, in_review, done, cancelled, closed")
	refused(t, query.Params{"priority": "hgh"}, "priority", "did you mean high")
	refused(t, query.Params{"label": ""}, "label", "empty member")
	refused(t, query.Params{"status": "todo,,done"}, "status", "empty member")
	refused(t, query.Params{"q": "  "}, "q", "say something")
	refused(t, query.Params{"q": "a\x00b"}, "q", "no text")
	refused(t, query.Params{"q": "\xff"}, "q", "no text")
	refused(t, query.Params{"blocked": "yes"}, "blocked", "true, false")
	refused(t, query.Params{"flag": "odd"}, "flag", "cycle, too_deep")
	refused(t, query.Params{"limit": "501"}, "limit", "from 1 to 500")
	refused(t, query.Params{"limit": "0"}, "limit", "from 1 to 500")
	refused(t, query.Params{"group_by": "status", "group_limit": "101"}, "group_limit", "from 1 to 100")
	refused(t, query.Params{"group_by": "mood"}, "group_by", "due:bucket")
	refused(t, query.Params{"group": "todo"}, "group", "group_by")
	refused(t, query.Params{"totals": "sum:mood"}, "totals", "estimate, points, f.<slug>")
	refused(t, query.Params{"totals": "mode:points"}, "totals", "median")
	refused(t, query.Params{"subtasks": "nested"}, "subtasks", "collapsed, expanded, separate")
	refused(t, query.Params{"show_closed": "recent:0d"}, "show_closed", "recent:14d")
	refused(t, query.Params{"container": "galaxy"}, "container", "workspace")
	refused(t, query.Params{"container": "project:"}, "container", "workspace")
	refused(t, query.Params{"sort": "rank"}, "sort", "project")
	refused(t, query.Params{"sort": "priorities"}, "sort", "whose")
	refused(t, query.Params{"removed": "true", "sort": "due"}, "sort", "trash")
	refused(t, query.Params{"sort": "removed"}, "sort", "trash")
	refused(t, query.Params{"removed": "true", "group_by": "status"}, "group_by", "trash")
	refused(t, query.Params{"f.Team": "core"}, "f.Team", "slug")
	refused(t, query.Params{"f.team": "gt:"}, "f.team", "needs a value")
}

func TestSpendIsNotKeptAndNothingIsSortedByIt(t *testing.T) {
	t.Parallel()
	refused(t, query.Params{"sort": "-spend"}, "sort", "spend is not kept")
}

func TestAnAliasAndItsKeyAreOneAndMayNotBothBeGiven(t *testing.T) {
	t.Parallel()
	refused(t, query.Params{"project": "OPS", "container": "workspace"}, "project", "say the same")
	q, err := query.Parse(query.Params{"project": "ops", "text": "cert", "label": "infra", "open_only": "true"})
	require.NoError(t, err)
	require.Equal(t, query.Params{"container": "project:OPS", "q": "cert", "tag": "infra", "status_group": "not_started,active"}, q.Params())
}

func TestAnyHasOneLevel(t *testing.T) {
	t.Parallel()
	refused(t, query.Params{"any": `[{"any": "[]"}]`}, "any", "cannot stand within any")
	refused(t, query.Params{"any": `[{"sort": "due"}]`}, "any", "cannot stand within any")
	refused(t, query.Params{"any": `[]`}, "any", "1 to 8")
	refused(t, query.Params{"any": `[{}]`}, "any", "says nothing")
	refused(t, query.Params{"any": `{"a": 1}`}, "any", "list of objects")
	refused(t, query.Params{"any": `[{"asignee": "me"}]`}, "asignee", "assignee")
	q, err := query.Parse(query.Params{"any": `[{"assignee": "me"}, {"flag": "cycle,one_sided", "label": "infra"}]`})
	require.NoError(t, err)
	require.Len(t, q.Any, 2)
	require.Equal(t, []string{"cycle", "one_sided"}, q.Any[1][0].Values)
}

func TestExplicitArgumentsOverrideTheViewWhichBeatsThePreset(t *testing.T) {
	t.Parallel()
	preset, err := query.Preset("my_queue")
	require.NoError(t, err)
	view := query.Params{"tag": "infra", "sort": "due", "assignee": "ines"}
	merged := query.Merge(preset, view, query.Params{"sort": "-created", "status": "done", "label": "shop"})
	require.Equal(t, query.Params{"assignee": "ines", "sort": "-created", "status": "done", "label": "shop"}, merged)
	_, err = query.Preset("mine")
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}

func TestEveryPresetIsAQuery(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my_queue", "priorities", "triage", "blocked", "overdue", "ready"} {
		p, err := query.Preset(name)
		require.NoError(t, err)
		_, err = query.Parse(p)
		require.NoError(t, err, name)
	}
}

func TestAnInadmissibleOperatorIsRefusedNamingTheAdmissible(t *testing.T) {
	t.Parallel()
	names := query.Names{
		Colleague: func(string) (string, error) { return "ines", nil },
		Item:      func(string) (string, error) { return "id", nil },
	}
	declared := func(kind string) field.Declaration {
		return field.Declaration{ID: "1", Slug: "x", Type: kind, Options: []field.Option{{ID: "o1", Slug: "core", Name: "The Core"}}}
	}
	for _, c := range []struct{ kind, value, says string }{
		{field.Number, "contains:3", "eq, ne, lt, lte, gt, gte, range, in, not_in, set, unset"},
		{field.Number, "gt:many", "no number"},
		{field.Text, "gt:3", "contains, not_contains, starts_with"},
		{field.Checkbox, "maybe", "true, false"},
		{field.Date, "lt:someday", "no date"},
		{field.Labels, "contains:a", "any, all, none, set, unset"},
		{field.Dropdown, "cor", "did you mean core"},
		{field.People, "starts_with:a", "eq, ne, in, not_in, set, unset"},
	} {
		q, err := query.Parse(query.Params{"f.x": c.value})
		require.NoError(t, err)
		_, err = q.Where[0].Bind(declared(c.kind), names)
		f, ok := fault.As(err)
		require.True(t, ok, c)
		require.Equal(t, "f.x", f.Field)
		require.Contains(t, f.Message, c.says)
	}
	for _, c := range []struct{ kind, value, stored string }{
		{field.Number, "3.50", "3.5"},
		{field.Dropdown, "the core", "o1"},
		{field.Labels, "core", "o1"},
		{field.People, "Ines Rocha", "ines"},
		{field.Relationship, "OPS-1", "id"},
		{field.Text, "a: b, c", "a: b, c"},
	} {
		q, err := query.Parse(query.Params{"f.x": c.value})
		require.NoError(t, err)
		bound, err := q.Where[0].Bind(declared(c.kind), names)
		require.NoError(t, err)
		require.Equal(t, []string{c.stored}, bound.Values)
	}
	all := map[field.Operator]bool{}
	for _, kind := range []string{field.Text, field.Textarea, field.Number, field.Date, field.Dropdown, field.Labels, field.Checkbox, field.People} {
		for _, op := range declared(kind).Operators() {
			value := string(op)
			if op != field.IsSet && op != field.Unset {
				value += ":1..2"
			}
			q, err := query.Parse(query.Params{"f.x": value})
			require.NoError(t, err, op)
			require.Equal(t, op, q.Where[0].Op)
			all[op] = true
		}
	}
	require.Len(t, all, 17, "there are 17 operators and each is some type's")
}

// whatever parses prints as something that parses as the same.
func printsBack(t *testing.T, params query.Params) {
	t.Helper()
	q, err := query.Parse(params)
	if err != nil {
		f, ok := fault.As(err)
		require.True(t, ok, "a refusal is a fault: %v", err)
		require.Equal(t, fault.Invalid, f.Class)
		return
	}
	printed := q.Params()
	again, err := query.Parse(printed)
	require.NoError(t, err, "%v printed as %v", params, printed)
	require.Equal(t, q, again)
	require.True(t, maps.Equal(printed, again.Params()))
}

func FuzzParse(f *testing.F) {
	for _, seed := range [][4]string{
		{"assignee", "me", "sort", "-priority"},
		{"f.team", "any:core,infra", "due", "range:sow..eow"},
		{"any", `[{"assignee":"me"},{"due":"overdue"}]`, "group_by", "due:week"},
		{"show_closed", "recent:14d", "totals", "sum:points,p90:f.cost,count"},
		{"container", "project:ops", "open_only", "true"},
		{"f.a", "set", "f.b", "unset:"},
		{"f.c", "eq:eq:3", "group", ""},
		{"any", "[{\"q\":\"\\ud800\"}]", "limit", "+5"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, a, x, b, y string) {
		printsBack(t, query.Params{a: x, b: y})
		if raw, err := json.Marshal([]map[string]string{{a: x}, {b: y}}); err == nil {
			printsBack(t, query.Params{"any": string(raw)})
		}
	})
}
