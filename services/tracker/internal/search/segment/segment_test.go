package segment

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type doc struct {
	id    uuid.UUID
	words []string
}

func build(t require.TestingT, docs []doc) *Segment {
	var b Builder
	for i, d := range docs {
		b.Add(d.id, fmt.Sprint("P", i%3), i%2 == 0, i%5 == 0)
		for _, w := range d.words {
			b.Word(w, 1)
		}
	}
	var out bytes.Buffer
	require.NoError(t, b.Encode(&out))
	s, err := Parse(out.Bytes())
	require.NoError(t, err)
	return s
}

// holds answers word → id → amount.
func holds(s *Segment) map[string]map[uuid.UUID]int {
	all := map[string]map[uuid.UUID]int{}
	for term := range s.Terms() {
		at := map[uuid.UUID]int{}
		s.each(term, func(doc, amount int) { at[s.ID(doc)] = amount })
		all[string(s.Term(term))] = at
	}
	return all
}

func draw(r *rapid.T, label string) []doc {
	docs := make([]doc, rapid.IntRange(0, 20).Draw(r, label))
	for i := range docs {
		docs[i].id = uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "id"))
		docs[i].words = rapid.SliceOfN(rapid.StringN(1, 3, -1), 0, 12).Draw(r, "words")
	}
	slices.SortFunc(docs, func(x, y doc) int { return strings.Compare(x.id.String(), y.id.String()) })
	return slices.CompactFunc(docs, func(x, y doc) bool { return x.id == y.id })
}

func want(docs []doc) map[string]map[uuid.UUID]int {
	all := map[string]map[uuid.UUID]int{}
	for _, d := range docs {
		for _, w := range d.words {
			if all[w] == nil {
				all[w] = map[uuid.UUID]int{}
			}
			all[w][d.id]++
		}
	}
	return all
}

func TestASegmentHoldsWhatWasPutIn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		docs := draw(r, "docs")
		s := build(r, docs)
		require.Equal(r, want(docs), holds(s))
		for _, d := range docs {
			at, ok := s.Find(d.id)
			require.True(r, ok)
			require.Equal(r, d.id, s.ID(at))
			for _, w := range d.words {
				_, ok := s.Lookup(w)
				require.True(r, ok)
			}
		}
		_, ok := s.Find(uuid.Nil)
		require.False(r, ok)
	})
}

func TestMergedSegmentsHoldWhatIsKeptOfThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		a, b := draw(r, "a"), draw(r, "b")
		s := []*Segment{build(r, a), build(r, b)}
		// Whatever is in both is kept of the second.
		kept := func(d doc) bool {
			_, again := s[1].Find(d.id)
			return !again
		}
		var out bytes.Buffer
		require.NoError(r, Merge(&out, []Source{
			{s[0], func(at int) bool { return kept(doc{id: s[0].ID(at)}) }},
			{s[1], func(int) bool { return true }},
		}))
		merged, err := Parse(out.Bytes())
		require.NoError(r, err)
		a = slices.DeleteFunc(a, func(d doc) bool { return !kept(d) })
		require.Equal(r, want(append(slices.Clone(a), b...)), holds(merged))
		require.Equal(r, len(a)+len(b), merged.Docs())
		require.Equal(r, merged.docs, len(merged.lengths)/4)
	})
}

func TestBytesThatAreNoWholeSegmentAreRefused(t *testing.T) {
	t.Parallel()
	data := build(t, []doc{{uuid.New(), []string{"one", "two"}}}).Bytes()
	for n := range data {
		_, err := Parse(data[:n])
		require.ErrorIs(t, err, ErrDamaged)
		turned := slices.Clone(data)
		turned[n] ^= 0x10
		_, err = Parse(turned)
		require.ErrorIs(t, err, ErrDamaged)
	}
}

func TestNearWordsAreExactlyThoseWithinTheDistance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("abcé証")), 1, 6, -1)
		words := rapid.SliceOfN(word, 1, 60).Draw(r, "words")
		s := build(r, []doc{{uuid.New(), words}})
		text, distance := word.Draw(r, "text"), rapid.IntRange(1, 2).Draw(r, "distance")
		first := rapid.Bool().Draw(r, "first")
		got := map[string]int{}
		s.Near(text, distance, first, func(term, steps int) { got[string(s.Term(term))] = steps })
		wanted := map[string]int{}
		for _, w := range words {
			steps := apart([]rune(text), []rune(w))
			if steps > 0 && steps <= distance && (!first || []rune(w)[0] == []rune(text)[0]) {
				wanted[w] = steps
			}
		}
		require.Equal(r, wanted, got)
	})
}

// apart is the distance by its definition.
func apart(a, b []rune) int {
	switch {
	case len(a) == 0:
		return len(b)
	case len(b) == 0:
		return len(a)
	}
	cost := 1
	if a[len(a)-1] == b[len(b)-1] {
		cost = 0
	}
	least := min(apart(a[:len(a)-1], b)+1, apart(a, b[:len(b)-1])+1, apart(a[:len(a)-1], b[:len(b)-1])+cost)
	if len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-2] && a[len(a)-2] == b[len(b)-1] {
		least = min(least, apart(a[:len(a)-2], b[:len(b)-2])+1)
	}
	return least
}

func TestWordsAreFoundByTheirBeginning(t *testing.T) {
	t.Parallel()
	s := build(t, []doc{{uuid.New(), []string{"log", "login", "logout", "lo", "lag", "証明書", "\U0010ffff\U0010ffff"}}})
	beginning := func(text string) (found []string) {
		s.Prefixed(text, func(term int) { found = append(found, string(s.Term(term))) })
		return found
	}
	require.Equal(t, []string{"login", "logout"}, beginning("log"))
	require.Equal(t, []string{"証明書"}, beginning("証"))
	require.Equal(t, []string{"\U0010ffff\U0010ffff"}, beginning("\U0010ffff"))
	require.Empty(t, beginning("z"))
}
