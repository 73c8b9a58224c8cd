package githubdouble

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/doubles/signed"
)

// Envelope is what a webhook carries beside its payload.
type Envelope struct {
	// Secret is the hook's.
	Secret string
	// Event is the X-GitHub-Event, such as issue_comment.
	Event string
	// DeliveryID is the X-GitHub-Delivery; a redelivery has the same one.
	DeliveryID string
	// HookID is the X-GitHub-Hook-ID; empty means 1.
	HookID string
	// Form sends the payload as a form's field, as hooks made in the browser
	// do unless told otherwise.
	Form bool
}

// Sign makes a payload into the request that GitHub would send.
func Sign(e Envelope, payload []byte) signed.Webhook {
	body, kind := payload, "application/json"
	if e.Form {
		body, kind = []byte(url.Values{"payload": {string(payload)}}.Encode()), "application/x-www-form-urlencoded"
	}
	if e.HookID == "" {
		e.HookID = "1"
	}
	mac := hmac.New(sha256.New, []byte(e.Secret))
	mac.Write(body)
	header := http.Header{}
	header.Set("Content-Type", kind)
	header.Set("User-Agent", "GitHub-Hookshot/0000000")
	header.Set("X-GitHub-Event", e.Event)
	header.Set("X-GitHub-Delivery", e.DeliveryID)
	header.Set("X-GitHub-Hook-ID", e.HookID)
	header.Set("X-GitHub-Hook-Installation-Target-Type", "repository")
	header.Set("X-GitHub-Hook-Installation-Target-ID", "186853002")
	header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return signed.Webhook{Header: header, Body: body}
}

// Happening is what a webhook tells of. Fields that are left empty get what a
// small repository would have.
type Happening struct {
	// Kind is one of issue_comment, issue_opened, issue_assigned,
	// pull_request_opened, review_requested, review, review_comment,
	// workflow_failed and ping.
	Kind string
	// Repo is owner/name.
	Repo   string
	Number int
	// Title is the issue's or pull request's, Body what was said.
	Title, Body string
	// Sender did it; one with [bot] at the end is a program.
	Sender string
	// Author opened the issue or pull request.
	Author string
	// Target is who is assigned or asked for a review.
	Target string
	// Assignees are who the issue is assigned to already.
	Assignees []string
	// ID is the comment's or review's.
	ID int64
	// InReplyTo is the first comment of a review thread.
	InReplyTo int64
	// PreviousBody makes an issue_comment an edit.
	PreviousBody string
	// State is a review's: commented, approved or changes_requested.
	State string
	At    time.Time
}

// Webhook makes a happening into a signed request. The Envelope's Event is
// filled in from the Kind.
func Webhook(e Envelope, h Happening) signed.Webhook {
	h = h.filled()
	event, payload := h.payload()
	if e.Event == "" {
		e.Event = event
	}
	if e.DeliveryID == "" {
		e.DeliveryID = fmt.Sprintf("%08x-0000-4000-8000-%012x", accountID(h.Kind+h.Repo), h.ID)
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Errorf("githubdouble: payload: %w", err)) // strings and numbers always marshal
	}
	return Sign(e, body)
}

func (h Happening) filled() Happening {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&h.Kind, "issue_comment")
	set(&h.Repo, "acme/shop")
	set(&h.Title, "Checkout is slow")
	set(&h.Sender, "ines")
	set(&h.Author, h.Sender)
	set(&h.State, "commented")
	if h.Number == 0 {
		h.Number = 1
	}
	if h.ID == 0 {
		h.ID = 1_000_001
	}
	if h.At.IsZero() {
		h.At = time.Now()
	}
	return h
}

