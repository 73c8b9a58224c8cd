package imports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// githubIssue is an issue as GitHub's REST interface writes it, or as its command line does: the two differ in case and in how
// people and comments are nested.
type githubIssue struct {
	Number      int64           `json:"number"`
	Title       string          `json:"title"`
	Body        string          `json:"body"`
	State       string          `json:"state"`
	StateReason string          `json:"state_reason"`
	Reason      string          `json:"stateReason"`
	HTMLURL     string          `json:"html_url"`
	URL         string          `json:"url"`
	User        githubUser      `json:"user"`
	Author      githubUser      `json:"author"`
	Assignee    githubUser      `json:"assignee"`
	Assignees   githubList      `json:"assignees"`
	Labels      githubLabels    `json:"labels"`
	Milestone   githubMilestone `json:"milestone"`
	Type        githubType      `json:"type"`
	PullRequest json.RawMessage `json:"pull_request"`
	CreatedAt   string          `json:"created_at"`
	UpdatedAt   string          `json:"updated_at"`
	ClosedAt    string          `json:"closed_at"`
	Created     string          `json:"createdAt"`
	Updated     string          `json:"updatedAt"`
	Closed      string          `json:"closedAt"`
	Comments    githubComments  `json:"comments"`
	Head        json.RawMessage `json:"head"`
}

type githubMilestone struct {
	Title string `json:"title"`
	DueOn string `json:"due_on"`
	Due   string `json:"dueOn"`
}

type githubType struct {
	Name string `json:"name"`
}

// githubUser is somebody: an object, or a name alone.
type githubUser struct{ Login string }

// UnmarshalJSON implements [json.Unmarshaler].
func (u *githubUser) UnmarshalJSON(raw []byte) error {
	var object struct {
		Login string `json:"login"`
		Name  string `json:"name"`
	}
	if json.Unmarshal(raw, &object) == nil {
		u.Login = or(object.Login, object.Name)
		return nil
	}
	_ = json.Unmarshal(raw, &u.Login) // anything else is nobody
	return nil
}

type githubList []githubUser

// githubLabels are objects with a name, or names alone.
type githubLabels []string

// UnmarshalJSON implements [json.Unmarshaler].
func (l *githubLabels) UnmarshalJSON(raw []byte) error {
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil
	}
	for _, entry := range entries {
		var object struct {
			Name string `json:"name"`
		}
		var name string
		switch {
		case json.Unmarshal(entry, &object) == nil:
			*l = append(*l, object.Name)
		case json.Unmarshal(entry, &name) == nil:
			*l = append(*l, name)
		}
	}
	return nil
}

// githubComments are the comments themselves, or how many there are, which brings none.
type githubComments struct {
	list  []githubComment
	count int
}

type githubComment struct {
	Body      string     `json:"body"`
	User      githubUser `json:"user"`
	Author    githubUser `json:"author"`
	CreatedAt string     `json:"created_at"`
	Created   string     `json:"createdAt"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *githubComments) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &c.count) == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &c.list); err == nil {
		return nil
	}
	var connection struct {
		Nodes []githubComment `json:"nodes"`
	}
	if err := json.Unmarshal(raw, &connection); err != nil {
		return fmt.Errorf("comments are neither a list nor a number")
	}
	c.list = connection.Nodes
	return nil
}

// readGitHub reads a list of issues, an object with one, or one issue after another.
func readGitHub(r *bufio.Reader, o Options) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		n := 0
		for raw, err := range elements(r, "issues") {
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
		return Record{Place: fmt.Sprintf("entry %d", n), Problem: "it has no number, so it could not be told from others"}
	}
	r := Record{Place: fmt.Sprintf("issue %d", issue.Number), Item: &trackerv1.ImportedItem{
		ExternalId: fmt.Sprint(issue.Number), Title: issue.Title, Body: issue.Body, Labels: issue.Labels, Url: or(issue.HTMLURL, issue.URL), Priority: "none",
		Reporter: or(issue.User.Login, issue.Author.Login),
	}}
	i := r.Item
	reason := strings.ToLower(or(issue.StateReason, issue.Reason))
	switch state := strings.ToLower(issue.State); {
	case o.Statuses[state] != "":
		i.Status = o.Statuses[state]
	case state == "open":
		i.Status = "todo"
	case reason == "not_planned" || reason == "duplicate":
		i.Status = "cancelled"
	default:
		i.Status = "done"
	}
	i.CreateTime = o.when(&r, "created", or(issue.CreatedAt, issue.Created))
	i.UpdateTime = o.when(&r, "updated", or(issue.UpdatedAt, issue.Updated))
	i.DoneTime = o.when(&r, "closed", or(issue.ClosedAt, issue.Closed))
	i.Type = "task"
	if issue.Type.Name != "" {
		i.Type = o.kind(&r, issue.Type.Name)
	} else {
		for _, label := range issue.Labels {
			if to, ok := o.Types[strings.ToLower(label)]; ok {
				i.Type = to
			} else if strings.EqualFold(label, "bug") {
				i.Type = "bug"
			}
		}
	}
	facts := r.assign(o, append([]githubUser(issue.Assignees), issue.Assignee)...)
	if issue.Milestone.Title != "" {
		facts = append(facts, fact{"Milestone", issue.Milestone.Title})
	}
	if len(issue.PullRequest) > 0 && string(issue.PullRequest) != "null" || len(issue.Head) > 0 {
		i.Labels = append(i.Labels, "pull-request")
	}
	if issue.Comments.count > 0 {
		r.warn("the file has none of its %d comments", issue.Comments.count)
	}
	for _, c := range issue.Comments.list {
		i.Comments = append(i.Comments, &trackerv1.ImportedComment{
			Author: or(c.User.Login, c.Author.Login), Body: c.Body, CreateTime: o.when(&r, "a comment's time", or(c.CreatedAt, c.Created)),
		})
	}
	r.fit(facts)
	return r
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
		case !ok && !contains(rest, p.Login):
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
	for _, have := range list {
		if strings.EqualFold(have, s) {
			return true
		}
	}
	return false
}

func or(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

// elements answers the elements of a list, of the list under a key of an object, or of objects one after another, without holding more
// than one of them.
func elements(r *bufio.Reader, key string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		decoder := json.NewDecoder(r)
		if head, err := firstByte(r); err == nil && head == '[' {
			if _, err := decoder.Token(); err != nil {
				yield(nil, err)
				return
			}
			for decoder.More() {
				var raw json.RawMessage
				if err := decoder.Decode(&raw); err != nil {
					yield(nil, err)
					return
				}
				if !yield(raw, nil) {
					return
				}
			}
			if _, err := decoder.Token(); err != nil {
				yield(nil, fmt.Errorf("the list is not closed: %w", err))
			}
			return
		}
		for {
			var raw json.RawMessage
			if err := decoder.Decode(&raw); err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
			var page map[string]json.RawMessage
			if json.Unmarshal(raw, &page) == nil && page[key] != nil {
				var list []json.RawMessage
				if err := json.Unmarshal(page[key], &list); err != nil {
					yield(nil, fmt.Errorf("%s is no list: %w", key, err))
					return
				}
				for _, element := range list {
					if !yield(element, nil) {
						return
					}
				}
				continue
			}
			if !yield(raw, nil) {
				return
			}
		}
	}
}

func firstByte(r *bufio.Reader) (byte, error) {
	for n := 1; ; n++ {
		head, err := r.Peek(n)
		if err != nil {
			return 0, err
		}
		switch c := head[n-1]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c, nil
		}
	}
}
