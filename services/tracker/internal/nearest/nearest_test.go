package nearest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
)

func TestOnlyWordsWithinAThirdOfTheirLettersAreNear(t *testing.T) {
	t.Parallel()
	words := []string{"frontend", "backend", "infra", "日本語の仕事"}
	require.Equal(t, []string{"backend"}, nearest.Few("Bakend", words, 3))
	require.Equal(t, []string{"日本語の仕事"}, nearest.Few("日本語仕事", words, 3), "letters are counted, not bytes")
	require.Empty(t, nearest.Few("design", words, 3))
	require.Empty(t, nearest.Few("", words, 3))
}

func TestTheClosestAreAnsweredHoweverFarTheyAre(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"OPS", "SHOP"}, nearest.Closest("OPTS", []string{"ZEBRA", "SHOP", "OPS"}, 2))
	require.Len(t, nearest.Closest("x", []string{"OPS"}, 3), 1)
}

func TestOneSlipIsATypo(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"backend", "bakend"}, {"backend", "backends"}, {"backend", "bcakend"}, {"backend", "Backond"}} {
		require.True(t, nearest.Typo(pair[0], pair[1]), pair)
		require.True(t, nearest.Typo(pair[1], pair[0]), pair)
	}
	for _, pair := range [][2]string{{"backend", "Backend"}, {"p1", "p2"}, {"backend", "frontend"}, {"backend", "abckedn"}} {
		require.False(t, nearest.Typo(pair[0], pair[1]), pair)
	}
}
