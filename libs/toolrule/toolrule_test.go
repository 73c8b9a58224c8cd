package toolrule_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/toolrule"
)

func ptr(b bool) *bool { return &b }

func arguments(t *testing.T, text string) map[string]any {
	t.Helper()
	args, err := toolrule.Arguments(text)
	require.NoError(t, err)
	return args
}

func TestAConditionSpeaksOfSeatToolAndArguments(t *testing.T) {
	t.Parallel()
	facts := toolrule.Facts{
		Seat: "ada", Unit: "ops", Kind: "agent", Tool: "shop_order", Source: "mcp:shop", ReadOnly: ptr(false),
		Args: arguments(t, `{"amount": 501, "id": 9007199254740993, "rate": 1.5, "to": {"city": "Porto"}, "tags": ["a","b"], "none": null}`),
	}
	for when, want := range map[string]toolrule.Truth{
		`seat.handle == "ada" && seat.unit == "ops" && seat.kind == "agent"`: toolrule.True,
		`tool.name.startsWith("shop_") && tool.source == "mcp:shop"`:         toolrule.True,
		`tool.delivers == ""`:             toolrule.True,
		`tool.read_only == true`:          toolrule.False,
		`tool.destructive == null`:        toolrule.True,
		`tool.destructive != false`:       toolrule.True,
		`args.amount > 500`:               toolrule.True,
		`args.amount > 500.5`:             toolrule.True,
		`args.amount == 501.0`:            toolrule.True,
		`args.id == 9007199254740993`:     toolrule.True,
		`args.id == 9007199254740992`:     toolrule.False,
		`args.rate * 2.0 == 3.0`:          toolrule.True,
		`args.to.city == "Porto"`:         toolrule.True,
		`"b" in args.tags`:                toolrule.True,
		`args.tags.exists(t, t == "c")`:   toolrule.False,
		`has(args.missing)`:               toolrule.False,
		`args.none == null`:               toolrule.True,
		`args["amount"] == 501`:           toolrule.True,
		`args.to.city.matches("^P.*o$")`:  toolrule.True,
		`size(args.tags) == 2`:            toolrule.True,
		`args.tags.all(t, size(t) == 1)`:  toolrule.True,
		`!(seat.unit in ["sales", "hr"])`: toolrule.True,
	} {
		condition, err := toolrule.Compile(when)
		require.NoError(t, err, when)
		got, err := condition.Holds(facts)
		require.NoError(t, err, when)
		require.Equal(t, want, got, when)
	}
}

func TestAConditionDependsOnlyWhereUnknownArgumentsDecide(t *testing.T) {
	t.Parallel()
	facts := toolrule.Facts{Seat: "ada", Tool: "order"}
	for when, want := range map[string]toolrule.Truth{
		`args.amount > 500`:                            toolrule.Depends,
		`seat.handle == "bob" && args.amount > 500`:    toolrule.False,
		`seat.handle == "ada" || args.amount > 500`:    toolrule.True,
		`has(args.amount) && tool.name == "order"`:     toolrule.Depends,
		`tool.name == "order" ? args.x == 1 : false`:   toolrule.Depends,
		`tool.name == "cancel" ? args.x == 1 : false`:  toolrule.False,
		`args.tags.exists(t, t == seat.handle)`:        toolrule.Depends,
		`tool.name == "nothing" && args.a.b.c == null`: toolrule.False,
	} {
		condition, err := toolrule.Compile(when)
		require.NoError(t, err, when)
		got, err := condition.Holds(facts)
		require.NoError(t, err, when)
		require.Equal(t, want, got, when)
	}
}

