package item_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

func TestALineSaysSomethingAndIsOne(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Renew", " x ", "a\tb", "שלום", "👩‍🔧", "a\u200bb", "證書"} {
		require.NoError(t, item.Line("title", text), "%q", text)
	}
	for _, text := range []string{"", " ", "\u200b\u200d", "\u202e", "\ufeff", "\u00a0"} {
		require.ErrorContains(t, item.Line("title", text), "title must say something", "%q", text)
	}
	for _, text := range []string{"a\nb", "a\r", "a\u0085b", "a\u2028b", "a\x1b[31m"} {
		require.ErrorContains(t, item.Line("title", text), "title must be one line", "%q", text)
	}
	require.NoError(t, item.Says("body", "a\nb"))
}
