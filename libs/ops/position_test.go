package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
)

func TestPosition(t *testing.T) {
	t.Parallel()

	t.Run("the text form reads back", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			want := ops.Position{
				Service:  rapid.StringMatching(`[a-z]{1,12}`).Draw(t, "service"),
				Epoch:    rapid.Int32Range(0, math.MaxInt32).Draw(t, "epoch"),
				Sequence: rapid.Int64Range(0, math.MaxInt64).Draw(t, "sequence"),
			}
			got, err := ops.ParsePosition(want.String())
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	})

	t.Run("a position has one spelling", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{
			"", "tracker", "tracker@1", "@1:2", "tracker@:2", "tracker@1:", "tracker@1:-2", "tracker@+1:2",
			"tracker@01:2", "tracker@1:2:3", "tracker@1:9223372036854775808", "tracker@2147483648:1",
		} {
			_, err := ops.ParsePosition(text)
			require.Equal(t, fault.Invalid, fault.ClassOf(err), "%q", text)
		}
	})
}