func TestAConditionThatHasNoValueIsAnError(t *testing.T) {
	t.Parallel()
	facts := toolrule.Facts{Args: arguments(t, `{"amount":"many","on":1,"long":"`+strings.Repeat("a", 1<<20)+`"}`)}
	for when, want := range map[string]string{
		`args.missing == 1`:      "no such key",
		`args.amount > 5`:        "no such overload",
		`!tool.read_only`:        "no such overload",
		`args.on`:                "where true or false is wanted",
		`1 / (args.on - 1) == 1`: "division by zero",
		`["a","b","c","d","e","f","g","h","i","j","k","l","m"].all(p, !args.long.contains(p + "b") && !args.long.endsWith(p + "c"))`: "cost limit",
	} {
		condition, err := toolrule.Compile(when)
		require.NoError(t, err, when)
		_, err = condition.Holds(facts)
		require.ErrorContains(t, err, want, when)
	}
}

func TestAConditionThatCannotMeanAnythingDoesNotCompile(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`seat.handel == "ada"`:          "line 1, column 1 of the condition: `seat` has no `handel`; it has `handle`, `unit` and `kind`",
		`args.x == 1 && tool.readonly`:  "`tool` has no `readonly`; it has `name`, `source`, `read_only`",
		`has(tool.hint)`:                "`tool` has no `hint`",
		`seat.unit.lead == "x"`:         "field selection",
		`seat == "ada"`:                 "`seat` is no value by itself; it has `handle`",
		`user == "x"`:                   "`user` is not known; there are seat.handle",
		`seat.handle == 5`:              "no matching overload",
		`seat.handle`:                   "must answer true or false",
		`args.x ==`:                     "line 1, column",
		`seat.handle.matches("(")`:      "invalid matches argument",
		strings.Repeat("true && ", 800): "at most 4096",
		`[1].all(a, [1].all(b, [1].all(c, a + b + c > 0)))`: "nesting",
	} {
		_, err := toolrule.Compile(when)
		require.ErrorContains(t, err, want, when)
	}
}

func TestArgumentsHaveOneMeaningOrNone(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]any{"a": int64(-3), "b": uint64(18446744073709551615), "c": 0.5, "d": []any{true, nil, "x"}},
		arguments(t, `{"a":-3,"b":18446744073709551615,"c":0.5,"d":[true,null,"x"]}`))
	require.Empty(t, arguments(t, " "))
	for text, want := range map[string]string{
		`{"a":1,"a":2}`:              "`a` is given twice",
		`{"o":{"a":1,"\u0061":2}}`:   "`a` is given twice",
		`[1]`:                        "one JSON object",
		`{} {}`:                      "more text",
		`{"a":`:                      "not JSON",
		`{"a":1e999}`:                "out of range",
		strings.Repeat(`{"a":`, 300): "nested more than 200",
	} {
		_, err := toolrule.Arguments(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestAPatternFitsWholeNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		fits          bool
	}{
		{"create_order", "create_order", true},
		{"create_order", "create_orders", false},
		{"*", "", true},
		{"*", "anything", true},
		{"shop_*", "shop_", true},
		{"shop_*", "shop_order", true},
		{"shop_*", "ashop_order", false},
		{"*_order", "shop_order", true},
		{"*_order", "shop_orders", false},
		{"a*b*c", "abc", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "acb", false},
		{"a*a", "a", false},
		{"mcp:*", "mcp:shop", true},
		{"mcp:*", "builtin", false},
		{"**", "x", true},
		{"", "", true},
		{"a.c", "abc", false},
	} {
		require.Equal(t, c.fits, toolrule.Match(c.pattern, c.name), "%q %q", c.pattern, c.name)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringMatching(`[ab]{0,3}`), 1, 4).Draw(t, "parts")
		fills := rapid.SliceOfN(rapid.StringMatching(`[abc]{0,3}`), len(parts), len(parts)).Draw(t, "fills")
		name := parts[0]
		for i, part := range parts[1:] {
			name += fills[i] + part
		}
		require.True(t, toolrule.Match(strings.Join(parts, "*"), name), "what a pattern was filled to, it fits")
	})
}

