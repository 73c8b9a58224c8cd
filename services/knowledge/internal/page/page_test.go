package page_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/page"
)

const id = "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10"

func TestTitlesThatDifferInCaseOrSpacesAreOneAddress(t *testing.T) {
	t.Parallel()
	require.Equal(t, page.Address("Release  Checklist "), page.Address("release checklist"))
	require.Equal(t, page.Address("STRASSE"), page.Address("straße"))
	require.Equal(t, page.Address("Cafe\u0301"), page.Address("café"))
	require.NotEqual(t, page.Address("Release checklist"), page.Address("Release-checklist"))
}

func TestOnlyAPagesAddressOutsideCodeIsALink(t *testing.T) {
	t.Parallel()
	for text, links := range map[string]int{
		"see [it](#/knowledge/pages/" + id + ")":                  1,
		"see /pages/" + id + " and /pages/" + strings.ToUpper(id): 1,
		"see %2Fpages%2F" + id:                                    1,
		"bare " + id:                                              0,
		"`/pages/" + id + "`":                                     0,
		"```\n/pages/" + id + "\n```":                             0,
		"OPS/Release checklist":                                   0,
		"100% sure: /pages/" + id:                                 1,
	} {
		require.Len(t, page.Links(text), links, text)
	}
}

func TestAgentsDoNotWriteReservedContainers(t *testing.T) {
	t.Parallel()
	p := &page.Page{Container: page.Skills, Title: "x", Body: "y"}
	require.Equal(t, fault.Forbidden, fault.ClassOf(page.New(p, page.Author{Kind: "agent"}, true, time.Now())))
	require.NoError(t, page.New(p, page.Author{Kind: "operator"}, true, time.Now()))
	require.NoError(t, page.New(p, page.Author{Kind: "agent"}, false, time.Now()))
}

func TestASnippetIsShortWholeAndShowsTheWord(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("filler words here ", 40) + "the certificate expires" + strings.Repeat(" and more text", 40)
	snippet := page.Snippet(text, []string{"certificate"})
	require.Contains(t, snippet, "certificate")
	require.True(t, strings.HasPrefix(snippet, "…") && strings.HasSuffix(snippet, "…"))
	require.Equal(t, "short", page.Snippet(" short\n", nil))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		text = strings.Repeat(text, rapid.IntRange(1, 40).Draw(t, "times"))
		snippet := page.Snippet(text, page.Words(rapid.String().Draw(t, "query")))
		require.LessOrEqual(t, len(snippet), 200)
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(snippet))
		}
	})
}
