package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/signed"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
)

// sendPatience is what the strictest vendor waits for an answer.
const sendPatience = 3 * time.Second

// sample is what a signed sample webhook tells of.
type sample struct {
	file, secretName, app                string
	repo, title, body, sender, target    string
	number                               int
	channel, thread, user, botUser, team string
}

func (a *app) send() *cobra.Command {
	s := &sample{}
	cmd := &cobra.Command{
		Use:   "send VENDOR EVENT",
		Short: "Send a signed sample webhook, as GitHub or Slack would",
		Long: "Send a signed sample webhook. Without --file these happen:\n\n" +
			"github: " + strings.Join(samples("github"), ", ") + "\n" +
			"slack:  " + strings.Join(samples("slack"), ", ") + "\n\n" +
			"--file sends a payload of yours, signed, in the sample's place; EVENT is then the vendor's own name of it, such as issues.\n" +
			"The secret is read from the environment variable that --secret-env names.",
		Example: `  bullpen send github issue_comment --body "@lantern-ops-lead can you look?"
  bullpen send slack app_mention --app ops-lead --bot-user U0OPSLEAD --body "<@U0OPSLEAD> is search up?"`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.sendSample(cmd.Context(), args[0], args[1], s) },
	}
	f := cmd.Flags()
	f.StringVar(&s.file, "file", "", "payload to send, in the sample's place")
	f.StringVar(&s.secretName, "secret-env", "", "environment variable with the secret; GITHUB_WEBHOOK_SECRET or SLACK_SIGNING_SECRET")
	f.StringVar(&s.body, "body", "", "what was said")
	f.StringVar(&s.sender, "sender", "ada-reis", "github: who did it")
	f.StringVar(&s.target, "target", "", "github: who is assigned or asked for a review")
	f.StringVar(&s.repo, "repo", "lantern/shop", "github: owner/name")
	f.IntVar(&s.number, "number", 12, "github: the issue or pull request")
	f.StringVar(&s.title, "title", "A sample issue", "github: its title")
	f.StringVar(&s.app, "app", "", "slack: the app, the last part of its webhook address")
	f.StringVar(&s.channel, "channel", "C0OPS", "slack: the channel")
	f.StringVar(&s.thread, "thread", "", "slack: the thread's root; empty for a new one")
	f.StringVar(&s.user, "user", "U0ADA", "slack: who wrote")
	f.StringVar(&s.botUser, "bot-user", "", "slack: the app's own user")
	f.StringVar(&s.team, "team", "T0LANTERN", "slack: the workspace")
	return cmd
}

func (a *app) sendSample(ctx context.Context, vendor, event string, s *sample) error {
	webhook, path, err := a.webhook(vendor, event, s)
	if err != nil {
		return err
	}
	base, err := a.address("notification")
	if err != nil {
		return err
	}
	request, err := webhook.Request(ctx, base+path)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: sendPatience}).Do(request)
	if err != nil {
		return fmt.Errorf("nobody took the webhook: %w (bullpen doctor says what is wrong with an installation)", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(map[string]any{"status": response.StatusCode, "answer": string(answer)})
	} else {
		_, err = fmt.Fprintf(a.Out, "%s %s\n", response.Status, answer)
	}
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return errors.Join(fmt.Errorf("%s was refused: the secret that signed it is not the installation's", event), err)
	case response.StatusCode/100 != 2:
		return errors.Join(fmt.Errorf("%s was not acknowledged: status %d", event, response.StatusCode), err)
	}
	return err
}

// webhook makes the signed request and answers the path that it goes to.
func (a *app) webhook(vendor, event string, s *sample) (signed.Webhook, string, error) {
	var payload []byte
	if s.file != "" {
		var err error
		if payload, err = readFile(s.file); err != nil {
			return signed.Webhook{}, "", err
		}
	}
	now := time.Now()
	known := samples(vendor)
	if known == nil {
		return signed.Webhook{}, "", usageError{fmt.Errorf("vendor %q is not known: github or slack", vendor)}
	}
	if payload == nil && !slices.Contains(known, event) {
		return signed.Webhook{}, "", usageError{fmt.Errorf("there is no sample of %q: send one of %s, or a payload of yours with --file", event, strings.Join(known, ", "))}
	}
	switch vendor {
	case "github":
		secret, err := a.secret(s.secretName, "GITHUB_WEBHOOK_SECRET")
		if err != nil {
			return signed.Webhook{}, "", err
		}
		envelope := githubdouble.Envelope{Secret: secret, DeliveryID: uuid.NewString()}
		if payload != nil {
			envelope.Event = event
			return githubdouble.Sign(envelope, payload), "/webhooks/github", nil
		}
		return githubdouble.Webhook(envelope, githubdouble.Happening{
			Kind: event, Repo: s.repo, Number: s.number, Title: s.title, Body: s.body, Sender: s.sender, Author: s.sender, Target: s.target,
			ID: now.UnixMilli(), At: now,
		}), "/webhooks/github", nil
	default:
		secret, err := a.secret(s.secretName, "SLACK_SIGNING_SECRET")
		if err != nil {
			return signed.Webhook{}, "", err
		}
		if s.app == "" {
			return signed.Webhook{}, "", usageError{errors.New("which app? Give --app, the last part of its webhook address")}
		}
		path := "/webhooks/slack/" + s.app
		if payload != nil {
			return slackdouble.Sign(secret, now, payload), path, nil
		}
		return slackdouble.Event(secret, now, slackdouble.Happening{
			Type: event, TeamID: s.team, BotUserID: s.botUser, Channel: s.channel, TS: slackdouble.TS(now), ThreadTS: s.thread, User: s.user,
			Text: s.body, Challenge: "sample",
		}), path, nil
	}
}

// samples answers what can be sent of a vendor, nil for one that is not known.
func samples(vendor string) []string {
	switch vendor {
	case "github":
		return []string{
			"issue_comment", "issue_opened", "issue_assigned", "pull_request_opened", "review_requested", "review", "review_comment",
			"workflow_failed", "ping",
		}
	case "slack":
		return []string{"app_mention", "message", "im", "url_verification"}
	default:
		return nil
	}
}

func (a *app) secret(name, otherwise string) (string, error) {
	if name == "" {
		name = otherwise
	}
	if value := a.getenv(name); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the webhook's secret is not there: set %s, or name another variable with --secret-env", name)
}
