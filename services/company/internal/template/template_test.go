package template_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/company/internal/template"
)

func TestParse(t *testing.T) {
	t.Parallel()

	t.Run("names are found whole and embedded, each once and in order", func(t *testing.T) {
		t.Parallel()
		parsed, err := template.Parse("Bearer ${B} and ${A}, again ${B}")
		require.NoError(t, err)
		require.Equal(t, []string{"B", "A"}, parsed.Names())
		require.False(t, parsed.Whole())
		require.Equal(t, "Bearer 2 and 1, again 2", parsed.Fill(map[string]string{"A": "1", "B": "2"}))
	})

	t.Run("a text that is one name is whole", func(t *testing.T) {
		t.Parallel()
		parsed, err := template.Parse("${TOKEN_2}")
		require.NoError(t, err)
		require.True(t, parsed.Whole())
	})

	t.Run("a dollar sign without a brace is itself", func(t *testing.T) {
		t.Parallel()
		parsed, err := template.Parse("$5 {and} $NAME $")
		require.NoError(t, err)
		require.Empty(t, parsed.Names())
		require.Equal(t, "$5 {and} $NAME $", parsed.Fill(nil))
	})

	t.Run("a value is not read as a template again", func(t *testing.T) {
		t.Parallel()
		parsed, err := template.Parse("${A}")
		require.NoError(t, err)
		require.Equal(t, "${B}", parsed.Fill(map[string]string{"A": "${B}", "B": "no"}))
	})

	for text, want := range map[string]string{
		"a ${OPEN":                            "no `}` closes",
		"${}":                                 "without a name",
		"${1ST}":                              "does not begin with a digit",
		"${A-B}":                              "holds no name",
		"${A:-hunter2}":                       "holds no name",
		"${" + strings.Repeat("A", 129) + "}": "of 129 bytes; a name has at most 128",
	} {
		t.Run("broken: "+want, func(t *testing.T) {
			t.Parallel()
			_, err := template.Parse(text)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestFillingANameWithItselfGivesTheTextBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z $}{]|\$\{[A-Z_][A-Z0-9_]*\})*`).Draw(t, "text")
		parsed, err := template.Parse(text)
		if err != nil {
			t.Skip("not a template")
		}
		values := map[string]string{}
		for _, name := range parsed.Names() {
			values[name] = "${" + name + "}"
		}
		if got := parsed.Fill(values); got != text {
			t.Fatalf("got %q", got)
		}
	})
}
