package item_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

func TestNothingOrAMixIsRefusedNamingBothShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []item.SetChange{
		{},
		{Add: []string{"a"}, Set: []string{"b"}},
		{Remove: []string{"a"}, Clear: true},
		{Set: []string{"a"}, Clear: true},
	} {
		f, ok := fault.As(c.Check("waiting_on"))
		require.True(t, ok)
		require.Equal(t, fault.Invalid, f.Class)
		require.Equal(t, "waiting_on", f.Field)
		for _, word := range []string{"add", "remove", "set", "clear"} {
			require.Contains(t, f.Message, `"`+word+`"`)
		}
	}
	for _, c := range []item.SetChange{{Add: []string{"a"}}, {Remove: []string{"a"}}, {Add: []string{"a"}, Remove: []string{"b"}}, {Set: []string{"a"}}, {Clear: true}} {
		require.NoError(t, c.Check("waiting_on"))
	}
}

func TestASetChangeLeavesWhatItSays(t *testing.T) {
	t.Parallel()
	members := rapid.SliceOfDistinct(rapid.StringMatching("[a-e]"), rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		before := members.Draw(t, "before")
		kept := slices.Clone(before)
		c := item.SetChange{Add: members.Draw(t, "add"), Remove: members.Draw(t, "remove")}
		after := c.Apply(before)
		require.Equal(t, kept, before, "the given set stays as it is")
		for _, m := range after {
			require.True(t, slices.Contains(before, m) || slices.Contains(c.Add, m))
			require.NotContains(t, c.Remove, m)
		}
		for _, m := range slices.Concat(before, c.Add) {
			require.Equal(t, !slices.Contains(c.Remove, m), slices.Contains(after, m))
		}
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(after))), len(after), "nobody is in it twice")
		set := rapid.SliceOfNDistinct(rapid.StringMatching("[a-e]"), 1, 5, rapid.ID[string]).Draw(t, "set")
		require.Equal(t, set, item.SetChange{Set: set}.Apply(before))
		require.Empty(t, item.SetChange{Clear: true}.Apply(before))
	})
}

func TestMembersThatNameTheSameAreOne(t *testing.T) {
	t.Parallel()
	c, err := item.SetChange{Add: []string{"A", "a", "b"}}.Resolve(func(m string) (string, error) { return strings.ToLower(m), nil })
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, c.Add)
	_, err = item.SetChange{Set: []string{"x"}}.Resolve(func(string) (string, error) { return "", fault.New(fault.Invalid, "nobody") })
	require.Error(t, err)
}

func TestAnExcerptIsTheBeginningInWholeWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, "one two three", item.Excerpt(" one\n\ttwo  three "))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 900, -1).Draw(t, "text")
		got := item.Excerpt(text)
		require.LessOrEqual(t, len(got), 600)
		require.Equal(t, utf8.ValidString(text), utf8.ValidString(got))
		whole := strings.Join(strings.Fields(text), " ")
		require.True(t, strings.HasPrefix(whole, strings.TrimSuffix(got, "…")))
	})
	words := strings.Repeat("palavra ção ", 100)
	got := strings.TrimSuffix(item.Excerpt(words), "…")
	for word := range strings.FieldsSeq(got) {
		require.Contains(t, []string{"palavra", "ção"}, word)
	}
}
