package imports_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/imports"
)

func read(t testing.TB, kind, file string, o imports.Options) []imports.Record {
	t.Helper()
	var out []imports.Record
	for record, err := range imports.Read(kind, strings.NewReader(file), o) {
		require.NoError(t, err)
		out = append(out, record)
	}
	return out
}

func failure(t testing.TB, kind, file string) string {
	t.Helper()
	for _, err := range imports.Read(kind, strings.NewReader(file), imports.Options{}) {
		if err != nil {
			return err.Error()
		}
	}
	require.Fail(t, "the file was read")
	return ""
}

const restIssue = `{"number": 12, "title": "Checkout is slow", "body": "It takes\r\nages.", "state": "closed", "state_reason": "completed",
	"html_url": "https://github.com/acme/shop/issues/12", "user": {"login": "octocat"}, "assignees": [{"login": "ada"}, {"login": "bob"}], "assignee": {"login": "ada"},
	"labels": [{"name": "bug"}, {"name": "good first issue"}], "milestone": {"title": "v2"}, "created_at": "2024-03-01T10:00:00Z", "updated_at": "2024-03-03T10:00:00Z",
	"closed_at": "2024-03-02T10:00:00Z", "comments": 3}`

func TestAnIssueOfGitHubsRestInterfaceBecomesAnItem(t *testing.T) {
	t.Parallel()
	for form, file := range map[string]string{"a list": "[" + restIssue + "]", "one after another": restIssue, "a page": `{"issues": [` + restIssue + `]}`} {
		records := read(t, "github", "\ufeff"+file, imports.Options{Users: map[string]string{"ADA": "ada-handle"}})
		require.Len(t, records, 1, form)
		r := records[0]
		require.Empty(t, r.Problem)
		i := r.Item
		require.Equal(t, "acme/shop#12", i.GetExternalId())
		require.Equal(t, "bug", i.GetType())
		require.Equal(t, "done", i.GetStatus())
		require.Equal(t, "ada-handle", i.GetAssignee())
		require.Equal(t, "octocat", i.GetReporter())
		require.Equal(t, []string{"bug", "good first issue"}, i.GetLabels())
		require.Equal(t, "It takes\nages.\n\n---\n\nAssigned to: bob  \nMilestone: v2", i.GetBody())
		require.Equal(t, time.Date(2024, 3, 2, 10, 0, 0, 0, time.UTC), i.GetDoneTime().AsTime())
		require.Equal(t, []string{"the file lacks comments that it counts"}, r.Warnings)
	}
}

func TestAnIssueOfGitHubsCommandLineBringsItsComments(t *testing.T) {
	t.Parallel()
	r := read(t, "github", `[{"number": 3, "title": "x", "state": "CLOSED", "stateReason": "NOT_PLANNED", "author": {"login": "a"}, "labels": [], "url": "https://x",
		"createdAt": "2024-03-01T10:00:00Z", "comments": [{"author": {"login": "b"}, "body": "no", "createdAt": "2024-03-01T11:00:00Z"}]}]`, imports.Options{})[0]
	require.Equal(t, "cancelled", r.Item.GetStatus())
	require.Len(t, r.Item.GetComments(), 1)
	require.Equal(t, "b", r.Item.GetComments()[0].GetAuthor())
	require.Empty(t, r.Warnings)
}

func TestAJiraExportWithRepeatedColumnsBecomesItems(t *testing.T) {
	t.Parallel()
	file := "Summary,Issue key,Issue id,Issue Type,Status,Priority,Resolution,Assignee,Reporter,Created,Resolved,Due date,Labels,Labels,Description,Parent id,Original Estimate,Inward issue link (Blocks),Custom field (Story Points),Comment,Comment\n" +
		"Pay with card,OLD-1,100,Story,In Review,Highest,,ada,bob,01/Mar/24 3:04 PM,,02/Mar/24 12:00 AM,one,two,\"h2. Goal\n* *bold* {{code}}\n{code:java}\nint *x*;\n{code}\",,5400,OLD-9,3,01/Mar/24 4:00 PM;carl;See [docs|https://example.com],\n" +
		"Refund,OLD-2,101,Sub-task,Closed,Minor,Won't Fix,,bob,2024-03-01 10:00,2024-03-02 10:00,,,,,100,,,,,\n"
	records := read(t, "jira", file, imports.Options{})
	require.Len(t, records, 2)
	i := records[0].Item
	require.Equal(t, "OLD-1", i.GetExternalId())
	require.Equal(t, []string{"story", "in_review", "urgent"}, []string{i.GetType(), i.GetStatus(), i.GetPriority()})
	require.Equal(t, []string{"one", "two"}, i.GetLabels())
	require.Equal(t, []string{"OLD-9"}, i.GetWaitingOn())
	require.Equal(t, "2024-03-02", i.GetDue())
	require.EqualValues(t, 90, i.GetEstimateMinutes())
	require.InDelta(t, 3, i.GetPoints(), 0)
	require.Equal(t, "## Goal\n- **bold** `code`\n```java\nint *x*;\n```\n\n---\n\nAssigned to: ada", i.GetBody())
	require.Equal(t, "See [docs](https://example.com)", i.GetComments()[0].GetBody())
	require.Equal(t, "carl", i.GetComments()[0].GetAuthor())
	require.Equal(t, time.Date(2024, 3, 1, 15, 4, 0, 0, time.UTC), i.GetCreateTime().AsTime())
	second := records[1].Item
	require.Equal(t, "OLD-1", second.GetParent(), "a parent by its number")
	require.Equal(t, "cancelled", second.GetStatus(), "closed without having been done")
}

