package slack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarkdownBecomesWhatSlackReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ markdown, want string }{
		"emphasis":                       {"**bold**, *italic* and ~~gone~~", "*bold*, _italic_ and ~gone~"},
		"a heading":                      {"# Done **now**\n\nText", "*Done now*\n\nText"},
		"a link":                         {"[the page](https://a.example/?x=1&y=2)", "<https://a.example/?x=1&amp;y=2|the page>"},
		"a bare address":                 {"see https://a.example/x", "see <https://a.example/x>"},
		"a link that is no address":      {"[x](javascript:alert)", "x (javascript:alert)"},
		"a list":                         {"- one\n- two\n  - three", "• one\n• two\n    • three"},
		"numbers":                        {"3. one\n4. two", "3. one\n4. two"},
		"a quotation":                    {"> said\n> so", "> said\n> so"},
		"a fence":                        {"```go\nif a < b && c > d {}\n```", "```\nif a &lt; b &amp;&amp; c &gt; d {}\n```"},
		"code":                           {"use `a<b`", "use `a&lt;b`"},
		"signs":                          {"a < b & c > d", "a &lt; b &amp; c &gt; d"},
		"a broadcast is text":            {"<!channel> and <!here|x>", "&lt;!channel&gt; and &lt;!here|x&gt;"},
		"a group is text":                {"<!subteam^S012345>", "&lt;!subteam^S012345&gt;"},
		"a user is called":               {"ask <@U012AB> *now*", "ask <@U012AB> _now_"},
		"HTML is text":                   {"<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"},
		"escapes and entities":           {`\*not bold\* &amp; so`, "*not bold* &amp; so"},
		"a table":                        {"| a | b |\n|---|---|\n| 1 | 2 |", "```\na | b\n1 | 2\n```"},
		"paragraphs":                     {"one\n\ntwo", "one\n\ntwo"},
		"a label cannot end its link":    {"[a|b>c](https://a.example)", "<https://a.example|a¦b&gt;c>"},
		"unicode is left alone":          {"Ünïcode 🦊 日本", "Ünïcode 🦊 日本"},
		"a destination with a separator": {"[x](<https://a.example/|y>)", "x (https://a.example/|y)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, Mrkdwn(c.markdown))
		})
	}
}
