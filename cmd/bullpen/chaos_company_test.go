package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
	"github.com/bullpenhq/bullpen/libs/config"
)

const (
	// crowd is how many seats the load is spread over. Half of them ask Anthropic's client, half OpenAI's.
	crowd = 6

	crowdGitHubSecret = "chaos-github-webhook-secret"
	crowdSlackSecret  = "chaos-slack-signing-secret"
	crowdTeam         = "T0CROWD"
)

func crowdLogin(seat int) string     { return fmt.Sprintf("crowd-seat-%d", seat) }
func crowdSlackUser(seat int) string { return fmt.Sprintf("U0CROWD%d", seat) }
func crowdApp(seat int) string       { return fmt.Sprintf("crowd-%d", seat) }

// crowdDocument is a company of many agents, whose models are at an address, and of a person who leads them: what nobody else would
// hear of is told to them.
func crowdDocument(bullpen, models string) string {
	var roles strings.Builder
	for n := range crowd {
		provider := []string{"default", "other"}[n%2]
		fmt.Fprintf(&roles, `      - name: Seat %d
        handle: seat-%d
        llm: {default: [%s]}
        integrations:
          github: {login: %s, token: "${CROWD_GITHUB_%d}"}
          slack: {app: %s, bot_token: "${CROWD_SLACK_%d}", signing_secret: "${CROWD_SLACK_SECRET}", bot_user_id: %s}
`, n, n, provider, crowdLogin(n), n, crowdApp(n), n, crowdSlackUser(n))
	}
	return fmt.Sprintf(`name: Crowd
providers:
  llm:
    default: {type: anthropic, model: model-a, base_url: %q, api_keys: ["${CROWD_MODEL_KEY}"]}
    other: {type: openai-compatible, model: model-o, base_url: %q, api_keys: ["${CROWD_MODEL_KEY}"]}
tracker: {backend: native}
knowledge: {backend: native}
turn_engine: {max_tool_rounds: 40}
loop_guard: {identical_calls: 10}
mcp_servers:
  - {name: status, command: %q, args: [%s]}
integrations:
  github: {webhook_secret: "${CROWD_GITHUB_SECRET}"}
units:
  - name: Operations
    type: team
    lead: Owner
    project: OPS
    space: OPS
    roles:
      - name: Owner
        handle: owner
        kind: human
        contact: {github_login: crowd-owner}
`, models, models+"/v1", bullpen, demo.ServerCommand) + roles.String()
}

// crowdEnvironment makes the vendors know every seat, and answers the settings and secrets that go with it.
func crowdEnvironment(vendors *story.Vendors) map[string]string {
	environment := map[string]string{
		config.EnvName("notification.github-api-url"): vendors.GitHub.URL(),
		config.EnvName("notification.slack-api-url"):  vendors.Slack.URL(),
		"CROWD_GITHUB_SECRET":                         crowdGitHubSecret,
		"CROWD_SLACK_SECRET":                          crowdSlackSecret,
		"CROWD_MODEL_KEY":                             "chaos-model-key",
	}
	for n := range crowd {
		github, slack := fmt.Sprintf("chaos-github-token-%d", n), fmt.Sprintf("xoxb-chaos-%d", n)
		environment[fmt.Sprintf("CROWD_GITHUB_%d", n)] = github
		environment[fmt.Sprintf("CROWD_SLACK_%d", n)] = slack
		vendors.GitHub.Grant(github, crowdLogin(n))
		vendors.Slack.Install(slackdouble.Bot{
			Token: slack, UserID: crowdSlackUser(n), BotID: fmt.Sprintf("B0CROWD%d", n), AppID: fmt.Sprintf("A0CROWD%d", n), TeamID: crowdTeam,
		})
	}
	return environment
}

// Every question has a name, by which it is found in whatever comes of it.
var questionName = regexp.MustCompile(`\bq-\d{4}\b`)

func namesIn(text string) []string {
	names := questionName.FindAllString(text, -1)
	slices.Sort(names)
	return slices.Compact(names)
}

// crowdModel is the seats' model: it looks, files one item, comments on it, writes one page, answers once and submits, and makes
// a call that failed again. Its calls' ids name the answer that they were in, so that a journal says which answers it holds.
type crowdModel struct {
	answers atomic.Int64
	// thinks is how long an answer takes; without it none would be under way when a process dies.
	thinks time.Duration
}

func startCrowdModel(t *testing.T, thinks time.Duration) *modeldouble.Server {
	t.Helper()
	model := &crowdModel{thinks: thinks}
	server, err := modeldouble.Start(modeldouble.Options{Answer: model.answer})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

func (m *crowdModel) answer(r modeldouble.Request) (modeldouble.Answer, error) {
	thought := time.NewTimer(m.thinks)
	defer thought.Stop()
	number := m.answers.Add(1)
	asked := namesIn(r.Messages[0].Text)
	if len(asked) == 0 {
		return modeldouble.Answer{}, fmt.Errorf("no question in %q", r.Messages[0].Text)
	}
	done := resultsOf(r)
	newest := asked[len(asked)-1]
	all := strings.Join(asked, " ")
	var key struct {
		Key string `json:"key"`
	}
	if filed := done["create_work_item"]; filed != "" {
		if err := json.Unmarshal([]byte(filed), &key); err != nil {
			return modeldouble.Answer{}, fmt.Errorf("create_work_item answered %q: %w", filed, err)
		}
	}
	rounds := [][]wish{
		{{"service_status", object{"service": "checkout"}}, {"create_work_item", object{"title": "Look into " + newest, "body": all}}},
		{{"comment_on_work_item", object{"item": key.Key, "body": "Asked as " + all}}, {"write_page", object{"title": "Notes on " + newest, "body": all}}},
		{{"reply", object{"body": "Done: " + all}}},
		{{"submit_work", object{"outcome": "delivered", "summary": "Answered " + all, "deliveries": []string{"reply"}}}},
	}
	answer := modeldouble.Answer{}
	for _, round := range rounds {
		for _, w := range round {
			// A server that is away costs its own tools; the work goes on without them.
			away := w.tool == "service_status" && (!slices.Contains(r.Tools, w.tool) || called(r, w.tool))
			if done[w.tool] != "" || away {
				continue
			}
			args, err := json.Marshal(w.args)
			if err != nil {
				return answer, err
			}
			answer.Calls = append(answer.Calls, modeldouble.Call{
				ID: fmt.Sprintf("a%d-%d", number, len(answer.Calls)), Tool: w.tool, Args: string(args),
			})
		}
		if len(answer.Calls) > 0 {
			break
		}
	}
	<-thought.C
	return answer, nil
}

type object map[string]any

// wish is a call that the model wants to have succeeded.
type wish struct {
	tool string
	args object
}

// resultsOf answers the results of calls that succeeded, by tool. OpenAI's format does not say which ones failed, so it is read
// from the text, as a model would.
func resultsOf(r modeldouble.Request) map[string]string {
	tools, done := map[string]string{}, map[string]string{}
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			tools[c.ID] = c.Tool
		}
		failed := m.Failed || strings.HasPrefix(m.Text, "Refused (") || strings.HasPrefix(m.Text, "The outcome")
		if m.Role == "tool" && !failed {
			done[tools[m.CallID]] = m.Text
		}
	}
	return done
}

func called(r modeldouble.Request, tool string) bool {
	return slices.ContainsFunc(r.Messages, func(m modeldouble.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c modeldouble.Call) bool { return c.Tool == tool })
	})
}
