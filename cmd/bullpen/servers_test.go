package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// published is a server from npm or PyPI as a company declares it, and what it can be asked without an account and without a
// network.
type published struct {
	name string
	// program is a file of the fetched folder; one that ends in .js is run by Node.js.
	program string
	args    []string
	env     map[string]string
	// transport and url are set for one at an address.
	transport, url string
	// tools is how many it must bring at least.
	tools int
	calls []publishedCall
	// only says why nothing is called; empty where something is.
	only string
}

type publishedCall struct{ tool, arguments, says string }

// coldStart bounds the start of all of them at once, on a machine that does other things too.
const coldStart = 5 * time.Minute

// noAccount is the credential of every server that wants one before it starts.
const noAccount = "${NO_ACCOUNT}"

// publishedServers are the servers that people use. folder is theirs to read and write, page an address that one may fetch.
func publishedServers(folder, repository, page string) []published {
	const reference, npm = "reference/bin/", "node_modules/"
	official := npm + "@modelcontextprotocol/server-%s/dist/index.js"
	return []published{
		{name: "everything", program: fmt.Sprintf(official, "everything"), args: []string{"stdio"}, tools: 10, calls: []publishedCall{
			{"echo", `{"message":"hello"}`, "Echo: hello"}, {"get-sum", `{"a":2,"b":3}`, "5"},
		}},
		{name: "filesystem", program: fmt.Sprintf(official, "filesystem"), args: []string{folder}, tools: 10, calls: []publishedCall{
			{"read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(folder, "runbook.txt")), "restart the queue"},
		}},
		{name: "memory", program: fmt.Sprintf(official, "memory"), env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(folder, "memory.jsonl")}, tools: 9, calls: []publishedCall{
			{"create_entities", `{"entities":[{"name":"queue","entityType":"system","observations":["was restarted"]}]}`, "queue"},
			{"search_nodes", `{"query":"restarted"}`, "queue"},
		}},
		{name: "thinking", program: fmt.Sprintf(official, "sequential-thinking"), tools: 1, calls: []publishedCall{
			{"sequentialthinking", `{"thought":"First look at the log.","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":2}`, "thoughtNumber"},
		}},
		{name: "time", program: reference + "mcp-server-time", args: []string{"--local-timezone", "Europe/Berlin"}, tools: 2, calls: []publishedCall{
			{"convert_time", `{"source_timezone":"Europe/Berlin","time":"12:00","target_timezone":"Asia/Tokyo"}`, "Asia/Tokyo"},
		}},
		{name: "fetch", program: reference + "mcp-server-fetch", args: []string{"--ignore-robots-txt", "--allow-private-ips"}, tools: 1, calls: []publishedCall{
			{"fetch", fmt.Sprintf(`{"url":%q}`, page), "All is well"},
		}},
		{name: "git", program: reference + "mcp-server-git", args: []string{"--repository", repository}, tools: 10, calls: []publishedCall{
			{"git_status", fmt.Sprintf(`{"repo_path":%q}`, repository), "runbook.txt"},
		}},
		{name: "gitlab", program: fmt.Sprintf(official, "gitlab"), env: map[string]string{"GITLAB_PERSONAL_ACCESS_TOKEN": noAccount}, tools: 9, only: "every tool needs an account"},
		{name: "github", program: fmt.Sprintf(official, "github"), env: map[string]string{"GITHUB_PERSONAL_ACCESS_TOKEN": noAccount}, tools: 20, only: "every tool needs an account"},
		{name: "slack", program: fmt.Sprintf(official, "slack"), env: map[string]string{"SLACK_BOT_TOKEN": noAccount, "SLACK_TEAM_ID": "T0"}, tools: 8, only: "every tool needs an account"},
		{name: "tavily", program: npm + "tavily-mcp/build/index.js", env: map[string]string{"TAVILY_API_KEY": noAccount}, tools: 4, only: "every tool needs an account"},
		{name: "playwright", program: npm + "@playwright/mcp/cli.js", tools: 20, only: "every tool drives a browser, which no registry package carries"},
		{name: "atlassian", program: "atlassian/bin/mcp-atlassian", tools: 20, only: "every tool needs an account", env: map[string]string{
			"JIRA_URL": "http://127.0.0.1:1", "JIRA_USERNAME": "nobody@example.com", "JIRA_API_TOKEN": noAccount,
			"CONFLUENCE_URL": "http://127.0.0.1:1/wiki", "CONFLUENCE_USERNAME": "nobody@example.com", "CONFLUENCE_API_TOKEN": noAccount,
		}},
	}
}

