package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReasonIsWholeLinesWithinItsBound(t *testing.T) {
	t.Parallel()
	require.Equal(t, "it exited with status 1\nError: bad token", reasonOf("it exited with status 1", []string{"starting up", "Error: bad token", "at main (x.js:1)"}))
	require.Equal(t, "it exited with status 1\nc\nd\ne\nf\ng", reasonOf("it exited with status 1", strings.Split("abcdefg", "")))
	long := reasonOf("it broke", []string{"error: " + strings.Repeat("x", 300), "error: " + strings.Repeat("y", 300), "error: z"})
	require.LessOrEqual(t, len(long), maxReason)
	require.Contains(t, long, strings.Repeat("x", 300))
	require.NotContains(t, long, "y")
	require.Contains(t, long, "(2 more lines in the log)")
	require.LessOrEqual(t, len(reasonOf(strings.Repeat("x", 1000), nil)), maxReason)
}
