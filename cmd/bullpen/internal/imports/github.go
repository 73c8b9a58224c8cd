package imports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// githubIssue is an issue as GitHub's REST interface writes it, as its command line does, or as programs do that keep archives: they
// differ in case and in how people and comments are nested.
type githubIssue struct {
	Number      githubNumber            `json:"number"`
	Title       string                  `json:"title"`
	Body        string                  `json:"body"`
	State       string                  `json:"state"`
	StateReason string                  `json:"state_reason"`
	Reason      string                  `json:"stateReason"`
	HTMLURL     string                  `json:"html_url"`
	URL         string                  `json:"url"`
	Repository  string                  `json:"repository_url"`
	ParentURL   string                  `json:"parent_issue_url"`
	User        githubUser              `json:"user"`
	Author      githubUser              `json:"author"`
	Assignee    githubUser              `json:"assignee"`
	Assignees   githubList[githubUser]  `json:"assignees"`
	Labels      githubList[githubNamed] `json:"labels"`
	Milestone   githubMilestone         `json:"milestone"`
	Type        githubNamed             `json:"type"`
	PullRequest json.RawMessage         `json:"pull_request"`
	CreatedAt   string                  `json:"created_at"`
	UpdatedAt   string                  `json:"updated_at"`
	ClosedAt    string                  `json:"closed_at"`
	Created     string                  `json:"createdAt"`
	Updated     string                  `json:"updatedAt"`
	Closed      string                  `json:"closedAt"`
	Comments    githubComments          `json:"comments"`
	Reviews     githubComments          `json:"reviews"`
	// Archives keep the comments beside their number.
	CommentData  githubComments  `json:"comment_data"`
	CommentsData githubComments  `json:"comments_data"`
	Head         json.RawMessage `json:"head"`
	HeadName     string          `json:"headRefName"`
}

// readGitHub reads a list of issues, an object with one, or one issue after another.
func readGitHub(r *bufio.Reader, o Options) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		n := 0
		for raw, err := range elements(r, "issues", "items", "pulls") {
			if err != nil {
				yield(Record{}, fmt.Errorf("after issue %d of the file: %w", n, err))
				return
			}
			n++
			if !yield(githubRecord(raw, n, o), nil) {
				return
			}
		}
	}
}

func githubRecord(raw json.RawMessage, n int, o Options) Record {
	var issue githubIssue
	if err := json.Unmarshal(raw, &issue); err != nil {
		return Record{Place: fmt.Sprintf("entry %d", n), Problem: "it is no issue: " + err.Error()}
	}
	if issue.Number == 0 {
		issue.Number = numberAt(or(issue.HTMLURL, issue.URL))
	}
	if issue.Number == 0 {
		return Record{Place: fmt.Sprintf("entry %d", n), Problem: "it has no number, so it could not be told from others"}
	}
	r := Record{Item: &trackerv1.ImportedItem{
		ExternalId: issue.name(), Title: issue.Title, Body: issue.Body, Url: or(issue.HTMLURL, issue.URL), Priority: "none",
		Reporter: or(issue.User.Login, issue.Author.Login), Parent: parentOf(issue.ParentURL),
	}}
	r.Place = "issue " + r.Item.GetExternalId()
	i := r.Item
	i.Status = issue.status(&r, o)
	i.CreateTime = o.when(&r, "created", or(issue.CreatedAt, issue.Created))
	i.UpdateTime = o.when(&r, "updated", or(issue.UpdatedAt, issue.Updated))
	i.DoneTime = o.when(&r, "closed", or(issue.ClosedAt, issue.Closed))
	i.Type = "task"
	for _, label := range issue.Labels {
		i.Labels = append(i.Labels, string(label))
		if to, ok := o.Types[strings.ToLower(string(label))]; ok {
			i.Type = to
		} else if strings.EqualFold(string(label), "bug") {
			i.Type = "bug"
		}
	}
	if issue.Type != "" {
		i.Type = o.kind(&r, string(issue.Type))
	}
	if issue.isPull() && !slices.Contains(i.GetLabels(), "pull-request") {
		i.Labels = append(i.Labels, "pull-request")
	}
	facts := r.assign(o, append([]githubUser(issue.Assignees), issue.Assignee)...)
	if issue.Milestone.Title != "" {
		facts = append(facts, fact{"Milestone", issue.Milestone.Title})
	}
	issue.thread(&r, o)
	r.fit(facts)
	return r
}

