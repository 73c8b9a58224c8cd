package mcphost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/services/mcphost"
)

const (
	// referee is the test's address, in the environment of the program that the suite takes for the client.
	referee = "BULLPEN_TEST_CONFORMANCE_REFEREE"
	// document is the address that the suite expects a client's metadata document at. Nobody serves it.
	document = "https://conformance-test.local/client-metadata.json"
)

// scenario is what the suite asks of a client.
type scenario struct {
	Name    string          `json:"name"`
	URL     string          `json:"url"`
	Context json.RawMessage `json:"context,omitempty"`
}

// handOn is the program that the suite starts for each scenario: it hands the scenario on to the test, which has a host running, and
// answers how it went.
func handOn() int {
	data, err := json.Marshal(scenario{
		Name: os.Getenv("MCP_CONFORMANCE_SCENARIO"), URL: os.Args[len(os.Args)-1], Context: json.RawMessage(os.Getenv("MCP_CONFORMANCE_CONTEXT")),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, os.Getenv(referee), bytes.NewReader(data))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	response, err := (&http.Client{Timeout: 2 * time.Minute}).Do(request)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer response.Body.Close()
	_, _ = io.Copy(os.Stderr, response.Body)
	if response.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}

// TestConformanceOfTheHost runs the client leg of the official suite against a host: each scenario's server is declared in the
// company, and the host is used as the tool registry uses it. It takes half a minute and npm; `make conformance` asks for it.
// BULLPEN_TEST_CONFORMANCE_SCENARIO plays one scenario alone.
func TestConformanceOfTheHost(t *testing.T) {
	if os.Getenv("BULLPEN_TEST_CONFORMANCE") != "1" {
		t.Skip("BULLPEN_TEST_CONFORMANCE=1 runs the official conformance suite")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			w := setup(t)
			n := w.node(t, "n1", keyed, func(c *mcphost.Config) {
				c.MaxChildren, c.ParallelStarts, c.ClientDocumentURL = 100, 100, document
			})
			c := &conformance{world: w, node: n}
			judge := httptest.NewServer(c)
			defer judge.Close()
			which := []string{"--requirements", revision}
			if one := os.Getenv("BULLPEN_TEST_CONFORMANCE_SCENARIO"); one != "" {
				which = []string{"--scenario", one, "--spec-version", revision}
			}
			suite := exec.CommandContext(t.Context(), filepath.Join("..", "..", "tools", "conformance", "run"),
				append([]string{"suite", "client", "--command", self, "--timeout", "90000"}, which...)...)
			suite.Env = append(os.Environ(), referee+"="+judge.URL)
			suite.Stdout, suite.Stderr = t.Output(), t.Output()
			require.NoError(t, suite.Run(), "a scored scenario failed")
		})
	}
}

// conformance declares a server for each scenario and plays the host's caller.
type conformance struct {
	world *world
	node  *node

	mu       sync.Mutex
	servers  []*companyv1.McpServer
	declared int // ever
}

// ServeHTTP plays one scenario; the suite plays many at a time.
func (c *conformance) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var s scenario
	err := json.NewDecoder(r.Body).Decode(&s)
	if err == nil {
		err = c.play(r.Context(), s)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusUnprocessableEntity)
	}
}

func (c *conformance) play(ctx context.Context, s scenario) error {
	server, err := c.declare(ctx, s)
	if err != nil {
		return err
	}
	// A client would end here, and the scenario's server waits for its connections to end.
	defer c.withdraw(server)
	p := &player{host: c.node, server: server}
	tools, err := p.tools(ctx)
	if err != nil {
		return err
	}
	return p.act(ctx, s, tools)
}

// declare adds the scenario's server to the company and waits until the host knows it.
func (c *conformance) declare(ctx context.Context, s scenario) (name string, err error) {
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if len(s.Context) > 0 {
		if err := json.Unmarshal(s.Context, &given); err != nil {
			return "", err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	server := &companyv1.McpServer{
		Name: fmt.Sprintf("s%d", c.declared), Transport: "http", Url: s.URL, Shared: true, StartupTimeoutSeconds: 60, RequestTimeoutSeconds: 60,
	}
	if grant := grantOf(s.Name); grant != "" {
		server.Authorization = &companyv1.McpAuthorization{Grant: grant, ClientId: given.ClientID}
		if given.ClientSecret != "" {
			secret := fmt.Sprintf("SECRET_%d", c.declared)
			server.Authorization.ClientSecret = "${" + secret + "}"
			c.world.company.mu.Lock()
			c.world.company.secrets[secret] = given.ClientSecret
			c.world.company.mu.Unlock()
		}
	}
	c.declared++
	if err := c.activate(ctx, append(c.servers, server)); err != nil {
		return "", err
	}
	err = eventually(ctx, func() (bool, error) {
		answer, err := c.node.ListServers(ctx, &mcphostv1.ListServersRequest{})
		return slices.ContainsFunc(answer.GetServers(), func(s *mcphostv1.Server) bool { return s.GetServer() == server.GetName() }), err
	})
	return server.GetName(), err
}

// withdraw takes a scenario's server out of the company.
func (c *conformance) withdraw(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(c.servers), func(s *companyv1.McpServer) bool { return s.GetName() == name })
	_ = c.activate(context.Background(), left) // the suite says what it thinks of a client that stays
}

// activate makes these the company's servers. It is called under the lock.
func (c *conformance) activate(ctx context.Context, servers []*companyv1.McpServer) error {
	c.servers = servers
	c.world.company.put(slices.Clone(servers))
	return c.world.bus.Publish(ctx, bus.Message{Topic: "bullpen.company.revision.v1", Key: "active", Value: []byte("x")})
}
