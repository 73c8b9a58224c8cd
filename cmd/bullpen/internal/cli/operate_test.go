package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

// patience bounds what must happen of itself.
const patience = time.Minute

// await runs a command until what it prints is as wanted.
func await(t *testing.T, run func(args ...string) clitest.Result, wanted func(clitest.Result) bool, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		r := run(args...)
		if wanted(r) {
			return r.Out
		}
		select {
		case <-ctx.Done():
			require.Fail(t, "it did not come to that", "%s%s", r.Out, r.Err)
		case <-ticker.C:
		}
	}
}

func TestASampleOfEachVendorBecomesATurnThatCanBeRead(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	thread := i.Vendors.Slack.Say("C0OPS", "", "U0ADA", "<@U0OPSLEAD> is search up?")
	for _, vendor := range []struct {
		name, conversation, tool string
		send                     []string
	}{
		{
			name: "github", conversation: "github:lantern/shop#12", tool: "create_work_item",
			send: []string{"github", "issue_comment", "--body", "@lantern-ops-lead checkout answers 500 since noon. Can you look?"},
		},
		{
			name: "slack", conversation: "slack:T0LANTERN/C0OPS/" + thread, tool: "list_work_items",
			send: []string{
				"slack", "app_mention", "--app", "ops-lead", "--bot-user", "U0OPSLEAD", "--secret-env", "OPS_LEAD_SLACK_SIGNING",
				"--thread", thread, "--body", "<@U0OPSLEAD> is search up?",
			},
		},
	} {
		t.Run(vendor.name, func(t *testing.T) {
			t.Parallel()
			sent := decode(t, fine(t, i.Run(append([]string{"send", "--json"}, vendor.send...)...)))
			require.EqualValues(t, 200, sent["status"])
			out := await(t, i.Run, func(r clitest.Result) bool { return strings.Contains(r.Out, `"state": "done"`) },
				"turns", "list", "--conversation", vendor.conversation, "--json")
			turn := decode(t, out)["turns"].([]any)[0].(map[string]any)
			require.Equal(t, "delivered", turn["outcome"])
			id := turn["turn_id"].(string)

			listed := fine(t, i.Run("turns", "--seat", "ops-lead", "--state", "done"))
			require.Contains(t, listed, id)
			require.Contains(t, listed, vendor.conversation)

			drawn := fine(t, i.Run("turns", "show", id))
			for _, part := range []string{"turn " + id + "  ops-lead  delivered in", "turn started", "#1  scripted answered in", vendor.tool + "(", "reply(", "turn ended: delivered"} {
				require.Contains(t, drawn, part)
			}
			journal := decode(t, fine(t, i.Run("turns", "show", id, "--json")))
			require.NotEmpty(t, journal["rounds"])
			require.Equal(t, vendor.conversation, journal["turn"].(map[string]any)["conversation_key"])
		})
	}
}

func TestAWebhookOfAnotherSecretIsRefusedInWords(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	stranger := func(name string) string {
		if name == "GITHUB_WEBHOOK_SECRET" {
			return "another"
		}
		return i.Getenv(name)
	}
	require.Contains(t, failed(t, clitest.Run(stranger, "send", "github", "issue_opened")), "the secret that signed it is not the installation's")
	none := func(name string) string { return map[string]string{"BULLPEN_DATA": i.Data}[name] }
	require.Contains(t, failed(t, clitest.Run(none, "send", "github", "issue_opened")), "set GITHUB_WEBHOOK_SECRET, or name another variable with --secret-env")
}

func TestEverySampleIsAcknowledged(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	for _, event := range []string{
		"issue_opened", "issue_assigned", "pull_request_opened", "review_requested", "review", "review_comment", "workflow_failed", "ping",
	} {
		fine(t, i.Run("send", "github", event, "--repo", "lantern/samples", "--body", "Nobody is asked.", "--target", "somebody"))
	}
	// A direct message wakes the agent: it is one that the script answers, or the mail would be tried again for as long as others look.
	for _, event := range []string{"message", "im", "url_verification"} {
		fine(t, i.Run("send", "slack", event, "--app", "ops-lead", "--bot-user", "U0OPSLEAD", "--secret-env", "OPS_LEAD_SLACK_SIGNING", "--channel", "C0ELSE", "--body", "is search up?"))
	}
	payload := write(t, `{"zen": "A payload of mine.", "hook_id": 1}`)
	fine(t, i.Run("send", "github", "ping", "--file", payload))
}

func TestToolsAreThoseOfTheOneWhoAsks(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	seat := await(t, i.Run, func(r clitest.Result) bool { return strings.Contains(r.Out, "service_status") }, "tools", "--seat", "ops-lead")
	require.Contains(t, seat, "reply")
	require.Regexp(t, `(?m)^create_work_item +builtin +seat, operator +writes`, fine(t, i.Run("tools")))
	require.NotEmpty(t, decode(t, fine(t, i.Run("tools", "--seat", "ops-lead", "--json")))["tools"])
	require.Contains(t, failed(t, i.Run("tools", "--seat", "nobody")), "nobody")

	shown := fine(t, i.Run("tools", "show", "service_status", "--seat", "ops-lead"))
	require.Regexp(t, `(?m)^source +mcp:status$`, shown)
	require.Regexp(t, `(?s)\narguments\n\{.*"service"`, shown)
	require.Equal(t, "reply", decode(t, fine(t, i.Run("tools", "show", "reply", "--json")))["name"])
	require.Contains(t, failed(t, i.Run("tools", "show", "replly")), "`bullpen tools` lists those there are")
	require.Contains(t, failed(t, i.Run("tools", "show", "replly", "--seat", "ops-lead")), "`bullpen policy explain ops-lead replly`")
}

