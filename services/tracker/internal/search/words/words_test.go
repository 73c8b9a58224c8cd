package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func texts(s string) []string {
	all := []string{}
	Each(s, func(w Word) { all = append(all, w.Text) })
	return all
}

func TestWordsAreComparedWithoutCaseAccentsAndWidths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Renew the TLS-certificate, now!": {"renew", "the", "tls", "certificate", "now"},
		"don't can’t 'quoted'":            {"dont", "cant", "quoted"},
		"Café CRÈME naïve Ångström":       {"cafe", "creme", "naive", "angstrom"},
		"cafe\u0301":                      {"cafe"},
		"Ａｐｉ１２":                           {"api12"},
		"OPS-12 v2.1":                     {"ops", "12", "v2", "1"},
		"Ошибка ВХОДА":                    {"ошибка", "входа"},
		"":                                {},
		" \u0000…🙂":                       {},
		strings.Repeat("a", 70):           {strings.Repeat("a", 64)},
	} {
		require.Equal(t, want, texts(text), text)
	}
}

func TestScriptsWithoutSpacesArePartedIntoPairs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"証明書の更新":    {"証明", "明書", "書の", "の更", "更新"},
		"更":         {"更"},
		"登录 失败":     {"登录", "失败"},
		"로그인 오류":    {"로그", "그인", "오류"},
		"サーバー":      {"サー", "ーバ", "バー"},
		"ｻｰﾊﾞｰ":     {"サー", "ーバ", "バー"},
		"use登录page": {"use", "登录", "page"},
	} {
		require.Equal(t, want, texts(text), text)
	}
}

func TestASnippetIsCentredOnWhatWasLookedForAndCutAtWholeCharacters(t *testing.T) {
	t.Parallel()
	weights := map[string]float32{"certificate": 2, "renew": 1}
	long := strings.Repeat("lorem ipsum dolor ", 40) + "renew the certificate " + strings.Repeat("sit amet elit ", 40)
	snippet, worth := Snippet(long, weights)
	require.InDelta(t, 3, worth, 0)
	require.LessOrEqual(t, len(snippet), SnippetBytes)
	at := strings.Index(snippet, "renew the certificate")
	require.InDelta(t, len(snippet)/2, at+10, 30, snippet)
	require.True(t, strings.HasPrefix(snippet, "…") && strings.HasSuffix(snippet, "…"), snippet)
	snippet, worth = Snippet("nothing of it", weights)
	require.Equal(t, "nothing of it", snippet)
	require.Zero(t, worth)
}

func TestASnippetOfAnyTextIsValidAndShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab é日本語한글🙂\u0301\u200d\n ")), 0, 300, -1).Draw(r, "text")
		weights := map[string]float32{}
		for _, w := range Of(text) {
			if rapid.Bool().Draw(r, "wanted") {
				weights[w.Text] = 1
			}
		}
		snippet, _ := Snippet(text, weights)
		require.True(t, utf8.ValidString(snippet))
		require.LessOrEqual(t, len(snippet), SnippetBytes)
	})
}

func TestEveryWordStandsWhereItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		end := 0
		Each(text, func(w Word) {
			require.GreaterOrEqual(t, w.At, 0)
			require.Less(t, w.At, w.End)
			require.LessOrEqual(t, w.End, len(text))
			require.GreaterOrEqual(t, w.End, end)
			end = w.End
			require.LessOrEqual(t, len(w.Text), 2*maxWord)
		})
	})
}