func TestAJiraSearchResultBecomesItems(t *testing.T) {
	t.Parallel()
	file := `{"startAt": 0, "issues": [{"key": "P-7", "self": "https://acme.example/rest/api/2/issue/7", "fields": {
		"summary": "Slow", "issuetype": {"name": "Unheard Of"}, "status": {"name": "Lurking", "statusCategory": {"key": "indeterminate"}}, "priority": {"name": "Major"},
		"labels": ["x"], "reporter": {"displayName": "Bob B"}, "assignee": {"displayName": "Ada A", "emailAddress": "ada@acme.example"},
		"created": "2024-03-01T10:00:00.000+0100", "parent": {"key": "P-1"}, "components": [{"name": "web"}],
		"description": {"type": "doc", "content": [{"type": "heading", "attrs": {"level": 2}, "content": [{"type": "text", "text": "Goal"}]},
			{"type": "paragraph", "content": [{"type": "text", "text": "go", "marks": [{"type": "strong"}]}, {"type": "mention", "attrs": {"text": "@Ada"}}]},
			{"type": "bulletList", "content": [{"type": "listItem", "content": [{"type": "paragraph", "content": [{"type": "text", "text": "one"}]}]}]}]},
		"issuelinks": [{"type": {"name": "Blocks", "inward": "is blocked by"}, "inwardIssue": {"key": "P-3"}}],
		"comment": {"total": 2, "comments": [{"author": {"displayName": "Carl"}, "body": "h1. hi", "created": "2024-03-01T11:00:00.000+0100"}]}}}]}`
	r := read(t, "jira", file, imports.Options{Users: map[string]string{"ada@acme.example": "ada"}})[0]
	i := r.Item
	require.Equal(t, "https://acme.example/browse/P-7", i.GetUrl())
	require.Equal(t, "ada", i.GetAssignee())
	require.Equal(t, []string{"task", "in_progress", "high"}, []string{i.GetType(), i.GetStatus(), i.GetPriority()})
	require.Equal(t, []string{"x", "Unheard Of"}, i.GetLabels(), "a type that is not known is kept as a label")
	require.Equal(t, "## Goal\n\n**go**@Ada\n\n- one\n\n---\n\ncomponents: web", i.GetBody())
	require.Equal(t, []string{"P-3"}, i.GetWaitingOn())
	require.Equal(t, "# hi", i.GetComments()[0].GetBody())
	require.Equal(t, time.Date(2024, 3, 1, 9, 0, 0, 0, time.UTC), i.GetCreateTime().AsTime())
	require.Contains(t, strings.Join(r.Warnings, "\n"), "lacks comments that it counts")
}

func TestALinearExportBecomesItems(t *testing.T) {
	t.Parallel()
	file := "ID,Team,Title,Description,Status,Estimate,Priority,Project,Creator,Assignee,Labels,Created,Updated,Completed,Canceled,Due Date,Parent issue\n" +
		"ENG-4,Engineering,Ship it,,In Review,2,Urgent,Launch,ana@x,ben@x,\"Bug, web\",2024-03-01T10:00:00.000Z,2024-03-01T10:00:00.000Z,,,2024-04-01,ENG-1\n" +
		"ENG-5,Engineering,Old,,Backlog,,No priority,,ana@x,,,Fri Mar 01 2024 10:00:00 GMT+0000 (GMT),,,2024-03-02T10:00:00.000Z,,\n"
	records := read(t, "linear", file, imports.Options{Users: map[string]string{"ben@x": "ben"}})
	i := records[0].Item
	require.Equal(t, []string{"bug", "in_review", "urgent", "ben", "ENG-1"}, []string{i.GetType(), i.GetStatus(), i.GetPriority(), i.GetAssignee(), i.GetParent()})
	require.Equal(t, []string{"Bug", "web"}, i.GetLabels())
	require.Equal(t, "Team: Engineering  \nProject: Launch", i.GetBody())
	require.Equal(t, "cancelled", records[1].Item.GetStatus())
	require.NotNil(t, records[1].Item.GetCreateTime())
}

