package github

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// payload is the part of a webhook that is read. Everything may be missing:
// pointers are nil and texts empty, and every reader copes.
type payload struct {
	Action     string      `json:"action"`
	Sender     account     `json:"sender"`
	Repository *repository `json:"repository"`
	Changes    changes     `json:"changes"`

	Issue       *issue      `json:"issue"`
	PullRequest *issue      `json:"pull_request"`
	Discussion  *issue      `json:"discussion"`
	Comment     *comment    `json:"comment"`
	Review      *comment    `json:"review"`
	Assignee    *account    `json:"assignee"`
	Reviewer    *account    `json:"requested_reviewer"`
	Team        *team       `json:"requested_team"`
	CheckRun    *check      `json:"check_run"`
	CheckSuite  *check      `json:"check_suite"`
	WorkflowRun *check      `json:"workflow_run"`
	Workflow    *namedThing `json:"workflow"`
}

type account struct {
	ID    json.Number `json:"id"`
	Login string      `json:"login"`
	Type  string      `json:"type"`
}

type team struct {
	Slug string `json:"slug"`
	Name string `json:"name"`
}

type namedThing struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
}

type repository struct {
	FullName string `json:"full_name"`
}

type changes struct {
	Body *struct {
		From string `json:"from"`
	} `json:"body"`
}

// issue is an issue, a pull request or a discussion: the parts read are alike.
type issue struct {
	ID        json.Number `json:"id"`
	Number    int         `json:"number"`
	Title     string      `json:"title"`
	Body      string      `json:"body"`
	URL       string      `json:"html_url"`
	User      account     `json:"user"`
	Assignees []account   `json:"assignees"`
	UpdatedAt moment      `json:"updated_at"`
	CreatedAt moment      `json:"created_at"`
}

// comment is a comment of any kind, or a review.
type comment struct {
	ID          json.Number `json:"id"`
	Body        string      `json:"body"`
	URL         string      `json:"html_url"`
	InReplyTo   int64       `json:"in_reply_to_id"`
	CommitID    string      `json:"commit_id"`
	State       string      `json:"state"`
	CreatedAt   moment      `json:"created_at"`
	UpdatedAt   moment      `json:"updated_at"`
	SubmittedAt moment      `json:"submitted_at"`
}

// check is a check run, a check suite or a workflow run.
type check struct {
	ID              json.Number  `json:"id"`
	Name            string       `json:"name"`
	Conclusion      string       `json:"conclusion"`
	HeadSHA         string       `json:"head_sha"`
	URL             string       `json:"html_url"`
	RunAttempt      int          `json:"run_attempt"`
	UpdatedAt       moment       `json:"updated_at"`
	CompletedAt     moment       `json:"completed_at"`
	Actor           *account     `json:"actor"`
	TriggeringActor *account     `json:"triggering_actor"`
	App             *namedThing  `json:"app"`
	PullRequests    []issue      `json:"pull_requests"`
	Output          *checkOutput `json:"output"`
}

type checkOutput struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
}

// moment is a time that may be missing, null, or a number of seconds as some
// events of old servers have it.
type moment struct{ time.Time }

func (m *moment) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		m.Time, _ = time.Parse(time.RFC3339, text)
		return nil
	}
	var seconds int64
	if json.Unmarshal(raw, &seconds) == nil {
		m.Time = time.Unix(seconds, 0).UTC()
	}
	return nil
}

// stamp is the moment as a part of an id; empty when it is missing.
func (m moment) stamp() string {
	if m.IsZero() {
		return ""
	}
	return m.UTC().Format(time.RFC3339)
}

// document answers the JSON of a request's body: the body itself, or the field
// payload of a form.
func document(body []byte, form bool) ([]byte, error) {
	if !form {
		return body, nil
	}
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fault.New(fault.Invalid, "The form cannot be read.").WithCause(err)
	}
	if len(fields["payload"]) != 1 {
		return nil, fault.New(fault.Invalid, "The form has %d fields named payload; one is expected.", len(fields["payload"]))
	}
	return []byte(fields.Get("payload")), nil
}

func decode(body []byte, form bool) (*payload, error) {
	raw, err := document(body, form)
	if err != nil {
		return nil, err
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fault.New(fault.Invalid, "The payload is not the JSON that this event has.").WithCause(err)
	}
	return &p, nil
}

// target answers where on the repository something happened; false without a
// repository, as in events of an organisation.
func (p *payload) target() (Target, bool) {
	if p.Repository == nil {
		return Target{}, false
	}
	owner, name, found := strings.Cut(p.Repository.FullName, "/")
	return Target{On: OnIssue, Owner: owner, Repo: name}, found && owner != "" && name != ""
}
