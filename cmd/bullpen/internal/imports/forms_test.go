package imports_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/imports"
)

func TestBlankRowsAreNoRecords(t *testing.T) {
	t.Parallel()
	records := read(t, "jira", "Summary,Issue key,Issue Type,Status\nx,A-1,Task,Done\n,,,\n\" \",,,\n,A-2,Task,Done\n", imports.Options{})
	require.Len(t, records, 2)
	require.Equal(t, "row 5 (A-2)", records[1].Place, "rows are counted as a spreadsheet does")
	require.Len(t, read(t, "linear", "ID,Title,Status\nE-1,x,Done\n,,\n", imports.Options{}), 1)
}

func TestAnItemWithoutAStatusIsToBeDone(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"Summary,Issue key,Issue Type\nx,A-1,Task\n", "Summary,Issue key,Issue Type,Status\nx,A-1,Task,\n"} {
		r := read(t, "jira", file, imports.Options{})[0]
		require.Equal(t, "todo", r.Item.GetStatus())
		require.Empty(t, r.Warnings)
	}
}

func TestAnIssueWithoutAStateIsNotTakenForDone(t *testing.T) {
	t.Parallel()
	for state, warning := range map[string]string{`"title": "x"`: "it says no state and became todo", `"state": "locked"`: `state "locked" is not known here`} {
		r := read(t, "github", `{"number": 1, `+state+`}`, imports.Options{})[0]
		require.Equal(t, "todo", r.Item.GetStatus())
		require.Contains(t, strings.Join(r.Warnings, "\n"), warning)
	}
	require.Equal(t, "done", read(t, "github", `{"number": 1, "state": "MERGED"}`, imports.Options{})[0].Item.GetStatus())
}

func TestAnIssueIsNamedByItsRepositoryWhereTheFileSaysIt(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]string{
		`"html_url": "https://github.com/acme/shop/issues/7"`:                                    "acme/shop#7",
		`"url": "https://api.github.com/repos/acme/shop/issues/7"`:                               "acme/shop#7",
		`"url": "https://github.com/acme/shop/pull/7"`:                                           "acme/shop#7",
		`"repository_url": "https://git.acme.example/api/v3/repos/acme/shop"`:                    "acme/shop#7",
		`"html_url": "https://git.acme.example/acme/shop/issues/7"`:                              "acme/shop#7",
		`"url": "https://example.com/7"`:                                                         "7",
		`"title": "x"`:                                                                           "7",
		`"html_url": "", "repository_url": "https://api.github.com/repos/acme/shop", "url": "x"`: "acme/shop#7",
	} {
		r := read(t, "github", `{"number": 7, "state": "open", `+where+`}`, imports.Options{})[0]
		require.Equal(t, want, r.Item.GetExternalId(), where)
		require.Equal(t, "issue "+want, r.Place)
	}
}

func TestAnIssueWithoutANumberIsNamedByItsAddress(t *testing.T) {
	t.Parallel()
	r := read(t, "github", `{"title": "x", "state": "open", "url": "https://github.com/acme/shop/issues/14"}`, imports.Options{})[0]
	require.Equal(t, "acme/shop#14", r.Item.GetExternalId())
	for _, address := range []string{"https://github.com/acme/shop/issues/new", "https://api.github.com/repos/acme/shop", "x"} {
		require.Contains(t, read(t, "github", `{"title": "x", "url": "`+address+`"}`, imports.Options{})[0].Problem, "no number")
	}
}

func TestAnArchiveOfARepositoryBringsItsPullRequestsAndReviews(t *testing.T) {
	t.Parallel()
	records := read(t, "github", `{"magic": "x", "labels": [{"name": "l"}], "issues": [{"number": 1, "state": "OPEN", "title": "One", "labels": ["text"]}],
		"repo": "acme/shop", "pulls": [{"number": 2, "state": "MERGED", "title": "Two", "headRefName": "fix", "author": "ada",
			"comments": [{"author": "bob", "body": "last", "createdAt": "2024-03-03T10:00:00Z"}],
			"reviews": [{"author": "cyd", "body": "first", "createdAt": "2024-03-01T10:00:00Z", "comments": [{"body": "of a line", "createdAt": "2024-03-02T10:00:00Z"}]},
				{"author": "cyd", "body": "", "createdAt": "2024-03-01T10:00:00Z"}]}]}`, imports.Options{})
	require.Len(t, records, 2)
	require.Equal(t, []string{"text"}, records[0].Item.GetLabels())
	pull := records[1].Item
	require.Equal(t, []string{"pull-request"}, pull.GetLabels())
	var said []string
	for _, c := range pull.GetComments() {
		said = append(said, c.GetAuthor()+": "+c.GetBody())
	}
	require.Equal(t, []string{"cyd: first", "cyd: of a line", "bob: last"}, said)
}

