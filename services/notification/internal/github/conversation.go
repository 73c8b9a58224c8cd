package github

import (
	"fmt"
	"strconv"

	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

const (
	created  = "created"
	edited   = "edited"
	opened   = "opened"
	assigned = "assigned"
)

func issueComment(p *payload, t Target) (*delivery.Notice, string) {
	if p.Issue == nil || p.Comment == nil {
		return nil, "there is no comment in it"
	}
	n := p.on(t, p.Issue)
	say(n, "issue_comment", p.Comment)
	switch p.Action {
	case created:
		n.Claims = append(mentions(n.Body), listeners(p.Issue.Assignees)...)
		return n, ""
	case edited:
		return p.edited(n, p.Comment.Body, p.Comment.UpdatedAt)
	default:
		return p.unread()
	}
}

func issues(p *payload, t Target) (*delivery.Notice, string) {
	return p.item(t, p.Issue, "issue")
}

func pullRequest(p *payload, t Target) (*delivery.Notice, string) {
	if p.Action != "review_requested" || p.PullRequest == nil {
		return p.item(t, p.PullRequest, "pull_request")
	}
	n := p.on(t, p.PullRequest)
	n.Body, n.OccurredAt = p.PullRequest.Body, p.PullRequest.UpdatedAt.Time
	switch {
	case p.Reviewer != nil:
		n.Claims = []delivery.Claim{asked(delivery.ByLogin, p.Reviewer.Login, delivery.ReasonReviewRequested)}
	case p.Team != nil:
		n.Claims = []delivery.Claim{asked(delivery.ByTeam, p.Team.Slug, delivery.ReasonReviewRequested)}
	default:
		return nil, "nobody is asked for a review"
	}
	n.MessageID = p.again("pull_request", p.PullRequest, n.Claims[0].Name)
	return n, ""
}

// item reads what happens to an issue or a pull request itself.
func (p *payload) item(t Target, i *issue, kind string) (*delivery.Notice, string) {
	if i == nil {
		return nil, "there is no issue or pull request in it"
	}
	n := p.on(t, i)
	n.Body, n.OccurredAt = i.Body, i.UpdatedAt.Time
	n.MessageID = kind + ":" + i.ID.String()
	switch p.Action {
	case opened:
		n.Claims = mentions(i.Body)
		return n, ""
	case edited:
		return p.edited(n, i.Body, i.UpdatedAt)
	case assigned:
		if p.Assignee == nil {
			return nil, "nobody is assigned"
		}
		n.Claims = []delivery.Claim{asked(delivery.ByLogin, p.Assignee.Login, delivery.ReasonAssigned)}
		n.MessageID = p.again(kind, i, n.Claims[0].Name)
		return n, ""
	default:
		return p.unread()
	}
}

// again names an act that can be done twice, such as assigning somebody again:
// each time is a message of its own.
func (p *payload) again(kind string, i *issue, name string) string {
	return fmt.Sprintf("%s:%s/%s/%s/%s", kind, i.ID, p.Action, name, i.UpdatedAt.stamp())
}

// review reads a finished review: the author of the pull request is meant,
// and owes an answer where changes are asked for.
func review(p *payload, t Target) (*delivery.Notice, string) {
	if p.Review == nil || p.PullRequest == nil {
		return nil, "there is no review in it"
	}
	n := p.on(t, p.PullRequest)
	say(n, "pull_request_review", p.Review)
	n.OccurredAt = p.Review.SubmittedAt.Time
	switch p.Action {
	case "submitted":
		author := asked(delivery.ByLogin, p.PullRequest.User.Login, delivery.ReasonReview)
		if p.Review.State != "changes_requested" {
			author.Obligation, author.Addressed = delivery.ObligationNone, false
		}
		n.Claims = append(mentions(n.Body), author)
		return n, ""
	case edited:
		return p.edited(n, p.Review.Body, p.Review.UpdatedAt)
	default:
		return p.unread()
	}
}

func reviewComment(p *payload, t Target) (*delivery.Notice, string) {
	if p.Comment == nil || p.PullRequest == nil {
		return nil, "there is no comment in it"
	}
	t.On, t.Root = OnReview, p.Comment.InReplyTo
	if t.Root == 0 {
		root, err := strconv.ParseInt(p.Comment.ID.String(), 10, 64)
		if err != nil {
			return nil, "the comment has no number"
		}
		t.Root = root
	}
	n := p.on(t, p.PullRequest)
	say(n, "pull_request_review_comment", p.Comment)
	switch p.Action {
	case created:
		n.Claims = append(mentions(n.Body), listeners(append([]account{p.PullRequest.User}, p.PullRequest.Assignees...))...)
		return n, ""
	case edited:
		return p.edited(n, p.Comment.Body, p.Comment.UpdatedAt)
	default:
		return p.unread()
	}
}

func commitComment(p *payload, t Target) (*delivery.Notice, string) {
	if p.Comment == nil || p.Comment.CommitID == "" {
		return nil, "there is no comment in it"
	}
	if p.Action != created {
		return p.unread()
	}
	t.On, t.SHA = OnCommit, p.Comment.CommitID
	n := p.notice(t)
	n.Subject = "commit " + p.Comment.CommitID
	say(n, "commit_comment", p.Comment)
	n.Claims = append(mentions(n.Body), listeners(nil)...)
	return n, ""
}

func discussion(p *payload, t Target) (*delivery.Notice, string) {
	t.On = OnDiscussion
	if p.Action == assigned {
		return p.unread()
	}
	n, reason := p.item(t, p.Discussion, "discussion")
	return unanswerable(n), reason
}

func discussionComment(p *payload, t Target) (*delivery.Notice, string) {
	if p.Discussion == nil || p.Comment == nil {
		return nil, "there is no comment in it"
	}
	t.On = OnDiscussion
	n := p.on(t, p.Discussion)
	say(n, "discussion_comment", p.Comment)
	switch p.Action {
	case created:
		n.Claims = append(mentions(n.Body), listeners(nil)...)
		return unanswerable(n), ""
	case edited:
		n, reason := p.edited(n, p.Comment.Body, p.Comment.UpdatedAt)
		return unanswerable(n), reason
	default:
		return p.unread()
	}
}

// unanswerable takes the obligation from a notice: discussions are read here
// but not written, and nobody may owe what no tool can deliver.
func unanswerable(n *delivery.Notice) *delivery.Notice {
	if n != nil {
		for i := range n.Claims {
			n.Claims[i].Obligation = delivery.ObligationNone
		}
	}
	return n
}
