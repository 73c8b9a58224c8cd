package github

import (
	"fmt"
	"strings"

	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

func checkRun(p *payload, t Target) (*delivery.Notice, string) {
	return p.check(t, p.CheckRun, "check_run")
}

func checkSuite(p *payload, t Target) (*delivery.Notice, string) {
	return p.check(t, p.CheckSuite, "check_suite")
}

func workflowRun(p *payload, t Target) (*delivery.Notice, string) {
	return p.check(t, p.WorkflowRun, "workflow_run")
}

// check reads the end of a check. The payload does not say who wrote the pull
// request, so the one whose push or click started the check is meant. It is
// the checking program that speaks, not that account, or a seat would never
// hear of its own failures. A cancelled check wakes nobody: a person or a
// newer push has stopped it.
func (p *payload) check(t Target, c *check, kind string) (*delivery.Notice, string) {
	if c == nil || c.ID == "" {
		return nil, "there is no check in it"
	}
	if p.Action != "completed" {
		return p.unread()
	}
	switch c.Conclusion {
	case "failure", "timed_out", "startup_failure":
	default:
		return nil, "the check did not fail"
	}
	if len(c.PullRequests) > 0 && c.PullRequests[0].Number > 0 {
		t.Number = c.PullRequests[0].Number
	} else {
		t.On, t.SHA = OnCommit, c.HeadSHA
	}
	n := p.notice(t)
	n.Sender = delivery.Sender{Name: "checks", Bot: true}
	if c.App != nil && c.App.Slug != "" {
		n.Sender.Name = c.App.Slug
	}
	who := p.Sender
	for _, a := range []*account{c.Actor, c.TriggeringActor} {
		if a != nil && a.Login != "" {
			who = *a
		}
	}
	name := c.Name
	if name == "" && p.Workflow != nil {
		name = p.Workflow.Name
	}
	n.MessageID = kind + ":" + c.ID.String()
	switch kind {
	case "check_suite":
		n.MessageID += "/" + c.UpdatedAt.stamp() // run again, it keeps its id
	case "workflow_run":
		n.MessageID += fmt.Sprintf("/%d", c.RunAttempt)
	default: // a check that runs again has another id
	}
	n.Subject = strings.TrimSpace("check failed: " + name)
	n.Body = fmt.Sprintf("%s: %s (commit %s)", n.Subject, c.Conclusion, c.HeadSHA)
	if c.Output != nil && c.Output.Title != "" {
		n.Body += "\n\n" + c.Output.Title + "\n\n" + c.Output.Summary
	}
	n.URL = c.URL
	n.OccurredAt = c.CompletedAt.Time
	if n.OccurredAt.IsZero() {
		n.OccurredAt = c.UpdatedAt.Time
	}
	n.Claims = []delivery.Claim{{
		By: delivery.ByLogin, Name: strings.ToLower(who.Login),
		Reason: delivery.ReasonCheckFailed, Obligation: delivery.ObligationNone, Addressed: true,
	}}
	return n, ""
}