func TestParseReadsTheBlockOfADocument(t *testing.T) {
	t.Parallel()
	body := "rules:\n  - name: big orders\n    effect: ask\n    tools: [create_order, \"shop_*\"]\n    when: args.amount > 500\n" +
		"    reason: Needs a person.\n    expire_seconds: 3600\notherwise: deny\nhold_changed_tools: true\n"
	want := toolrule.Policy{Otherwise: toolrule.Deny, HoldChangedTools: true, Rules: []toolrule.Rule{{
		Name: "big orders", Effect: toolrule.Ask, Tools: []string{"create_order", "shop_*"}, When: "args.amount > 500",
		Reason: "Needs a person.", ExpireSeconds: 3600,
	}}}
	got, problems := toolrule.Parse(body)
	require.Empty(t, problems)
	require.Equal(t, want, got)
	got, problems = toolrule.Parse("# ours\ntool_policy:\n  " + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n  ") + "\n")
	require.Empty(t, problems)
	require.Equal(t, want, got)
	got, problems = toolrule.Parse("")
	require.Empty(t, problems)
	require.Empty(t, got)
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]toolrule.Problem{
		"rules: [{name: a, effect: maybe}]":                         {Path: "rules[0].effect", Message: "must be `allow`, `deny` or `ask`, not \"maybe\""},
		"rules: [{effect: deny}]":                                   {Path: "rules[0].name", Message: "is required: decisions are stored under it"},
		"rules: [{name: a, effect: deny}, {name: a, effect: deny}]": {Path: "rules[1].name", Message: "\"a\" is the name of rules[0] already; decisions are stored under the name"},
		"otherwise: ask":                                            {Path: "otherwise", Message: "must be `allow` or `deny`, not \"ask\""},
		"rules: [{name: a, effect: deny, expire_seconds: 60}]":      {Path: "rules[0].expire_seconds", Message: "is only for rules whose effect is `ask`"},
		"rules: [{name: a, effect: ask, expire_seconds: -5}]":       {Path: "rules[0].expire_seconds", Message: "must be between 1 and 2592000"},
		"rules: [{name: a, effect: ask, tools: [\"\"]}]":            {Path: "rules[0].tools[0]", Message: "must be a tool's name"},
		"rules: [{name: a, effect: ask, tool: [x]}]":                {Message: "line 1: unknown field \"tool\""},
		"rules: &a []": {Message: "line 1: anchors, aliases and tags are not read here"},
		"rules: " + strings.Repeat("[", 100) + strings.Repeat("]", 100): {Message: "line 1: values are nested more than 16 deep"},
		strings.Repeat("#", toolrule.MaxBytes+1):                        {Message: "the policy has 262145 bytes; at most 262144 are read"},
		"rules: [{name: a, effect: deny, when: 'seat.handle == \"x'}]":  {Path: "rules[0].when"},
	} {
		_, problems := toolrule.Parse(text)
		require.NotEmpty(t, problems, text)
		require.Equal(t, want.Path, problems[0].Path, text)
		require.Contains(t, problems[0].Message, want.Message, text)
	}
}

// A parser's time grows with the square of such texts: they are refused before it sees them.
func TestATextThatWouldKeepAParserBusyIsRefused(t *testing.T) {
	t.Parallel()
	var keys, nested strings.Builder
	for i := 0; keys.Len() < 200_000; i++ {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	for i := 0; nested.Len() < 200_000; i++ {
		nested.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	for name, c := range map[string]struct{ text, want string }{
		"keys":        {keys.String(), "at most 10000 lines"},
		"fewer keys":  {keys.String()[:20_000], "one has more than 30 keys"},
		"levels":      {nested.String(), "values are nested more than 16 deep"},
		"dashes":      {strings.Repeat("- ", 100_000), "values are nested more than 16 deep"},
		"empty lines": {"a: 1\n" + strings.Repeat("\n", 200_000), "empty lines in a row"},
	} {
		_, problems := toolrule.Parse(c.text)
		require.Len(t, problems, 1, name)
		require.Contains(t, problems[0].Message, c.want, name)
	}
}