func TestACallWritesAsTheOperatorAndARefusalIsOneSentence(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	written := decode(t, fine(t, i.Run("call", "create_work_item", "--json", "--args", `{"title":"Renew the certificate","project":"OPS"}`)))
	receipt := written["receipt"].(map[string]any)
	require.Equal(t, "applied", receipt["outcome"])
	require.NotEmpty(t, receipt["position"])
	require.Contains(t, fine(t, i.Run("call", "list_work_items", "--args", `{"project":"OPS"}`)), "Renew the certificate")
	require.Contains(t, fine(t, clitest.Fed(`{"project":"OPS"}`, i.Getenv, "call", "list_work_items", "--args", "-")), "Renew the certificate")

	r := i.Run("call", "create_work_item", "--args", `{"titles":"Renew"}`)
	require.Contains(t, failed(t, r), "did you mean `title`?")
	require.Empty(t, r.Out)
	require.Contains(t, failed(t, i.Run("call", "no_such_tool")), "no_such_tool")
	require.Contains(t, failed(t, i.Run("call", "list_projects", "--args", "{")), "JSON")
	require.Contains(t, failed(t, i.Run("turns", "show", "nope")), "nope")
}

func TestATokenIsShownOnceAndOpensTheDoor(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	r := i.Run("token", "create", "integration", "--days", "3")
	token := strings.TrimSpace(fine(t, r))
	require.True(t, strings.HasPrefix(token, "bp_"))
	require.NotContains(t, r.Err, token, "the text for a person does not repeat it")
	elsewhere := func(name string) string {
		return map[string]string{"BULLPEN_SERVER": i.URL, "BULLPEN_TOKEN": token}[name]
	}
	written := decode(t, fine(t, clitest.Run(elsewhere, "call", "create_work_item", "--json", "--args", `{"title":"Written with a token","project":"OPS"}`)))
	require.Equal(t, "applied", written["receipt"].(map[string]any)["outcome"])
	audited := fine(t, i.Run("calls", "--text", "Written with a token"))
	require.Contains(t, audited, "token integration", "a token is shown by its name")
	id := regexp.MustCompile(`(?m)^[0-9a-f]{8}-[0-9a-f-]+`).FindString(audited)
	require.Regexp(t, `(?m)^by +operator:[0-9a-f-]+ \(token integration\)$`, fine(t, i.Run("calls", "show", id)))

	require.Contains(t, failed(t, i.Run("token", "create", "x", "--days", "-1")), "days")
}

func TestATokenThatIsRevokedOpensNothing(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	token := strings.TrimSpace(fine(t, i.Run("token", "create", "revoked")))
	listed := decode(t, fine(t, i.Run("token", "list", "--json")))["tokens"].([]any)
	var id string
	for _, entry := range listed {
		if one := entry.(map[string]any); one["name"] == "revoked" {
			id = one["token_id"].(string)
		}
	}
	table := fine(t, i.Run("token", "list"))
	require.Contains(t, table, id)
	require.NotContains(t, table, token)
	require.Equal(t, id, decode(t, fine(t, i.Run("token", "revoke", id, "--json")))["revoked"])
	elsewhere := func(name string) string {
		return map[string]string{"BULLPEN_SERVER": i.URL, "BULLPEN_TOKEN": token}[name]
	}
	require.Contains(t, failed(t, clitest.Run(elsewhere, "tools")), "token")
	require.Contains(t, failed(t, i.Run("token", "revoke", "nope")), "token_id")
}

func TestEveryServiceIsFoundAtAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	key, err := os.ReadFile(filepath.Join(i.Data, "keys", "principal"))
	require.NoError(t, err)
	// As in compose: no data directory, the services' keys, and an address for each.
	env := map[string]string{"BULLPEN_DATA": t.TempDir(), "BULLPEN_PRINCIPAL_KEYS": strings.TrimSpace(string(key))}
	for _, service := range []string{"company", "knowledge", "mcphost", "notification", "toolregistry", "tracker", "turn"} {
		env["BULLPEN_PEER_"+strings.ToUpper(service)+"_URL"] = i.URL
	}
	getenv := func(name string) string { return env[name] }
	require.Contains(t, fine(t, clitest.Run(getenv, "tools")), "create_work_item")
	fine(t, clitest.Run(getenv, "turns"))
	fine(t, clitest.Run(getenv, "token", "list"))
	env["BULLPEN_PEER_TURN_URL"] = "http://127.0.0.1:1"
	r := clitest.Run(getenv, "doctor")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Out, "turn: does not answer on http://127.0.0.1:1")
}

func TestAHealthyInstallationHasNothingWrong(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	// Others work on it: mail that is on its way, or an answer that a vendor delayed, is a finding for as long as that lasts.
	healthy := func(r clitest.Result) bool { return r.Code == 0 }
	require.Equal(t, "Nothing is wrong.\n", await(t, i.Run, healthy, "doctor"))
	answer := decode(t, await(t, i.Run, healthy, "doctor", "--json"))
	require.Equal(t, map[string]any{"ok": true, "findings": []any{}}, answer)
	require.Equal(t, "No dead letters.\n", fine(t, i.Run("dead")))
	require.Equal(t, []any{}, decode(t, fine(t, i.Run("dead", "--json")))["dead_letters"])
}
