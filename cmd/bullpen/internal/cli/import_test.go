package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

// export is a file of another tracker, and what comes of it.
type export struct {
	kind, file                    string
	read, filed, refused, comment int
	options                       []string
}

func exports() []export {
	return []export{
		{kind: "github", file: "github.json", read: 3, filed: 2, refused: 1, comment: 2, options: []string{"--user", "ada-l=ada-reis"}},
		{kind: "jira", file: "jira.csv", read: 3, filed: 3, comment: 2, options: []string{"--user", "7f:a=ada-reis"}},
		{kind: "jira", file: "jira.json", read: 2, filed: 2, comment: 1, options: []string{"--status", "Waiting=in_review"}},
		{kind: "linear", file: "linear.csv", read: 3, filed: 3, options: []string{"--user", "ada@lantern.example=ada-reis"}},
	}
}

func (e export) command(source string, more ...string) []string {
	args := append([]string{"import", e.kind, filepath.Join("testdata", "import", e.file), "--project", "OPS", "--source", source}, e.options...)
	return append(args, more...)
}

// found answers the one item whose title holds a text.
func found(t *testing.T, i *clitest.Installation, title string) map[string]any {
	t.Helper()
	listed := decode(t, fine(t, i.Run("call", "list_work_items", "--args", fmt.Sprintf(`{"project":"OPS","text":%q}`, title))))
	items := listed["items"].([]any)
	require.Len(t, items, 1, title)
	key := items[0].(map[string]any)["key"].(string)
	return decode(t, fine(t, i.Run("call", "get_work_item", "--args", fmt.Sprintf(`{"item":%q}`, key))))
}

func TestExportsOfOtherTrackersBecomeItemsOnce(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	for _, e := range exports() {
		t.Run(e.file, func(t *testing.T) {
			source := "once:" + e.file
			for _, more := range [][]string{{"--dry-run", "--json"}, {"--json"}} {
				sum := decode(t, fine(t, i.Run(e.command(source, more...)...)))
				require.EqualValues(t, e.read, sum["read"], "%v", sum)
				require.EqualValues(t, e.filed, sum["filed"], "%v", sum)
				require.EqualValues(t, e.refused, sum["refused"], "%v", sum)
				require.EqualValues(t, e.comment, sum["comments"], "%v", sum)
				require.Zero(t, sum["there"])
			}
			again := decode(t, fine(t, i.Run(e.command(source, "--json")...)))
			require.EqualValues(t, e.filed, again["there"])
			require.Zero(t, again["filed"])
		})
	}

	t.Run("texts, people and places are as they were", func(t *testing.T) {
		lamps := found(t, i, "Shelf lamps flicker after dusk")
		item := lamps["item"].(map[string]any)
		require.Equal(t, "bug", item["type"])
		require.Equal(t, "ada-reis", item["assignee"])
		require.Equal(t, "octavia", item["reporter"])
		require.Equal(t, "Since the new drivers. 汉字 and 🔦.\n\n```go\nlamp.On(nil)\n```", item["body"])
		require.Len(t, lamps["comments"], 2)
		require.Equal(t, "cancelled", found(t, i, "The same number in another repository")["item"].(map[string]any)["status"])

		whole := found(t, i, "Replace the lamps")
		item = whole["item"].(map[string]any)
		require.Equal(t, "## Plan\n- **Order** them, ask @Ada Lovelace\n```bash\nlamp --off\n```", item["body"])
		require.Equal(t, "high", item["priority"])
		require.Len(t, whole["subtasks"], 1)
		require.Equal(t, "Cyd", whole["comments"].([]any)[0].(map[string]any)["author"])
		require.Equal(t, "waiting_on", found(t, i, "Order spare lamps")["links"].([]any)[0].(map[string]any)["kind"])

		require.Equal(t, "in_review", found(t, i, "Label the fuse box")["item"].(map[string]any)["status"])
		require.Len(t, found(t, i, "Tidy the wiring")["subtasks"], 1)
		require.Contains(t, found(t, i, "Paint the lamp posts")["item"].(map[string]any)["body"], "Project Milestone: Opening")
	})
}

