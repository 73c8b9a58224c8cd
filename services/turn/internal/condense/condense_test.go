package condense_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/turn/internal/condense"
)

var want = condense.Want{Task: "The invoice of Tidewater is wrong, see INV-1742.", TopItems: 2, Over: 64, Ref: "ref-1"}

// body answers what stands below the label.
func body(t *testing.T, shown string) (label, rest string) {
	t.Helper()
	label, rest, ok := strings.Cut(shown, "\n")
	require.True(t, ok, shown)
	return label, rest
}

func items(n int, special map[int]string) string {
	var all []string
	for i := range n {
		text := fmt.Sprintf(`{"id": %d, "title": "something else of this company", "n": 9007199254740993}`, i)
		if s, ok := special[i]; ok {
			text = s
		}
		all = append(all, text)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func TestAListBecomesTheMembersThatFitTheTaskWholeAndInTheirOrder(t *testing.T) {
	t.Parallel()
	all := items(50, map[int]string{41: `{"key":"INV-1742","n":1.50}`, 7: `{"title":"Tidewater <invoice>"}`})
	shown, ok := condense.List(all, want)
	require.True(t, ok)
	label, rest := body(t, shown)
	require.Equal(t, `[{"title":"Tidewater <invoice>"},{"key":"INV-1742","n":1.50}]`, rest)
	require.Equal(t, fmt.Sprintf("[Condensed: 2 of 50 members of the list shown, those that fit the task best, each whole. The whole result has %d bytes: "+
		"`read_tool_result` with call_ref \"ref-1\".]", len(all)), label)
}

func TestWhereNothingFitsTheFirstMembersAreShown(t *testing.T) {
	t.Parallel()
	shown, ok := condense.List(items(9, nil), condense.Want{Task: "x", TopItems: 1})
	require.True(t, ok)
	_, rest := body(t, shown)
	require.Equal(t, `[{"id": 0, "title": "something else of this company", "n": 9007199254740993}]`, rest, "bytes are as they were written")
}

func TestTheOneLargeListInAnObjectIsCondensedAndTheRestStays(t *testing.T) {
	t.Parallel()
	all := `{"count": 50, "page": {"items": ` + items(50, map[int]string{30: `{"INV":17}`}) + `, "next": "c<1>"}, "few": [1, 2, 3]}`
	shown, ok := condense.List(all, condense.Want{Task: "inv", TopItems: 1})
	require.True(t, ok)
	label, rest := body(t, shown)
	require.Contains(t, label, "1 of 50 members of `page.items` shown")
	require.Equal(t, `{"count":50,"page":{"items":[{"INV":17}],"next":"c<1>"},"few":[1, 2, 3]}`, rest)
}

func TestWhatIsNoLargeListIsLeftToOthers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 100)
	for name, text := range map[string]string{
		"prose":                       long,
		"a text":                      `"` + long + `"`,
		"an object of prose":          `{"text": "` + long + `", "tags": [1, 2, 3]}`,
		"as few members as may be":    `[{"a": "` + long + `"}, {"b": "` + long + `"}]`,
		"an empty list":               `[]`,
		"broken JSON":                 `[{"a": 1}, {"b": `,
		"a list shorter than a label": `[1, 2, 3]`,
		"nothing":                     ``,
	} {
		_, ok := condense.List(text, want)
		require.False(t, ok, name)
	}
}

func TestAModelMayChooseTheMembers(t *testing.T) {
	t.Parallel()
	all := items(20, map[int]string{4: `{"key":"INV-1742"}`})
	q, ok := condense.Choice(all, want)
	require.True(t, ok)
	require.Contains(t, q.System, want.Task)
	require.True(t, strings.HasPrefix(q.Text, `0: {"id": 0,`))
	require.Contains(t, q.Text, "\n4: {\"key\":\"INV-1742\"}\n")
	shown, ok := condense.Chosen(all, "Sure: [9, 4, 9, 1]", want)
	require.True(t, ok)
	_, rest := body(t, shown)
	require.Equal(t, `[{"key":"INV-1742"},{"id": 9, "title": "something else of this company", "n": 9007199254740993}]`, rest)
	for _, answer := range []string{"", "none", "[]", "[20]", "[-1]", `["a"]`, "]["} {
		_, ok := condense.Chosen(all, answer, want)
		require.False(t, ok, answer)
	}
	_, ok = condense.Choice("no list", want)
	require.False(t, ok)
	_, ok = condense.Choice(items(2000, nil), want)
	require.False(t, ok, "a list that is too long is not asked about")
}

func TestNothingOfAListEndsInsideOfAMember(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfN(rapid.MapOf(rapid.String(), rapid.String()), 0, 30).Draw(t, "members")
		text, err := json.Marshal(map[string]any{"items": members, "count": len(members)})
		require.NoError(t, err)
		shown, ok := condense.List(string(text), condense.Want{Task: rapid.String().Draw(t, "task"), TopItems: rapid.IntRange(1, 5).Draw(t, "top")})
		if !ok {
			return
		}
		require.Less(t, len(shown), len(text))
		_, rest, _ := strings.Cut(shown, "\n")
		var back struct {
			Items []map[string]string
			Count int
		}
		require.NoError(t, json.Unmarshal([]byte(rest), &back))
		require.Equal(t, len(members), back.Count)
		at := 0
		for _, item := range back.Items {
			for at < len(members) && fmt.Sprint(members[at]) != fmt.Sprint(item) {
				at++
			}
			require.Less(t, at, len(members), "members are whole and in their order")
			at++
		}
	})
}

func TestATextIsAskedAboutInWholeLines(t *testing.T) {
	t.Parallel()
	one := condense.Questions("short\n", want)
	require.Len(t, one, 1)
	require.Contains(t, one[0].System, want.Task)
	require.Equal(t, "The result:\nshort\n", one[0].Text)

	var long strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&long, "line %d ü\n", i)
	}
	parts := condense.Questions(long.String(), want)
	require.Greater(t, len(parts), 1)
	var whole strings.Builder
	for i, part := range parts {
		text, ok := strings.CutPrefix(part.Text, fmt.Sprintf("Part %d of %d of the result:\n", i+1, len(parts)))
		require.True(t, ok)
		require.True(t, strings.HasSuffix(text, "\n"))
		whole.WriteString(text)
	}
	require.Equal(t, long.String(), whole.String())

	for _, part := range condense.Questions(strings.Repeat("ü", 50_000), want) {
		require.True(t, utf8.ValidString(part.Text))
	}
	require.Empty(t, condense.Questions(strings.Repeat("x", 1<<20), want), "what is too long is shown whole")
}

func TestARewrittenTextIsLabelledAndShorterOrNotUsed(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1000)
	shown, ok := condense.Rewritten(text, []string{" first \n", "second"}, want)
	require.True(t, ok)
	label, rest := body(t, shown)
	require.Contains(t, label, "Condensed by a model")
	require.Contains(t, label, `call_ref "ref-1"`)
	require.Equal(t, "first\n\nsecond", rest)
	for _, answers := range [][]string{nil, {""}, {"a", " "}, {text}} {
		_, ok := condense.Rewritten(text, answers, want)
		require.False(t, ok)
	}
}
