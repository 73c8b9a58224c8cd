package notification_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

// examplesVersion is the npm package's; its payloads are fetched, not kept here.
const examplesVersion = "7.6.1"

// examples answers the folder of the package, fetched once a machine.
func examples(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	root := filepath.Join(cache, "bullpen", "npm", "webhooks-examples-"+examplesVersion)
	folder := filepath.Join(root, "node_modules", "@octokit", "webhooks-examples")
	if _, err := os.Stat(filepath.Join(folder, "package.json")); err == nil {
		return folder
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		if os.Getenv("BULLPEN_TEST_REQUIRE") == "1" {
			t.Fatal("npm is needed to fetch the payloads, and BULLPEN_TEST_REQUIRE=1")
		}
		t.Skip("npm is needed to fetch the payloads")
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(root), 0o755))
	fresh := fmt.Sprintf("%s.%d", root, os.Getpid()) // beside it, so that it can be renamed
	defer os.RemoveAll(fresh)
	install := exec.CommandContext(t.Context(), npm, "install", "--prefix", fresh, "--no-audit", "--no-fund", "--ignore-scripts",
		"@octokit/webhooks-examples@"+examplesVersion)
	output, err := install.CombinedOutput()
	require.NoError(t, err, "%s", output)
	if err := os.Rename(fresh, root); err != nil {
		require.FileExists(t, filepath.Join(folder, "package.json"), "another process was quicker")
	}
	return folder
}

type example struct {
	name, event string
	body        []byte
}

// allExamples reads every payload of every edition. Each gets a repository of
// its own, so that what one says is not a part of another's conversation.
func allExamples(t *testing.T) []example {
	t.Helper()
	var all []example
	indexes, err := filepath.Glob(filepath.Join(examples(t), "*", "index.json"))
	require.NoError(t, err)
	repository := regexp.MustCompile(`("full_name":\s*")([^"/]+/[^"]+)(")`)
	for _, index := range indexes {
		raw, err := os.ReadFile(index)
		require.NoError(t, err)
		var events []struct {
			Name     string            `json:"name"`
			Examples []json.RawMessage `json:"examples"`
		}
		require.NoError(t, json.Unmarshal(raw, &events))
		for _, event := range events {
			for i, body := range event.Examples {
				body = repository.ReplaceAll(body, fmt.Appendf(nil, "${1}${2}-%d${3}", len(all)))
				name := fmt.Sprintf("%s/%s/%d", filepath.Base(filepath.Dir(index)), event.Name, i)
				all = append(all, example{name: name, event: event.Name, body: body})
				all = append(all, example{name: name + ", by a stranger", event: event.Name, body: byStranger(t, body, len(all))})
			}
		}
	}
	return all
}

// byStranger makes a payload the act of an account that it does not mention:
// in the originals nearly everybody acts on their own things, and wakes nobody.
func byStranger(t *testing.T, body []byte, n int) []byte {
	t.Helper()
	var decoded map[string]any
	require.NoError(t, json.Unmarshal(body, &decoded))
	decoded["sender"] = map[string]any{"login": "a-stranger", "id": 1, "type": "User"}
	if repository, ok := decoded["repository"].(map[string]any); ok {
		repository["full_name"] = fmt.Sprint(repository["full_name"], "-", n)
	}
	rewritten, err := json.Marshal(decoded)
	require.NoError(t, err)
	return rewritten
}

// at reads a path of a decoded payload, such as "issue.assignees.0.login".
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[key]
		case []any:
			v = nil
			if len(node) > 0 {
				v = node[0]
			}
		default:
			return nil
		}
	}
	return v
}

func textAt(v any, path string) string {
	s, _ := at(v, path).(string)
	return s
}

func loginsAt(v any, path string) []string {
	list, _ := at(v, path).([]any)
	var logins []string
	for _, entry := range list {
		logins = append(logins, strings.ToLower(textAt(entry, "login")))
	}
	return logins
}