func TestFormsOfTheSameThingAreReadAlike(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		`[[{"number": 1, "state": "open", "labels": [{"name": "a"}], "milestone": {"title": "m"}, "type": {"name": "Bug"}, "assignees": [{"login": "bob"}]}]]`,
		`{"total_count": 1, "items": [{"number": "1", "state": "open", "labels": ["a"], "milestone": "m", "type": "Bug", "assignees": ["bob"]}]}`,
		`{"number": 1, "state": "open", "labels": {"nodes": [{"name": "a"}]}, "milestone": "m", "type": "bug", "assignees": {"nodes": [{"login": "bob"}]}}`,
	} {
		r := read(t, "github", file, imports.Options{})[0]
		require.Empty(t, r.Problem)
		require.Equal(t, []string{"a"}, r.Item.GetLabels())
		require.Equal(t, "bug", r.Item.GetType())
		require.Equal(t, "Assigned to: bob  \nMilestone: m", r.Item.GetBody())
	}
}

func TestCommentsThatAnArchiveKeepsBesideTheirNumberAreRead(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"comment_data", "comments_data"} {
		r := read(t, "github", `{"number": 1, "title": "x", "state": "open", "comments": 2, "`+key+`": [{"user": {"login": "a"}, "body": "yes", "created_at": "2024-03-01T10:00:00Z"}]}`,
			imports.Options{})[0]
		require.Len(t, r.Item.GetComments(), 1)
		require.Equal(t, []string{"the file lacks comments that it counts"}, r.Warnings)
	}
}

func TestASubIssueNamesItsParent(t *testing.T) {
	t.Parallel()
	r := read(t, "github", `{"number": 2, "state": "open", "html_url": "https://github.com/acme/shop/issues/2",
		"parent_issue_url": "https://api.github.com/repos/acme/shop/issues/1"}`, imports.Options{})[0]
	require.Equal(t, "acme/shop#1", r.Item.GetParent())
}

func TestATextInUTF16IsRead(t *testing.T) {
	t.Parallel()
	text := `[{"number": 1, "state": "open", "title": "Größe 汉字 😀"}]`
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		file := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(text)) {
			file = order.AppendUint16(file, unit)
		}
		require.Equal(t, "Größe 汉字 😀", read(t, "github", string(file), imports.Options{})[0].Item.GetTitle())
	}
}

func TestHalfACharacterOfUTF16EndsNothing(t *testing.T) {
	t.Parallel()
	file := "\xff\xfeS\x00u\x00m\x00m\x00a\x00r\x00y\x00,\x00I\x00s\x00s\x00u\x00e\x00 \x00k\x00e\x00y\x00\n\x00\x3d\xd8a\x00,\x00A\x00-\x001\x00\n\x00"
	require.Equal(t, "\ufffda", read(t, "jira", file, imports.Options{})[0].Item.GetTitle())
}

func TestColumnsMayBePartedOtherwise(t *testing.T) {
	t.Parallel()
	for _, between := range []string{",", ";", "\t"} {
		file := strings.ReplaceAll("Summary|Issue key|Issue Type|Status\nx|A-1|Task|Done\n", "|", between)
		require.Equal(t, "done", read(t, "jira", file, imports.Options{})[0].Item.GetStatus())
	}
}

func TestColumnsOfAnotherLanguageAreThoseThatTheUserSays(t *testing.T) {
	t.Parallel()
	file := "Chave;Resumo;Tipo de item;Criado;Time\nA-1;Comprar;Tarefa;12/mai/25;Norte\n"
	require.Contains(t, failure(t, "jira", file), "--column 'THEIRS=Summary'")
	r := read(t, "jira", file, imports.Options{
		Columns: map[string]string{"chave": "Issue key", "Resumo": "Summary", "Tipo de item": "Issue Type", "Criado": "Created"}, Types: map[string]string{"tarefa": "task"},
	})[0]
	require.Equal(t, "Comprar", r.Item.GetTitle())
	require.Equal(t, "Time: Norte", r.Item.GetBody())
	require.Equal(t, []string{"Created is no time that is understood, and was left out"}, r.Warnings)
}