// declaration is a server's block of a company document; JSON is YAML.
func (p published) declaration(t *testing.T, home string) string {
	t.Helper()
	block := map[string]any{"name": p.name, "tool_prefix": p.name + "_", "startup_timeout_seconds": 120}
	if p.url != "" {
		block["transport"], block["url"] = p.transport, p.url
	} else {
		program := filepath.Join(home, p.program)
		require.FileExists(t, program)
		block["command"], block["args"] = program, p.args
		if strings.HasSuffix(program, ".js") {
			block["command"], block["args"] = "node", append([]string{program}, p.args...)
		}
		if len(p.env) > 0 {
			block["env"] = p.env
		}
	}
	text, err := json.Marshal(block)
	require.NoError(t, err)
	return string(text)
}

// TestTheServersThatPeopleUse lists every server of the table as a seat's turn does, calls those that can be called here, and holds
// each tool to what model providers take.
func TestTheServersThatPeopleUse(t *testing.T) {
	t.Parallel()
	home := fetchedServers(t)
	folder := t.TempDir()
	repository := filepath.Join(folder, "repository")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "runbook.txt"), []byte("restart the queue"), 0o600))
	output, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", repository).CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.NoError(t, os.WriteFile(filepath.Join(repository, "runbook.txt"), []byte("restart the queue"), 0o600))
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "<html><body><article><h1>Status</h1><p>All is well with the queue, and has been since Friday.</p></article></body></html>")
	}))
	t.Cleanup(page.Close)
	servers := publishedServers(folder, repository, page.URL)
	servers = append(servers, everythingAtAddresses(t, home)...)

	var blocks []string
	for _, s := range servers {
		blocks = append(blocks, "  - "+s.declaration(t, home))
	}
	s := newSuiteProcess(t, startVendors(t), `name: Published
providers: {llm: {default: {type: scripted, scenario: {rules: [{rounds: [{submit: {outcome: declined, summary: None.}}]}]}}}}
mcp_servers:
`+strings.Join(blocks, "\n")+`
units: [{name: Operations, roles: [{name: Ada, handle: ada}]}]
`)
	s.environment = append(s.environment, "NO_ACCOUNT=not-a-credential")
	p := s.start(t)
	registry := toolregistryv1connect.NewToolRegistryServiceClient(p.client("turn"))
	seat := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindSeat, Id: "ada", Seat: "ada", Turn: &toolv1.TurnClaims{TurnId: "published", WorkKey: "published"}})

	var all *toolregistryv1.ListToolsResponse
	require.Eventually(t, func() bool {
		var err error
		all, err = registry.ListTools(seat, &toolregistryv1.ListToolsRequest{})
		return err == nil && len(all.GetMissingServers()) == 0
	}, coldStart, 200*time.Millisecond, "%s", missing{&all})
	brought := map[string]int{}
	for _, tool := range all.GetTools() {
		if tool.GetSource() != "builtin" {
			brought[tool.GetSource()]++
			checkTaken(t, tool)
		}
	}
	var group sync.WaitGroup
	for _, s := range servers {
		require.GreaterOrEqual(t, brought["mcp:"+s.name], s.tools, s.name)
		require.Equal(t, s.only == "", len(s.calls) > 0, "%s: call something, or say why nothing is called", s.name)
		group.Go(func() { s.serves(seat, t, registry) })
	}
	group.Wait()
	p.stop(t)
}

