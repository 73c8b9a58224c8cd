package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAStateBearsItsNodeAndComesBackAsTheServerWroteIt(t *testing.T) {
	t.Parallel()
	f := &Fleet{options: Options{Node: "n1"}}
	for _, written := range []string{
		`{"resultType":"input_required","requestState":"a~b","n":9007199254740993}`,
		`{"requestState":"mcphost:n0~of another host"}`,
		`{"requestState":""}`,
	} {
		stamped := f.stamp([]byte(written))
		require.Equal(t, "n1", Keeper(string(stamped)))
		require.JSONEq(t, written, string(unstamp(stamped)))
	}
	for _, plain := range []string{`{"a":1}`, `{"text":"requestState"}`, `{"requestState":7}`, `{"requestState":`, ``} {
		require.Equal(t, plain, string(f.stamp([]byte(plain))))
		require.Equal(t, plain, string(unstamp([]byte(plain))))
		require.Empty(t, Keeper(plain))
	}
	require.Empty(t, Keeper(`{"requestState":"mcphost:broken"}`))
	require.Equal(t, `{"requestState":"plain"}`, string(unstamp([]byte(`{"requestState":"plain"}`))))
}