func TestAnImportSaysWhatItDidAndWhatItCouldNotDo(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	out := fine(t, i.Run("import", "github", "testdata/import/github.json", "--project", "OPS", "--source", "said", "--dry-run"))
	require.Contains(t, out, "3 read: 2 would be filed with 2 comments, 0 here already, 1 refused.")
	require.Regexp(t, `(?m)^1 +entry 3 +it has no number`, out)
	require.Regexp(t, `(?m)^1 +issue lantern/depot#1 +ada-l has no handle here`, out)
	out = fine(t, i.Run("import", "linear", "testdata/import/linear.csv", "--project", "OPS", "--source", "said", "--dry-run"))
	require.Regexp(t, `(?m)^1 +row 4 \(LAN-3\) +what it is part of or waits for is not in the file`, out)

	twice := `[{"number": 4, "title": "a", "state": "open"}, {"number": 4, "title": "b", "state": "open"}, {"title": "1"}, {"title": "2"}, {"title": "3"}, {"title": "4"}, {"title": "5"}, {"title": "6"}]`
	out = fine(t, clitest.Fed(twice, i.Getenv, "import", "github", "-", "--project", "OPS", "--source", "said", "--dry-run"))
	require.Contains(t, out, "8 read: 1 would be filed with 0 comments, 1 here already, 6 refused.")
	require.Contains(t, out, "it comes again in the file: what came first counts")
	require.Regexp(t, `(?m)^6 +entry 3, entry 4, entry 5, entry 6, entry 7 and 1 more +it has no number`, out)
}

func TestAnImportThatBreaksOffGoesOnWhenItIsRunAgain(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	var issues []string
	for n := range 250 {
		issues = append(issues, fmt.Sprintf(`{"number": %d, "title": "Bolt %d of the mast", "state": "closed", "updated_at": "2024-03-01T10:00:00Z", "comments": [{"body": "tight", "author": "ben"}]}`, n+1, n+1))
	}
	whole := "[" + strings.Join(issues, ",") + "]"
	file := filepath.Join(t.TempDir(), "issues.json")
	command := []string{"import", "github", file, "--project", "OPS", "--source", "broken"}
	require.NoError(t, os.WriteFile(file, []byte(whole[:len(whole)*9/10]), 0o600))
	r := i.Run(command...)
	require.Contains(t, failed(t, r), "the import ended early")
	require.Contains(t, r.Err, "run it again to go on")
	require.Contains(t, r.Out, "200 filed")
	require.NoError(t, os.WriteFile(file, []byte(whole), 0o600))
	require.Contains(t, fine(t, i.Run(command...)), "250 read: 50 filed with 50 comments, 200 here already, 0 refused.")
}

func TestAnImportIsRefusedInWords(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	for want, args := range map[string][]string{
		`nothing is known of exports of "trello"`: {"trello", "testdata/import/github.json", "--project", "OPS"},
		`--user "ada" must be THEIRS=OURS`:        {"github", "testdata/import/github.json", "--project", "OPS", "--user", "ada"},
		`--zone "Mars/North" is no time zone`:     {"github", "testdata/import/github.json", "--project", "OPS", "--zone", "Mars/North"},
		`no such file`:                            {"github", "testdata/import/none.json", "--project", "OPS"},
		`NOPE`:                                    {"github", "testdata/import/github.json", "--project", "NOPE"},
		`the file has no column "Summary": it has ID, Team, Tit`: {"jira", "testdata/import/linear.csv", "--project", "OPS"},
	} {
		r := i.Run(append([]string{"import"}, args...)...)
		require.Contains(t, failed(t, r), want)
		require.NotContains(t, r.Out, "0 read", want)
	}
}