// missing says, once it is printed, which servers were still missing.
type missing struct {
	answer **toolregistryv1.ListToolsResponse
}

// String implements [fmt.Stringer].
func (m missing) String() string { return fmt.Sprint((*m.answer).GetMissingServers()) }

// serves makes the server's calls, one after the other.
func (p published) serves(seat context.Context, t *testing.T, registry toolregistryv1connect.ToolRegistryServiceClient) {
	for _, c := range p.calls {
		answer, err := registry.CallTool(seat, &toolregistryv1.CallToolRequest{Tool: p.name + "_" + c.tool, ArgumentsJson: c.arguments, CallId: c.tool})
		switch {
		case err != nil:
			t.Errorf("%s %s: %v", p.name, c.tool, rpc.FromError(err))
		case answer.GetFailed() || !strings.Contains(answer.GetText(), c.says):
			t.Errorf("%s %s answered %q", p.name, c.tool, answer.GetText())
		}
	}
}

// checkTaken holds a tool to the rules that both model providers have for what they are shown.
func checkTaken(t *testing.T, tool *toolregistryv1.Tool) {
	if reason := tool.GetQuarantine(); reason != "" {
		t.Errorf("%s of %s cannot be called: %s", tool.GetName(), tool.GetSource(), reason)
	}
	for _, provider := range []string{"anthropic", "openai"} {
		if reason := tool.GetProviderQuarantine()[provider]; reason != "" {
			t.Errorf("%s of %s cannot be shown to %s: %s", tool.GetName(), tool.GetSource(), provider, reason)
		}
		text := tool.GetProviderSchemas()[provider]
		if text == "" {
			text = tool.GetInputSchemaJson()
		}
		var root map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &root); err != nil {
			t.Errorf("%s of %s has no schema for %s: %v", tool.GetName(), tool.GetSource(), provider, err)
			continue
		}
		if string(root["type"]) != `"object"` {
			t.Errorf("%s of %s takes %s, and %s wants an object", tool.GetName(), tool.GetSource(), root["type"], provider)
		}
		for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum", "const", "not"} {
			if _, has := root[keyword]; has {
				t.Errorf("%s of %s has %s at the root, which %s refuses", tool.GetName(), tool.GetSource(), keyword, provider)
			}
		}
	}
}

// everythingAtAddresses runs the reference server once more for each transport that it serves at an address, in a process of its own.
func everythingAtAddresses(t *testing.T, home string) []published {
	t.Helper()
	entry := filepath.Join(home, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	var servers []published
	for transport, mode := range map[string]struct{ argument, path string }{"http": {"streamableHttp", "/mcp"}, "sse": {"sse", "/sse"}} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port := listener.Addr().(*net.TCPAddr).Port
		require.NoError(t, listener.Close())
		command := exec.Command("node", entry, mode.argument)
		command.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
		require.NoError(t, command.Start())
		t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
		servers = append(servers, published{
			name: "everything-" + transport, transport: transport, url: fmt.Sprintf("http://127.0.0.1:%d%s", port, mode.path), tools: 10,
			calls: []publishedCall{{"echo", `{"message":"hello"}`, "Echo: hello"}},
		})
	}
	slices.SortFunc(servers, func(a, b published) int { return strings.Compare(a.name, b.name) })
	return servers
}

// fetchedServers answers the folder of the published servers, which are fetched once a machine.
func fetchedServers(t *testing.T) string {
	t.Helper()
	if os.Getenv("BULLPEN_TEST_REQUIRE") != "1" {
		for _, program := range []string{"npm", "python3", "git"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skipf("%s is needed to run published MCP servers", program)
			}
		}
	}
	command := exec.CommandContext(t.Context(), filepath.Join("..", "..", "tools", "servers", "fetch"))
	command.Stderr = t.Output()
	home, err := command.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(home))
}