func (h Happening) payload() (event string, payload object) {
	base := object{"repository": h.repository(), "sender": account(h.Sender)}
	with := func(action string, more object) object {
		base["action"] = action
		for k, v := range more {
			base[k] = v
		}
		return base
	}
	switch h.Kind {
	case "issue_comment":
		more := object{"issue": h.issue(), "comment": h.comment("issues/%d#issuecomment-%d")}
		if h.PreviousBody == "" {
			return "issue_comment", with("created", more)
		}
		more["changes"] = object{"body": object{"from": h.PreviousBody}}
		return "issue_comment", with("edited", more)
	case "issue_opened":
		return "issues", with("opened", object{"issue": h.issue()})
	case "issue_assigned":
		return "issues", with("assigned", object{"issue": h.issue(), "assignee": account(h.Target)})
	case "pull_request_opened":
		return "pull_request", with("opened", object{"number": h.Number, "pull_request": h.pull()})
	case "review_requested":
		return "pull_request", with("review_requested", object{
			"number": h.Number, "pull_request": h.pull(), "requested_reviewer": account(h.Target),
		})
	case "review":
		review := h.comment("pull/%d#pullrequestreview-%d")
		review["state"], review["submitted_at"] = h.State, h.stamp()
		return "pull_request_review", with("submitted", object{"review": review, "pull_request": h.pull()})
	case "review_comment":
		comment := h.comment("pull/%d#discussion_r%d")
		comment["path"], comment["commit_id"] = "main.go", "0123456789abcdef0123456789abcdef01234567"
		if h.InReplyTo != 0 {
			comment["in_reply_to_id"] = h.InReplyTo
		}
		return "pull_request_review_comment", with("created", object{"comment": comment, "pull_request": h.pull()})
	case "workflow_failed":
		return "workflow_run", with("completed", object{"workflow_run": h.workflow(), "workflow": object{"id": 1, "name": "CI"}})
	case "ping":
		base["zen"], base["hook_id"], base["hook"] = "Half measures are as bad as nothing at all.", 1, object{"id": 1, "type": "Repository"}
		return "ping", base
	default:
		panic(fmt.Errorf("githubdouble: no happening is called %q", h.Kind)) // the caller's literal is wrong
	}
}

func (h Happening) stamp() string { return h.At.UTC().Format(time.RFC3339) }

func (h Happening) repository() object {
	owner, name, _ := strings.Cut(h.Repo, "/")
	return object{
		"id": accountID(h.Repo), "name": name, "full_name": h.Repo, "private": false,
		"owner": account(owner), "html_url": "https://github.com/" + h.Repo, "default_branch": "main",
	}
}

func (h Happening) issue() object {
	body := h.Body
	if h.Kind == "issue_comment" {
		body = "It takes ten seconds."
	}
	return object{
		"id": accountID(h.Repo) + int64(h.Number), "number": h.Number, "title": h.Title, "body": body, "state": "open",
		"user": account(h.Author), "assignees": h.accounts(), "labels": []object{}, "pull_request": nil,
		"html_url":   fmt.Sprintf("https://github.com/%s/issues/%d", h.Repo, h.Number),
		"created_at": h.stamp(), "updated_at": h.stamp(),
	}
}

func (h Happening) accounts() []object {
	all := make([]object, 0, len(h.Assignees))
	for _, login := range h.Assignees {
		all = append(all, account(login))
	}
	return all
}

func (h Happening) pull() object {
	pull := h.issue()
	delete(pull, "pull_request")
	pull["html_url"] = fmt.Sprintf("https://github.com/%s/pull/%d", h.Repo, h.Number)
	pull["head"] = object{"ref": "fix", "sha": "0123456789abcdef0123456789abcdef01234567"}
	pull["base"] = object{"ref": "main"}
	pull["merged"] = false
	return pull
}

func (h Happening) comment(page string) object {
	return object{
		"id": h.ID, "body": h.Body, "user": account(h.Sender),
		"html_url":   fmt.Sprintf("https://github.com/%s/"+page, h.Repo, h.Number, h.ID),
		"created_at": h.stamp(), "updated_at": h.stamp(), "author_association": "MEMBER",
	}
}

func (h Happening) workflow() object {
	return object{
		"id": h.ID, "name": "CI", "event": "push", "status": "completed", "conclusion": "failure", "run_attempt": 1,
		"head_branch": "fix", "head_sha": "0123456789abcdef0123456789abcdef01234567",
		"actor": account(h.Sender), "triggering_actor": account(h.Sender),
		"pull_requests": []object{{"number": h.Number, "id": 1}},
		"html_url":      fmt.Sprintf("https://github.com/%s/actions/runs/%d", h.Repo, h.ID),
		"created_at":    h.stamp(), "updated_at": h.stamp(),
	}
}