func TestTextOfAnotherEncodingIsSaidToBe(t *testing.T) {
	t.Parallel()
	r := read(t, "jira", "Summary,Issue key,Issue Type\nGr\xf6\xdfe,A-1,Task\n", imports.Options{})[0]
	require.Contains(t, strings.Join(r.Warnings, "\n"), "save the file as UTF-8")
}

func TestAPartOfWhatComesLaterFindsItsWhole(t *testing.T) {
	t.Parallel()
	file := "Summary,Issue key,Issue id,Issue Type,Parent id,Parent\npart,A-2,102,Sub-task,101,\nwhole,A-1,101,Story,,\nstranger,A-3,103,Sub-task,,999\n"
	records := read(t, "jira", file, imports.Options{})
	require.Equal(t, "A-1", records[0].Item.GetParent())
	require.Equal(t, "Parent: 999", records[2].Item.GetBody(), "a whole that is not in the file is not forgotten")
}

func TestAccountsAreCalledByTheirNames(t *testing.T) {
	t.Parallel()
	file := "Summary,Issue key,Issue Type,Assignee,Assignee Id,Reporter,Reporter Id,Description,Comment\n" +
		"x,A-1,Task,Ada,5f:ad,Bob,5f:b0,ask [~accountid:5f:c1],01/Mar/24 4:00 PM;5f:b0;see [~accountid:5f:ad] and [~accountid:5f:zz]\n" +
		"y,A-2,Task,,,Cyd,5f:c1,,\n"
	r := read(t, "jira", file, imports.Options{Users: map[string]string{"5f:ad": "ada"}})[0]
	require.Equal(t, "ada", r.Item.GetAssignee())
	require.Equal(t, "ask @Cyd", r.Item.GetBody())
	require.Equal(t, "Bob", r.Item.GetComments()[0].GetAuthor())
	require.Equal(t, "see @Ada and @5f:zz", r.Item.GetComments()[0].GetBody())
}

func TestWhatHasNoPlaceStandsUnderTheDescription(t *testing.T) {
	t.Parallel()
	file := "Summary,Issue key,Issue Type,Votes,Custom field (Rank),Custom field (Team),Custom field (Time in Status),Custom field (Steps),Outward issue link (Relates),Outward issue link (Relates),Attachment,Log Work\n" +
		"x,A-1,Task,0,0|hz,Web,1_*:*_2,\"*one*\ntwo\",B-1,B-2,01/Mar/24 4:00 PM;5f;shot.png;https://acme.example/shot.png,did;it\n"
	r := read(t, "jira", file, imports.Options{})[0]
	require.Equal(t, "Attachment: shot.png https://acme.example/shot.png  \nTeam: Web  \nTime in Status: 1_*:*_2  \nOutward issue link (Relates): B-1, B-2\n\nSteps:\n\n**one**\ntwo", r.Item.GetBody())
	require.Equal(t, []string{"its log of work is not imported"}, r.Warnings)
	r = read(t, "linear", "ID,Title,Status,Project Milestone,Milestone,Roadmaps,Cycle Start\nE-1,x,Done,Beta,Alpha,Now,today\n", imports.Options{})[0]
	require.Equal(t, "Project Milestone: Beta  \nMilestone: Alpha  \nRoadmaps: Now", r.Item.GetBody())
}

func TestLinksOfJiraAreReadByTheirWords(t *testing.T) {
	t.Parallel()
	r := read(t, "jira", `{"key": "A-1", "fields": {"summary": "x", "customfield_10014": "A-9", "customfield_1": "y", "issuelinks": [
		{"type": {"name": "Dependency", "inward": "is depended upon by", "outward": "depends upon"}, "outwardIssue": {"key": "A-2"}},
		{"type": {"name": "Dependency", "inward": "is depended upon by", "outward": "depends upon"}, "inwardIssue": {"key": "A-3"}},
		{"type": {"name": "Blocks", "inward": "is blocked by", "outward": "blocks"}, "inwardIssue": {"key": "A-4"}},
		{"type": {"name": "Blocks", "inward": "is blocked by", "outward": "blocks"}, "outwardIssue": {"key": "A-5"}}],
		"attachment": [{"filename": "log.txt", "content": "https://acme.example/log.txt"}]}}`, imports.Options{})[0]
	require.Equal(t, []string{"A-2", "A-4"}, r.Item.GetWaitingOn())
	require.Equal(t, "A-9", r.Item.GetParent(), "the epic")
	require.Equal(t, "is depended upon by: A-3  \nblocks: A-5  \nAttachment: log.txt https://acme.example/log.txt", r.Item.GetBody())
	require.Contains(t, strings.Join(r.Warnings, "\n"), "custom fields")
}