func TestWhatTheUserSaysOfStatusesAndTypesCounts(t *testing.T) {
	t.Parallel()
	file := "Summary,Issue key,Issue Type,Status,Priority\nx,A-1,Gizmo,Lurking,Media\n"
	r := read(t, "jira", file, imports.Options{
		Statuses: map[string]string{"lurking": "in_review"}, Types: map[string]string{"GIZMO": "chore"}, Priorities: map[string]string{"media": "normal"},
	})[0]
	require.Equal(t, "normal", r.Item.GetPriority())
	require.Equal(t, "in_review", r.Item.GetStatus())
	require.Equal(t, "chore", r.Item.GetType())
	require.Empty(t, r.Warnings)
	r = read(t, "jira", file, imports.Options{})[0]
	require.Len(t, r.Warnings, 3)
	require.Contains(t, r.Warnings[1], "--status 'Lurking=…'")
	require.Contains(t, r.Warnings[2], "--priority 'Media=…'")
}

func TestAFileOfAnotherKindSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	require.Contains(t, failure(t, "jira", "id,task\n1,2\n"), `no column "Summary"`)
	require.Contains(t, failure(t, "linear", ""), "no header")
	require.Contains(t, failure(t, "github", `[{"number": 1}`), "after issue 1")
	require.Contains(t, failure(t, "trello", "x"), "github, jira, linear")
}

func TestARecordThatIsNoItemIsAProblemAndNotTheEnd(t *testing.T) {
	t.Parallel()
	records := read(t, "github", `["x", {"title": "no number"}, {"number": 2, "title": "good", "state": "open"}]`, imports.Options{})
	require.Len(t, records, 3)
	require.NotEmpty(t, records[0].Problem)
	require.NotEmpty(t, records[1].Problem)
	require.Empty(t, records[2].Problem)
}

func TestADayIsReadAsTheUserSays(t *testing.T) {
	t.Parallel()
	file := "Summary,Issue key,Issue Type,Status,Due date\nx,A-1,Task,Done,3/4/2025\n"
	require.Equal(t, "2025-03-04", read(t, "jira", file, imports.Options{})[0].Item.GetDue())
	require.Equal(t, "2025-04-03", read(t, "jira", file, imports.Options{DayFirst: true})[0].Item.GetDue())
}

func TestNothingOfALongTextIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.StringMatching(`[a-zäß😀]{1,60}`).Draw(rt, "line")
		title := strings.Repeat(rapid.StringMatching(`[a-zß]{1,9} ?`).Draw(rt, "word"), rapid.IntRange(1, 90).Draw(rt, "words"))
		body := strings.Repeat(line+rapid.SampledFrom([]string{"\n", ""}).Draw(rt, "end"), rapid.IntRange(1, 4000).Draw(rt, "times"))
		labels := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,90}`), 0, 60).Draw(rt, "labels")
		quoted := strings.NewReplacer("\n", `\n`).Replace(body)
		file := `{"number": 1, "state": "open", "title": "` + title + `", "body": "` + quoted + `", "labels": ["` + strings.Join(labels, `","`) + `"]}`
		i := read(t, "github", file, imports.Options{})[0].Item
		require.LessOrEqual(rt, len(i.GetTitle()), 256)
		require.LessOrEqual(rt, len(i.GetBody()), 64<<10)
		require.LessOrEqual(rt, len(i.GetLabels()), 40)
		whole := i.GetBody()
		for _, c := range i.GetComments() {
			require.LessOrEqual(rt, len(c.GetBody()), 32<<10)
			require.True(rt, utf8.ValidString(c.GetBody()))
			whole += c.GetBody()
		}
		require.Contains(rt, whole, strings.TrimSpace(body))
		if strings.HasSuffix(i.GetTitle(), "…") {
			require.Contains(rt, whole, strings.Join(strings.Fields(title), " "))
		}
		for _, label := range labels {
			require.True(rt, strings.Contains(whole, label) || strings.Contains(strings.Join(i.GetLabels(), ","), label))
		}
	})
}
