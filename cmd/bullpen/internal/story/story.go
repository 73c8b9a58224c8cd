// Package story plays the suite's main job against a running installation, and checks every part of it.
//
// A person asks on a GitHub issue and in a Slack thread; the agent's seat looks things up, files the work and answers where it
// was asked, once, although vendors send things twice and strangers send forgeries. The package sees the installation from
// outside alone: it sends webhooks as vendors do, and reads what integrators read. So the same story proves one process, many
// processes, and any broker.
package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/signed"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

const (
	repository = "lantern/shop"
	issue      = 12
	channel    = "C0OPS"

	issueKey = "github:lantern/shop#12"

	// patience bounds the wait for the turns to end.
	patience = time.Minute
	// look is how often it is looked whether they have.
	look = 10 * time.Millisecond
	// ackPatience is what the vendors would wait for an answer.
	ackPatience = 3 * time.Second
)

// Target is the installation that the story is played against.
type Target struct {
	// Webhooks is the base URL that vendors send to.
	Webhooks string
	// Turn and Registry are the services' RPCs, called with the installation's own keys.
	Turn, Registry *connect.Client
}

type player struct {
	target   Target
	vendors  *Vendors
	watch    io.Writer
	report   *Report
	turns    turnv1connect.TurnServiceClient
	registry toolregistryv1connect.ToolRegistryServiceClient
	vendor   *http.Client // sends webhooks as vendors do
	thread   string
}

// Play plays the story and answers its report. The installation must be ready, have the story's company and be new to it. watch is
// told each check as it is made. An error is one of the player's own; what does not hold is in the report.
func Play(ctx context.Context, target Target, vendors *Vendors, watch io.Writer) (*Report, error) {
	p := &player{
		target: target, vendors: vendors, watch: watch, report: &Report{Checks: []Check{}},
		turns:    turnv1connect.NewTurnServiceClient(target.Turn),
		registry: toolregistryv1connect.NewToolRegistryServiceClient(target.Registry),
		vendor:   &http.Client{Timeout: ackPatience},
	}
	for _, act := range []func(context.Context) error{p.forge, p.askOnGitHub, p.awaitTurns(1), p.askOnSlack, p.awaitTurns(2), p.judge} {
		if err := act(ctx); err != nil {
			return p.report, err
		}
	}
	p.report.OK = !slices.ContainsFunc(p.report.Checks, func(c Check) bool { return !c.OK })
	return p.report, nil
}

// question is the comment that the story begins with.
func question(secret string) signed.Webhook {
	return githubdouble.Webhook(githubdouble.Envelope{Secret: secret, DeliveryID: "5b0c1a70-story-0001", HookID: "41"}, githubdouble.Happening{
		Kind: "issue_comment", Repo: repository, Number: issue, Title: "Customers cannot pay", Sender: "ada-reis", Author: "ada-reis", ID: 9001,
		Body: "@" + githubLogin + " checkout answers 500 since noon. Can you look?", At: time.Now(),
	})
}

// forge sends what nobody signed.
func (p *player) forge(ctx context.Context) error {
	status, _, err := p.send(ctx, "/webhooks/github", question("not the secret"))
	p.check("a wrong signature is refused", status == http.StatusUnauthorized, "answered %d", status)
	return err
}

func (p *player) askOnGitHub(ctx context.Context) error {
	p.vendors.GitHub.Say(repository, issue, "ada-reis", "@"+githubLogin+" checkout answers 500 since noon. Can you look?")
	status, took, err := p.send(ctx, "/webhooks/github", question(githubSecret))
	if err != nil {
		return err
	}
	p.check("a signed GitHub comment is acknowledged", status/100 == 2, "answered %d in %.1f ms", status, milliseconds(took))
	status, took, err = p.send(ctx, "/webhooks/github", question(githubSecret))
	p.check("the same delivery again is acknowledged", status/100 == 2, "answered %d in %.1f ms", status, milliseconds(took))
	return err
}

// askOnSlack sends one mention three times, as Slack does to a server that answers late.
func (p *player) askOnSlack(ctx context.Context) error {
	text := "<@" + slackUser + "> is search up?"
	p.thread = p.vendors.Slack.Say(channel, "", "U0ADA", text)
	event := slackdouble.Event(slackSigning, time.Now(), slackdouble.Happening{
		Type: "app_mention", EventID: "Ev0STORY1", TeamID: "T0LANTERN", AppID: "A0OPSLEAD", BotUserID: slackUser,
		Channel: channel, TS: p.thread, User: "U0ADA", Text: text,
	})
	var statuses []string
	accepted := true
	for try := range 3 {
		if try > 0 {
			event = slackdouble.Retry(event, try, "http_timeout")
		}
		status, _, err := p.send(ctx, "/webhooks/slack/"+slackApp, event)
		if err != nil {
			return err
		}
		statuses = append(statuses, fmt.Sprint(status))
		accepted = accepted && status/100 == 2
	}
	p.check("a Slack mention sent three times is acknowledged each time", accepted, "answered %s", strings.Join(statuses, ", "))
	return nil
}

