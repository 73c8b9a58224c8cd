package token_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/company/internal/token"
)

func TestToken(t *testing.T) {
	t.Parallel()

	t.Run("carries 256 bits behind the prefix and no two are alike", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		for range 1000 {
			made := token.New()
			require.True(t, strings.HasPrefix(made.Text, "bp_"))
			require.Len(t, made.Text, 3+43)
			require.True(t, token.WellFormed(made.Text))
			require.False(t, seen[made.Text])
			seen[made.Text] = true
		}
	})

	t.Run("is recognised by its hash and by nothing else", func(t *testing.T) {
		t.Parallel()
		made, other := token.New(), token.New()
		require.True(t, token.Matches(made.Hash, made.Text))
		require.False(t, token.Matches(made.Hash, other.Text))
		require.False(t, token.Matches(nil, made.Text))
		require.NotContains(t, string(made.Hash), made.Text)
	})

	t.Run("shows six characters of itself as a hint", func(t *testing.T) {
		t.Parallel()
		made := token.New()
		require.Equal(t, made.Text[:9], made.Hint)
	})

	for name, text := range map[string]string{
		"empty":          "",
		"another prefix": "xp_" + strings.Repeat("A", 43),
		"too short":      "bp_" + strings.Repeat("A", 42),
		"too long":       "bp_" + strings.Repeat("A", 44),
		"strange signs":  "bp_" + strings.Repeat("!", 43),
		"loose bits":     "bp_" + strings.Repeat("A", 42) + "B",
	} {
		t.Run("is not a text that is "+name, func(t *testing.T) {
			t.Parallel()
			require.False(t, token.WellFormed(text))
		})
	}
}