// expected says, from the payload alone and by another way than the service,
// which of the accounts in it are woken: by mention in a plain text, by
// assignment, by a review, by a failed check.
func expected(event string, p any, isSeat func(string) bool) []string {
	action, sender := textAt(p, "action"), strings.ToLower(textAt(p, "sender.login"))
	mentioned := func(path string) []string {
		var logins []string
		for word := range strings.FieldsSeq(textAt(p, path)) {
			if name, ok := strings.CutPrefix(word, "@"); ok {
				logins = append(logins, strings.ToLower(strings.TrimRight(name, ".,!?:;)")))
			}
		}
		return logins
	}
	one := func(path string) []string { return []string{strings.ToLower(textAt(p, path))} }
	var woken []string
	switch event + "." + action {
	case "issue_comment.created":
		woken = append(mentioned("comment.body"), loginsAt(p, "issue.assignees")...)
	case "issues.opened":
		woken = mentioned("issue.body")
	case "pull_request.opened":
		woken = mentioned("pull_request.body")
	case "discussion.opened", "discussion.created":
		if action == "opened" {
			woken = mentioned("discussion.body")
		}
	case "discussion_comment.created", "commit_comment.created":
		woken = mentioned("comment.body")
	case "issues.assigned", "pull_request.assigned":
		woken = one("assignee.login")
	case "pull_request.review_requested":
		woken = one("requested_reviewer.login")
	case "pull_request_review.submitted":
		woken = append(mentioned("review.body"), one("pull_request.user.login")...)
	case "pull_request_review_comment.created":
		woken = append(mentioned("comment.body"), append(one("pull_request.user.login"), loginsAt(p, "pull_request.assignees")...)...)
	case "check_run.completed", "check_suite.completed", "workflow_run.completed":
		failed := []string{"failure", "timed_out", "startup_failure"}
		if slices.Contains(failed, textAt(p, event+".conclusion")) {
			woken = one("sender.login")
			for _, path := range []string{".actor.login", ".triggering_actor.login"} {
				if textAt(p, event+path) != "" {
					woken = one(event + path)
				}
			}
			sender = "" // the checks speak, not the account
		}
	}
	woken = slices.DeleteFunc(woken, func(login string) bool { return login == sender || !isSeat(login) })
	slices.Sort(woken)
	return slices.Compact(woken)
}

// cast makes a company in which every account of the payloads has a seat.
func cast(all []example) *companyv1.Company {
	company := &companyv1.Company{RevisionId: "r1", Integrations: &companyv1.Integrations{GithubWebhookSecret: "${GITHUB_WEBHOOK}"}}
	login := regexp.MustCompile(`"login":\s*"([A-Za-z0-9-]+)"`)
	seen := map[string]bool{}
	for _, e := range all {
		for _, match := range login.FindAllSubmatch(e.body, -1) {
			name := strings.ToLower(string(match[1]))
			if seen[name] || name == "a-stranger" {
				continue
			}
			seen[name] = true
			company.Seats = append(company.Seats, &companyv1.Seat{
				Handle: "seat-" + name, Kind: "agent", Github: &companyv1.GithubAccount{Login: string(match[1]), Token: "${GH}"},
			})
		}
	}
	return company
}

func TestEveryPublishedPayloadIsTakenAndWakesWhoItAddresses(t *testing.T) {
	t.Parallel()
	all := allExamples(t)
	require.Greater(t, len(all), 300)
	company := cast(all)
	seats := map[string]bool{}
	for _, s := range company.GetSeats() {
		seats[strings.ToLower(s.GetGithub().GetLogin())] = true
	}
	w := setup(t, withCompany(company))

	type wake struct{ example, seat string }
	want, byDelivery := map[wake]int{}, map[string]string{}
	for i, e := range all {
		var decoded any
		require.NoError(t, json.Unmarshal(e.body, &decoded), e.name)
		for _, login := range expected(e.event, decoded, func(l string) bool { return seats[l] }) {
			want[wake{e.name, "seat-" + login}] = 1
		}
		id := fmt.Sprint("example-", i)
		byDelivery[id] = e.name
		for _, form := range []bool{false, true} { // the second time it is a repetition in another dress
			hook := githubdouble.Sign(githubdouble.Envelope{Secret: githubSecret, Event: e.event, DeliveryID: id, Form: form}, e.body)
			status, body := w.send(t, githubPath, hook)
			require.Equal(t, http.StatusOK, status, "%s: %s", e.name, body)
		}
	}
	w.routed(t)

	rows, err := w.pool.Query(t.Context(), `select w.delivery, d.seat from deliveries d join webhooks w on w.id = d.webhook_id`)
	require.NoError(t, err)
	defer rows.Close()
	got := map[wake]int{}
	for rows.Next() {
		var delivery, seat string
		require.NoError(t, rows.Scan(&delivery, &seat))
		got[wake{byDelivery[delivery], seat}]++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, want, got)
	require.NotEmpty(t, got)

	var dead []string
	require.NoError(t, w.pool.QueryRow(t.Context(), `select coalesce(array_agg(event || ': ' || reason), '{}') from webhooks where state = 'dead'`).Scan(&dead))
	require.Empty(t, dead, "every payload is understood")
	t.Logf("%d payloads, %d wakes of %d seats", len(all), len(got), len(company.GetSeats()))
}