// name answers `owner/name#number` where the issue says whose it is, and the number alone otherwise.
func (i githubIssue) name() string {
	for _, address := range []string{i.HTMLURL, i.URL, i.Repository} {
		if of := repository(address); of != "" {
			return fmt.Sprintf("%s#%d", of, i.Number)
		}
	}
	return fmt.Sprint(i.Number)
}

// parentOf answers the name of the issue at an address.
func parentOf(address string) string {
	of := repository(address)
	if of == "" || numberAt(address) == 0 {
		return ""
	}
	return fmt.Sprintf("%s#%d", of, numberAt(address))
}

func (i githubIssue) status(r *Record, o Options) string {
	reason := strings.ToLower(or(i.StateReason, i.Reason))
	switch state := strings.ToLower(i.State); {
	case o.Statuses[state] != "":
		return o.Statuses[state]
	case state == "open":
		return "todo"
	case state == "closed" && (reason == "not_planned" || reason == "duplicate"):
		return "cancelled"
	case state == "closed" || state == "merged":
		return "done"
	case state == "":
		r.warn("it says no state and became todo")
	default:
		r.warn("state %q is not known here and became todo; --status '%s=…' says otherwise", i.State, i.State)
	}
	return "todo"
}

func (i githubIssue) isPull() bool {
	return i.HeadName != "" || len(i.Head) > 0 || len(i.PullRequest) > 0 && string(i.PullRequest) != "null" || strings.Contains(or(i.HTMLURL, i.URL), "/pull/")
}

// thread brings what was said, the reviews of a pull request with it, in the order of time.
func (i githubIssue) thread(r *Record, o Options) {
	said := slices.Concat(i.Comments.list, i.CommentData.list, i.CommentsData.list)
	if missing := i.Comments.count - len(said); missing > 0 {
		r.warn("the file lacks comments that it counts")
	}
	for _, review := range i.Reviews.list {
		said = append(said, review)
		for _, remark := range review.Below {
			if remark.by() == "" {
				remark.Author = githubUser{review.by()}
			}
			said = append(said, remark)
		}
	}
	for _, c := range said {
		r.Item.Comments = append(r.Item.Comments, &trackerv1.ImportedComment{
			Author: c.by(), Body: c.Body, CreateTime: o.when(r, "a comment's time", c.at()),
		})
	}
	if len(i.Reviews.list) == 0 {
		return // the file's order is as good
	}
	slices.SortStableFunc(r.Item.GetComments(), func(a, b *trackerv1.ImportedComment) int {
		return a.GetCreateTime().AsTime().Compare(b.GetCreateTime().AsTime())
	})
}

// assign gives the item to the first who has a handle here; everybody else is a fact.
func (r *Record) assign(o Options, people ...githubUser) []fact {
	var rest []string
	for _, p := range people {
		handle, ok := o.person(p.Login)
		switch {
		case p.Login == "":
		case ok && r.Item.GetAssignee() == "":
			r.Item.Assignee = handle
		case ok && r.Item.GetAssignee() == handle:
		case !contains(rest, p.Login):
			rest = append(rest, p.Login)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if r.Item.GetAssignee() == "" {
		r.warn("%s has no handle here, so nobody has it; --user '%s=…' says who is who", rest[0], rest[0])
	}
	return []fact{{"Assigned to", strings.Join(rest, ", ")}}
}

func contains(list []string, s string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, s) })
}

func or(first, second string) string {
	if first != "" {
		return first
	}
	return second
}
