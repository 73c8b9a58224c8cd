package story

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"text/template"

	"github.com/bullpenhq/bullpen/libs/config"
)

//go:embed company.yaml
var companyText string

// What the story's company and its vendors agree on.
const (
	Seat = "ops-lead"

	githubSecret = "story-github-webhook-secret"
	githubLogin  = "lantern-ops-lead"
	githubToken  = "story-github-token"
	slackSigning = "story-slack-signing-secret"
	slackToken   = "xoxb-story-bot-token"
	slackApp     = "ops-lead"
	slackUser    = "U0OPSLEAD"
)

// Document answers the story's company document. Its MCP server is started by the command with the arguments.
func Document(command string, args ...string) (string, error) {
	parsed, err := template.New("company").Delims("[[", "]]").Parse(companyText)
	if err != nil {
		return "", err
	}
	quoted := func(v any) (string, error) {
		text, err := json.Marshal(v) // JSON is YAML
		return string(text), err
	}
	commandText, err := quoted(command)
	if err != nil {
		return "", err
	}
	argsText, err := quoted(args)
	if err != nil {
		return "", err
	}
	var document bytes.Buffer
	err = parsed.Execute(&document, map[string]string{"Command": commandText, "Args": argsText})
	return document.String(), err
}

// Environment answers the settings and secrets that the services need to tell the story with these vendors.
func (v *Vendors) Environment() map[string]string {
	return map[string]string{
		config.EnvName("notification.github-api-url"): v.GitHub.URL(),
		config.EnvName("notification.slack-api-url"):  v.Slack.URL(),
		"GITHUB_WEBHOOK_SECRET":                       githubSecret,
		"OPS_LEAD_GITHUB_TOKEN":                       githubToken,
		"OPS_LEAD_SLACK_BOT":                          slackToken,
		"OPS_LEAD_SLACK_SIGNING":                      slackSigning,
	}
}

// Getenv reads the story's environment.
func (v *Vendors) Getenv(name string) string { return v.Environment()[name] }
