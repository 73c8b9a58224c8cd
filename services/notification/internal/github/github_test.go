package github

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestASignatureIsVerifiedOverTheRawBody(t *testing.T) {
	t.Parallel()
	const (
		secret = "It's a Secret to Everybody"
		body   = "Hello, World!"
		good   = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	)
	require.True(t, Verify(secret, good, []byte(body)), "the vendor's own example")
	for name, c := range map[string]struct{ secret, signature, body string }{
		"another body":          {secret, good, body + "\n"},
		"another secret":        {"x", good, body},
		"no secret":             {"", "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad", ""},
		"no signature":          {secret, "", body},
		"no prefix":             {secret, strings.TrimPrefix(good, "sha256="), body},
		"the legacy algorithm":  {secret, "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59", body},
		"a part of a signature": {secret, good[:40], body},
		"no hexadecimal":        {secret, "sha256=zz", body},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, Verify(c.secret, c.signature, []byte(c.body)))
		})
	}
}

func TestMentionsAreThoseOfRunningText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"at the start":                {"@quill look", []string{"quill"}},
		"any case":                    {"@QuilL look", []string{"quill"}},
		"in brackets and punctuation": {"(@quill), \"@sage\"; @ines. @omar: @kim!", []string{"quill", "sage", "ines", "omar", "kim"}},
		"a longer name is another":    {"@my-agent-2", []string{"my-agent-2"}},
		"not a part of a word":        {"a@quill x_@quill é@quill", nil},
		"not an address":              {"mail me@quill.dev or @quill.dev", nil},
		"the end of a sentence":       {"ask @quill. Then go", []string{"quill"}},
		"not in a link's address":     {"https://example.com/@quill?x=@quill www.example.com/@sage", nil},
		"not in a link":               {"[@quill](https://example.com)", nil},
		"not in code":                 {"use `@quill` and ``a ` @sage``", nil},
		"not in a fence":              {"```\n@quill\n```\n~~~ruby\n@sage\n~~~", nil},
		"not in an open fence":        {"```\n@quill", nil},
		"not in an indented block":    {"text\n\n    @quill\n", nil},
		"not in a quotation":          {"> @quill said\n> more\n\nok", nil},
		"after a quotation":           {"> @quill said\n\n@sage what now?", []string{"sage"}},
		"not in HTML comments":        {"a <!-- @quill --> b\n\n<!--\n@sage\n-->", nil},
		"in emphasis":                 {"**@quill** _@sage_", []string{"quill", "sage"}},
		"in a list":                   {"- @quill\n- [ ] @sage\n  1. @kim", []string{"quill", "sage", "kim"}},
		"in a heading and a table":    {"# @quill\n\n| a |\n|---|\n| @sage |", []string{"quill", "sage"}},
		"once each":                   {"@quill @quill @QUILL", []string{"quill"}},
		"a team":                      {"@acme/writers please", []string{"acme/writers"}},
		"not another host's user":     {"@quill@social.example", nil},
		"a bot":                       {"@quill[bot] go", []string{"quill[bot]"}},
		"not an underscore":           {"@quill_x", nil},
		"not a trailing hyphen":       {"@quill-", nil},
		"too long to be a name":       {"@" + strings.Repeat("a", 40), nil},
		"beside other scripts":        {"你好 @quill，謝謝", []string{"quill"}},
		"behind an escape":            {`\@quill`, []string{"quill"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range Mentions(c.text) {
				name := m.Login
				if m.Team != "" {
					name += "/" + m.Team
				}
				got = append(got, name)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestAnIntricateTextIsReadInTime(t *testing.T) {
	t.Parallel()
	for _, sign := range []string{"[", "[](", "> ", "1. ", "- ", "* > 1) ", "`", "<", "*a ", "a|b\n-|-\n", "[a]: b\n", "@a ", "http://a "} {
		text := "hey @quill\n\n" + strings.Repeat(sign, (MaxCommentCharacters-20)/len(sign))
		begin := time.Now()
		require.Contains(t, Mentions(text), Mention{Login: "quill"}, "%q", sign)
		require.Less(t, time.Since(begin), 30*time.Second, "%q", sign) // generous: the machine may be busy
	}
	require.Equal(t, []Mention{{Login: "quill"}},
		Mentions(strings.Repeat("[", maxBrackets+1)+" @quill `@a` [@b](c) https://x.example/@c\n> @d\n```\n@e\n```\n"))
	require.Empty(t, Mentions(strings.Repeat("@quill ", 10_000)), "longer than any comment")
}

func TestAKeyNamesThePlaceToAnswer(t *testing.T) {
	t.Parallel()
	for _, target := range []Target{
		{On: OnIssue, Owner: "acme", Repo: "shop.js", Number: 12},
		{On: OnReview, Owner: "acme", Repo: "shop", Number: 12, Root: 345},
		{On: OnDiscussion, Owner: "acme", Repo: "shop", Number: 12},
		{On: OnCommit, Owner: "acme", Repo: "shop", SHA: "9fceb02d0ae598e95dc970b74767f19372d61af8"},
	} {
		got, ok := ParseKey(target.Key())
		require.True(t, ok, target.Key())
		require.Equal(t, target, got)
	}
	for _, key := range []string{"", "github:acme#1", "slack:T/C/1.2", "github:a/b#1/review-", "github:a/b#99999999999", "github:a/b/c#1", "github:a/b#1?x"} {
		_, ok := ParseKey(key)
		require.False(t, ok, key)
	}
}

func TestOnlyAMarkerAtTheEndIsOne(t *testing.T) {
	t.Parallel()
	id := uuid.Must(uuid.NewV7())
	marked := Marked("Done.", id)
	got, ok := MarkerIn(marked + "\r\n")
	require.True(t, ok)
	require.Equal(t, id, got)
	require.Equal(t, "Done.", Unmarked(marked))
	for _, body := range []string{"", "Done.", marked + "\nand more", "> " + strings.ReplaceAll(marked, "\n", "\n> "), "<!-- bullpen:message:x -->"} {
		_, ok := MarkerIn(body)
		require.False(t, ok, body)
		require.Equal(t, body, Unmarked(body))
	}
}

func FuzzMentions(f *testing.F) {
	for _, seed := range []string{"@quill", "> @a\n```\n@b", "`@c` [@d](e) @f/g @h.i", "<!-- @j", "**@k**_@l_\\@m", "@\xff\x00@n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range Mentions(text) {
			if !strings.Contains(strings.ToLower(text), "@"+m.Login) {
				t.Fatalf("%q is not in %q", m.Login, text)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("issue_comment", []byte(`{"action":"created","issue":{"number":1},"comment":{"id":1,"body":"@a"},"repository":{"full_name":"a/b"}}`), false)
	f.Add("check_run", []byte(`payload=%7B%22action%22%3A%22completed%22%7D`), true)
	f.Fuzz(func(t *testing.T, event string, body []byte, form bool) {
		n, reason, err := Parse(event, body, form)
		if n == nil && err == nil && reason == "" {
			t.Fatal("nobody is woken and nothing says why")
		}
	})
}
