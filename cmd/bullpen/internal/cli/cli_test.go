package cli_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { clitest.Main(m) }

// decode requires that a text is exactly one JSON object.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	decoder := json.NewDecoder(strings.NewReader(text))
	require.NoError(t, decoder.Decode(&object), text)
	require.False(t, decoder.More(), text)
	return object
}

// fine requires that a command did what it was asked, and answers what it printed.
func fine(t *testing.T, r clitest.Result) string {
	t.Helper()
	require.Zero(t, r.Code, r.Out+r.Err)
	return r.Out
}

// failed requires that a command could not do what it was asked, and answers what it said.
func failed(t *testing.T, r clitest.Result) string {
	t.Helper()
	require.Equal(t, 1, r.Code, r.Out+r.Err)
	require.True(t, strings.HasPrefix(r.Err, "bullpen: ") || r.Err == "", r.Err)
	return r.Err
}

func TestHelpIsAsItsGoldenFile(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, command := range []string{
		"", "demo", "check", "migrate", "send", "tools", "tools show", "tools changes", "tools accept", "tools skills", "servers", "servers show", "servers put", "servers restart", "call", "calls", "calls show", "turns", "turns list", "turns show",
		"approvals", "approvals list", "approvals show", "approvals approve", "approvals deny", "approvals cancel", "policy", "policy explain", "policy simulate", "work", "work explain", "purge", "dead", "dead list", "dead redrive",
		"token", "token create", "token list", "token revoke", "doctor", "bench", "bench boot", "bench webhook", "bench turn", "bench call",
	} {
		args := append(strings.Fields(command), "--help")
		all.WriteString("$ bullpen " + strings.Join(args, " ") + "\n\n" + fine(t, clitest.Run(clitest.Without, args...)) + "\n")
	}
	golden := filepath.Join("testdata", "help.golden.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String(), "run the test with -update when the change is meant")
}

func TestUpShowsEverySettingOfEveryService(t *testing.T) {
	t.Parallel()
	help := fine(t, clitest.Run(clitest.Without, "up", "--help"))
	for _, setting := range []string{"-company (", "-data (BULLPEN_DATA)", "-listen (BULLPEN_LISTEN)", "-turn.max-concurrent (BULLPEN_TURN_MAX_CONCURRENT)"} {
		require.Contains(t, help, setting)
	}
}

func TestWrongUsageIsTwoAndSaysWhereTheRightOneIsTold(t *testing.T) {
	t.Parallel()
	secrets := func(name string) string {
		return map[string]string{"GITHUB_WEBHOOK_SECRET": "x", "SLACK_SIGNING_SECRET": "x"}[name]
	}
	for command, says := range map[string]string{
		"nope":                       "see `bullpen --help`",
		"check":                      "bullpen check takes FILE, and was given 0 arguments; see `bullpen check --help`",
		"turns show":                 "see `bullpen turns show --help`",
		"turns nope":                 "see `bullpen turns --help`",
		"turns --nope":               "see `bullpen turns --help`",
		"turns --limit many":         "see `bullpen turns --help`",
		"up --nope":                  "see `bullpen up --help`",
		"up company.yaml":            "settings are given as -name=value",
		"up --data":                  "see `bullpen up --help`",
		"up --drain-timeout 0s":      "-drain-timeout (BULLPEN_DRAIN_TIMEOUT) must be longer than 0",
		"migrate":                    "Give --database-url or BULLPEN_DATABASE_URL",
		"send github":                "see `bullpen send --help`",
		"send gitlab note":           `vendor "gitlab" is not known: github or slack`,
		"send github issues":         "issue_opened",
		"send slack nope --app x":    "app_mention",
		"send slack app_mention":     "Give --app",
		"dead redrive twelve":        "`bullpen dead list` shows them",
		"bench nope":                 "see `bullpen bench --help`",
		"token create one --days no": "see `bullpen token create --help`",
	} {
		r := clitest.Run(secrets, append(strings.Fields(command), "--server", "http://127.0.0.1:1", "--token", "x")...)
		if strings.HasPrefix(command, "up") {
			r = clitest.Run(secrets, strings.Fields(command)...)
		}
		require.Equal(t, 2, r.Code, command)
		require.Contains(t, r.Err, says, command)
		require.Empty(t, r.Out, command)
	}
}

func TestWithoutAnInstallationEveryCommandSaysHowToGetOne(t *testing.T) {
	t.Parallel()
	nowhere := func(name string) string { return map[string]string{"BULLPEN_DATA": t.TempDir()}[name] }
	for _, command := range []string{"turns", "turns show x", "tools", "call list_projects", "dead", "dead redrive", "token list", "token create x"} {
		require.Contains(t, failed(t, clitest.Run(nowhere, strings.Fields(command)...)), "start one with `bullpen up`, or name its data directory with --data, or its address with --server", command)
	}
	r := clitest.Run(nowhere, "doctor", "--json")
	require.Equal(t, 1, r.Code)
	answer := decode(t, r.Out)
	require.Equal(t, false, answer["ok"])
	require.Len(t, answer["findings"], 1, "said once, not by every service")
	require.Contains(t, r.Out, "start one with `bullpen up`")
}

func TestAnInstallationThatDoesNotAnswerIsReportedWithItsAddress(t *testing.T) {
	t.Parallel()
	env := func(name string) string {
		return map[string]string{"BULLPEN_SERVER": "http://127.0.0.1:1", "BULLPEN_TOKEN": "bp_x", "GITHUB_WEBHOOK_SECRET": "x"}[name]
	}
	require.Contains(t, failed(t, clitest.Run(env, "turns")), "bullpen doctor")
	require.Contains(t, failed(t, clitest.Run(env, "send", "github", "ping")), "bullpen doctor")
	r := clitest.Run(env, "doctor")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Out, "does not answer on http://127.0.0.1:1")
}

func TestWithoutACredentialItIsSaidHowToGetOne(t *testing.T) {
	t.Parallel()
	env := func(name string) string {
		return map[string]string{"BULLPEN_SERVER": "http://127.0.0.1:1", "BULLPEN_DATA": t.TempDir()}[name]
	}
	require.Contains(t, failed(t, clitest.Run(env, "turns")), "set BULLPEN_TOKEN to an API token")
}

func TestToolsOfThisBuildAreListedWithoutAnInstallation(t *testing.T) {
	t.Parallel()
	require.Contains(t, fine(t, clitest.Run(clitest.Without, "tools", "--offline")), "create_work_item")
	tools := decode(t, fine(t, clitest.Run(clitest.Without, "tools", "--offline", "--json")))["tools"]
	require.GreaterOrEqual(t, len(tools.([]any)), 13)
}
