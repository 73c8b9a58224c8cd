package toolrule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/toolrule"
)

// A reader that ignores the case of names, as Go's own is, takes the last of such two: a rule about one would be passed by with
// the other.
func TestNamesThatDifferOnlyInCaseAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"amount":1,"Amount":900}`:                     "`amount` and `Amount` differ only in case",
		`{"to":[{"city":"x","CITY":"Porto"}]}`:          "`city` and `CITY` differ only in case",
		`{"task":1,"tas\u212a":2}`:                      "differ only in case",
		`{"amount":1,"nested":{"x":1},"\u0041mount":2}`: "differ only in case",
	} {
		_, err := toolrule.Arguments(text)
		require.ErrorContains(t, err, want, text)
	}
	require.Len(t, arguments(t, `{"a":{"B":1},"b":{"A":1},"B2":1}`), 3, "in objects of their own they are no two")
}
