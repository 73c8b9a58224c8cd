package page_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
)

type cursor struct {
	Rank string `json:"r"`
	ID   int64  `json:"i"`
}

func TestToken(t *testing.T) {
	t.Parallel()

	t.Run("a token gives back its cursor to the same list", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			want := cursor{Rank: rapid.StringN(0, 100, 200).Draw(t, "rank"), ID: rapid.Int64().Draw(t, "id")}
			bind := rapid.String().Draw(t, "bind")
			token, err := page.Encode(bind, want)
			require.NoError(t, err)
			require.NotContains(t, token, "=")
			var got cursor
			require.NoError(t, page.Decode(token, bind, &got))
			require.Equal(t, want, got)
		})
	})

	t.Run("the empty token is the first page", func(t *testing.T) {
		t.Parallel()
		got := cursor{Rank: "start"}
		require.NoError(t, page.Decode("", "list", &got))
		require.Equal(t, cursor{Rank: "start"}, got)
	})

	t.Run("a token of another filter is refused", func(t *testing.T) {
		t.Parallel()
		token, err := page.Encode("list_items status=todo", cursor{Rank: "a"})
		require.NoError(t, err)
		requireRefused(t, page.Decode(token, "list_items status=done", &cursor{}), page.ReasonMismatch)
	})

	t.Run("text that is no token is refused and never panics", func(t *testing.T) {
		t.Parallel()
		token, err := page.Encode("list", cursor{Rank: "a", ID: 7})
		require.NoError(t, err)
		for _, bad := range []string{"x", "AAAA", token + "!", token[:len(token)-3], strings.Repeat("A", 5000)} {
			requireRefused(t, page.Decode(bad, "list", &cursor{}), page.ReasonMalformed)
		}
		rapid.Check(t, func(t *rapid.T) {
			err := page.Decode(rapid.StringN(1, -1, -1).Draw(t, "token"), "list", &cursor{})
			require.Equal(t, fault.Invalid, fault.ClassOf(err))
		})
	})

	t.Run("a cursor of another shape is refused", func(t *testing.T) {
		t.Parallel()
		token, err := page.Encode("list", map[string]any{"offset": 3})
		require.NoError(t, err)
		requireRefused(t, page.Decode(token, "list", &cursor{}), page.ReasonMalformed)
	})

	t.Run("a cursor that outgrows a token is the program's mistake", func(t *testing.T) {
		t.Parallel()
		_, err := page.Encode("list", cursor{Rank: strings.Repeat("r", 4096)})
		require.ErrorContains(t, err, "more than 4096")
	})
}

func requireRefused(t *testing.T, err error, reason string) {
	t.Helper()
	f, ok := fault.As(err)
	require.True(t, ok, "%v is no fault", err)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, "cursor", f.Field)
	require.Equal(t, reason, f.Reason)
}