func TestPrioritiesWithARankAreKnown(t *testing.T) {
	t.Parallel()
	for theirs, ours := range map[string]string{"P2-High": "high", "P1-Immediate": "urgent", "3 - Medium": "normal", "Unknown": "none", "P0": "urgent"} {
		r := read(t, "jira", "Summary,Issue key,Issue Type,Priority\nx,A-1,Task,"+theirs+"\n", imports.Options{})[0]
		require.Equal(t, ours, r.Item.GetPriority(), theirs)
		require.Empty(t, r.Warnings)
	}
}

func TestADayThatMayBeAnotherIsSaidToBe(t *testing.T) {
	t.Parallel()
	file := "Summary,Issue key,Issue Type,Created,Due date\nx,A-1,Task,3/4/2025 10:00,5/6/2025\ny,A-2,Task,16/02/2017 15:26,4/4/2025\n"
	records := read(t, "jira", file, imports.Options{})
	require.Len(t, records[0].Warnings, 1)
	require.Contains(t, records[0].Warnings[0], "--day-first")
	require.Empty(t, records[1].Warnings)
	require.Equal(t, time.Date(2017, 2, 16, 15, 26, 0, 0, time.UTC), records[1].Item.GetCreateTime().AsTime())
	require.Empty(t, read(t, "jira", file, imports.Options{DayFirst: true})[0].Warnings)
}

func TestWikiMarkupBecomesMarkdown(t *testing.T) {
	t.Parallel()
	for wiki, markdown := range map[string]string{
		"* one\n** two\n*# three":                               "- one\n   - two\n   1. three",
		"# one\n## two":                                         "1. one\n   1. two",
		"say {code}x := *p{code} now":                           "say \n```\nx := *p\n```\n now",
		"{code:title=Main.java|java}a{code}":                    "```java\na\n```",
		"{code:title=a.txt}\na\n{code}":                         "```\na\n```",
		"{noformat}\n```\n{noformat}":                           "````\n```\n````",
		"{quote}one\ntwo{quote}":                                "> one\n> two",
		"||Name||Age||\n|Ada|36|":                               "|Name|Age|\n|---|---|\n|Ada|36|",
		"*bold* and *bolder* but 2 * 3 * 4 and a *b":            "**bold** and **bolder** but 2 * 3 * 4 and a *b",
		"a{*}b{*}c {color:red}red{color}":                       "a**b**c red",
		"[docs|https://example.com/a?b=c|smart-link] [~ada]":    "[docs](https://example.com/a?b=c) @ada",
		"h3. Title\n\nh9. none":                                 "### Title\n\nh9. none",
		"[https://a.example/b|https://a.example/b|smart-link]":  "[https://a.example/b](https://a.example/b)",
		"||*Name*||*Age*||":                                     "|**Name**|**Age**|\n|---|---|",
		"汉字 *粗体* 😀":                                             "汉字 **粗体** 😀",
		"[mail|mailto:a@example.com] and [https://example.com]": "[mail](mailto:a@example.com) and <https://example.com>",
	} {
		file := "Summary,Issue key,Issue Type,Description\nx,A-1,Task,\"" + wiki + "\"\n"
		require.Equal(t, markdown, read(t, "jira", file, imports.Options{})[0].Item.GetBody(), wiki)
	}
}

func TestAFileThatBreaksOffSaysWhere(t *testing.T) {
	t.Parallel()
	for _, file := range []string{`{"issues": [{"number": 1, "state": "open"}`, `{"issues": [{"number": 1}], "pulls": [`, `[{"number": 1}, {"nu`} {
		require.Contains(t, failure(t, "github", file), "after issue 1", file)
	}
	require.Contains(t, failure(t, "github", `{"issues": 3}`), "issues is no list")
	require.Contains(t, failure(t, "github", `"issues"`), "an object or a list is expected")
	require.Empty(t, read(t, "github", "", imports.Options{}))
	require.Empty(t, read(t, "github", `{"issues": null}[]`, imports.Options{}))
}