// send delivers a webhook and answers its status and how long that took.
func (p *player) send(ctx context.Context, path string, webhook signed.Webhook) (int, time.Duration, error) {
	request, err := webhook.Request(ctx, p.target.Webhooks+path)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	response, err := p.vendor.Do(request)
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	p.report.Timings.AckMS = max(p.report.Timings.AckMS, milliseconds(took))
	return response.StatusCode, took, response.Body.Close()
}

// awaitTurns waits until so many turns have ended.
func (p *player) awaitTurns(count int) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ticker := time.NewTicker(look)
		defer ticker.Stop()
		for {
			response, err := p.turns.ListTurns(ctx, &turnv1.ListTurnsRequest{State: "done"})
			if err == nil && len(response.GetTurns()) >= count {
				return nil
			}
			select {
			case <-ctx.Done():
				return errors.Join(fmt.Errorf("fewer than %d turns ended within %s", count, patience), err)
			case <-ticker.C:
			}
		}
	}
}

// judge looks at everything that is there at the end.
func (p *player) judge(ctx context.Context) error {
	if err := p.judgeTurns(ctx); err != nil {
		return err
	}
	p.judgeReplies()
	return p.judgeItems(ctx)
}

func (p *player) judgeTurns(ctx context.Context) error {
	list, err := p.turns.ListTurns(ctx, &turnv1.ListTurnsRequest{})
	if err != nil {
		return err
	}
	called := map[string]string{}
	answered := map[string]int{}
	delivered := true
	for _, listed := range slices.Backward(list.GetTurns()) {
		journal, err := p.turns.GetTurn(ctx, &turnv1.GetTurnRequest{TurnId: listed.GetTurnId()})
		if err != nil {
			return err
		}
		turn := journal.GetTurn()
		answered[turn.GetConversationKey()]++
		delivered = delivered && turn.GetOutcome() == "delivered"
		p.measure(turn)
		for _, round := range journal.GetRounds() {
			for _, call := range round.GetCalls() {
				p.report.ToolCalls++
				if call.GetState() == "done" {
					called[call.GetTool()] = call.GetSource()
				}
			}
		}
		p.report.Journals = append(p.report.Journals, journal)
	}
	p.report.Turns = len(list.GetTurns())
	p.check("each question woke its seat once", len(answered) == 2 && answered[issueKey] == 1 && p.report.Turns == 2, "%d turns", p.report.Turns)
	p.check("every turn ended delivered", delivered, "%d of %d", p.report.Turns, p.report.Turns)
	p.check("tools of the tracker were called", called["create_work_item"] == "builtin" && called["list_work_items"] == "builtin", "create_work_item, list_work_items")
	p.check("tools of the knowledge base were called", called["search_knowledge"] == "builtin" && called["write_page"] == "builtin", "search_knowledge, write_page")
	p.check("a tool of an MCP server was called", called["service_status"] == "mcp:status", "service_status by %q", called["service_status"])
	return nil
}

func (p *player) measure(turn *turnv1.Turn) {
	t := &p.report.Timings
	t.AckToTurnMS = max(t.AckToTurnMS, milliseconds(turn.GetStartTime().AsTime().Sub(turn.GetReceiveTime().AsTime())))
	t.TurnMS = max(t.TurnMS, milliseconds(turn.GetEndTime().AsTime().Sub(turn.GetStartTime().AsTime())))
}

func (p *player) judgeReplies() {
	var onIssue []string
	for _, c := range p.vendors.GitHub.Comments() {
		if c.Login == githubLogin {
			onIssue = append(onIssue, c.Body)
			p.report.Replies++
		}
	}
	p.check("GitHub has exactly one answer, on the issue", len(onIssue) == 1 && strings.Contains(onIssue[0], "OPS-1"), "answers: %d", len(onIssue))
	inThread := 0
	posted := p.vendors.Slack.Posted()
	for _, m := range posted {
		p.report.Replies++
		if m.Channel == channel && m.ThreadTS == p.thread && strings.Contains(m.Text, "Open in OPS: 1") {
			inThread++
		}
	}
	p.check("Slack has exactly one answer, in the thread", inThread == 1 && len(posted) == 1, "answers: %d", len(posted))
}

func (p *player) judgeItems(ctx context.Context) error {
	operator := rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "story", DisplayName: "story"})
	response, err := p.registry.CallTool(operator, &toolregistryv1.CallToolRequest{Tool: "list_work_items", ArgumentsJson: `{"project":"OPS"}`})
	if err != nil {
		return err
	}
	items, err := decodeItems(response.GetResultJson())
	if err != nil {
		return err
	}
	p.report.Items = items.Total
	filed := items.Total == 1 && len(items.Items) == 1 && items.Items[0].Reporter == Seat && items.Items[0].Assignee == Seat
	p.check("one work item is filed, by the seat", filed, "items: %d", items.Total)
	return nil
}
