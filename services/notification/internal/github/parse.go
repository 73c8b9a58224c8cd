package github

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

// Parse says what a webhook means. A nil notice means nobody, for the reason
// that is answered beside it. An error, a fault of class invalid, says that
// the payload cannot be understood.
func Parse(event string, body []byte, form bool) (*delivery.Notice, string, error) {
	read, known := map[string]func(*payload, Target) (*delivery.Notice, string){
		"issue_comment":               issueComment,
		"issues":                      issues,
		"pull_request":                pullRequest,
		"pull_request_review":         review,
		"pull_request_review_comment": reviewComment,
		"commit_comment":              commitComment,
		"discussion":                  discussion,
		"discussion_comment":          discussionComment,
		"check_run":                   checkRun,
		"check_suite":                 checkSuite,
		"workflow_run":                workflowRun,
	}[event]
	if !known { // and what its fields mean is not known either
		return nil, "events of this kind wake nobody", nil
	}
	p, err := decode(body, form)
	if err != nil {
		return nil, "", err
	}
	target, ok := p.target()
	if !ok {
		return nil, "", fault.New(fault.Invalid, "The payload of %s names no repository.", event)
	}
	notice, reason := read(p, target)
	if notice == nil {
		return nil, reason, nil
	}
	// A check's text is its title and its summary, which may each be long.
	if n := utf8.RuneCountInString(notice.Body); n > 2*MaxCommentCharacters {
		return nil, "", fault.New(fault.Invalid, "The text has %d characters; GitHub allows %d.", n, MaxCommentCharacters)
	}
	if len(notice.Claims) == 0 {
		return nil, "it calls nobody", nil
	}
	return notice, "", nil
}

// unread is the answer for an action that says nothing to anybody.
func (p *payload) unread() (*delivery.Notice, string) {
	return nil, "the action " + fmt.Sprintf("%.40q", p.Action) + " wakes nobody"
}

// notice is what all events have in common.
func (p *payload) notice(t Target) *delivery.Notice {
	return &delivery.Notice{
		Source:          Source,
		ConversationKey: t.Key(),
		Sender: delivery.Sender{
			VendorID: p.Sender.ID.String(), Name: p.Sender.Login, Login: strings.ToLower(p.Sender.Login),
			Bot: p.Sender.Type == "Bot" || strings.HasSuffix(p.Sender.Login, "[bot]"),
		},
	}
}

// on makes a notice about an issue, a pull request or a discussion.
func (p *payload) on(t Target, i *issue) *delivery.Notice {
	t.Number = i.Number
	n := p.notice(t)
	n.Subject, n.URL = i.Title, i.URL
	return n
}

// say puts a comment into the notice.
func say(n *delivery.Notice, kind string, c *comment) {
	n.MessageID = kind + ":" + c.ID.String()
	n.OutboundID = kind + ":" + c.ID.String()
	n.Body, n.URL, n.OccurredAt = Unmarked(c.Body), c.URL, c.CreatedAt.Time
	if id, ours := MarkerIn(c.Body); ours {
		n.Marker = id.String()
	}
}

// edited keeps of a notice what an edit newly says: whom it calls now and did
// not call before. A seat that only listens hears nothing of edits.
func (p *payload) edited(n *delivery.Notice, body string, at moment) (*delivery.Notice, string) {
	if p.Changes.Body == nil || p.Changes.Body.From == body {
		return nil, "the edit left the text as it was"
	}
	before := map[Mention]bool{}
	for _, m := range Mentions(p.Changes.Body.From) {
		before[m] = true
	}
	n.Claims = nil
	for _, m := range Mentions(body) {
		if !before[m] {
			n.Claims = append(n.Claims, called(m))
		}
	}
	if len(n.Claims) == 0 {
		return nil, "the edit calls nobody new"
	}
	n.Revision, n.OccurredAt = at.stamp(), at.Time
	return n, ""
}

func called(m Mention) delivery.Claim {
	c := delivery.Claim{
		By: delivery.ByLogin, Name: m.Login,
		Reason: delivery.ReasonMention, Obligation: delivery.ObligationTool, Addressed: true,
	}
	if m.Team != "" {
		c.By, c.Name = delivery.ByTeam, m.Team
	}
	return c
}

func mentions(body string) []delivery.Claim {
	var claims []delivery.Claim
	for _, m := range Mentions(body) {
		claims = append(claims, called(m))
	}
	return claims
}

// listeners are who hears what others say in a conversation without being
// meant: those it is assigned to, and those who are part of it already.
func listeners(assignees []account) []delivery.Claim {
	var claims []delivery.Claim
	for _, a := range assignees {
		claims = append(claims, delivery.Claim{
			By: delivery.ByLogin, Name: strings.ToLower(a.Login), Reason: delivery.ReasonThread, Obligation: delivery.ObligationNone,
		})
	}
	return append(claims, delivery.Claim{
		By: delivery.ByFollowing, Reason: delivery.ReasonThread, Obligation: delivery.ObligationNone,
	})
}

// asked makes the claim of somebody who was given something to do.
func asked(by, name, reason string) delivery.Claim {
	return delivery.Claim{
		By: by, Name: strings.ToLower(name), Reason: reason, Obligation: delivery.ObligationTool, Addressed: true,
	}
}
