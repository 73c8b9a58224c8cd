package sealed_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/sealed"
)

func box(t testing.TB, b byte) *sealed.Box {
	t.Helper()
	key := []byte(strings.Repeat(string(rune(b)), 32))
	made, err := sealed.NewBox(config.Secret(base64.StdEncoding.EncodeToString(key)))
	require.NoError(t, err)
	return made
}

func TestKey(t *testing.T) {
	t.Parallel()
	raw := []byte(strings.Repeat("\xfb", 32))

	t.Run("is the same key in base64 and in hex", func(t *testing.T) {
		t.Parallel()
		first, err := sealed.NewBox(config.Secret(hex.EncodeToString(raw)))
		require.NoError(t, err)
		box := first.Seal("A", "value")
		for _, text := range []string{
			base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw), hex.EncodeToString(raw) + "\n",
		} {
			other, err := sealed.NewBox(config.Secret(text))
			require.NoError(t, err)
			value, err := other.Open("A", box)
			require.NoError(t, err)
			require.Equal(t, "value", value)
		}
	})

	for name, text := range map[string]string{
		"empty":            "",
		"a word":           "hunter2hunter2hunter2hunter2hunt",
		"31 bytes":         hex.EncodeToString(raw[:31]),
		"33 bytes":         hex.EncodeToString(append(raw, 1)),
		"16 bytes":         base64.StdEncoding.EncodeToString(raw[:16]),
		"neither encoding": strings.Repeat("$", 64),
	} {
		t.Run("is refused when it is "+name+", without being repeated", func(t *testing.T) {
			t.Parallel()
			_, err := sealed.NewBox(config.Secret(text))
			require.ErrorContains(t, err, "32 bytes")
			if text != "" {
				require.NotContains(t, err.Error(), text)
			}
		})
	}
}

func TestBox(t *testing.T) {
	t.Parallel()

	t.Run("opens what it sealed, under its name only", func(t *testing.T) {
		t.Parallel()
		b := box(t, 'a')
		rapid.Check(t, func(t *rapid.T) {
			name, other := rapid.String().Draw(t, "name"), rapid.String().Draw(t, "other")
			value := rapid.String().Draw(t, "value")
			kept := b.Seal(name, value)
			got, err := b.Open(name, kept)
			require.NoError(t, err)
			require.Equal(t, value, got)
			if other != name {
				_, err = b.Open(other, kept)
				require.ErrorIs(t, err, sealed.ErrDamaged)
			}
		})
	})

	t.Run("does not open what was changed anywhere", func(t *testing.T) {
		t.Parallel()
		b := box(t, 'a')
		kept := b.Seal("NAME", "value")
		for i := range kept {
			changed := append([]byte(nil), kept...)
			changed[i] ^= 1
			_, err := b.Open("NAME", changed)
			require.Error(t, err)
			_, err = b.Open("NAME", kept[:i])
			require.Error(t, err)
		}
	})

	t.Run("says that another key sealed a value", func(t *testing.T) {
		t.Parallel()
		_, err := box(t, 'b').Open("NAME", box(t, 'a').Seal("NAME", "value"))
		require.ErrorIs(t, err, sealed.ErrOtherKey)
	})

	t.Run("hides the value and seals it differently each time", func(t *testing.T) {
		t.Parallel()
		b := box(t, 'a')
		first, second := b.Seal("NAME", "hunter2"), b.Seal("NAME", "hunter2")
		require.NotEqual(t, first, second)
		require.NotContains(t, string(first), "hunter2")
	})

	t.Run("answers a digest that depends on the key", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, box(t, 'a').Digest([]byte("x")), box(t, 'a').Digest([]byte("x")))
		require.NotEqual(t, box(t, 'a').Digest([]byte("x")), box(t, 'b').Digest([]byte("x")))
	})
}
