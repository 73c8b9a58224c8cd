package mcphost_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/presence"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/mcphost"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/hostiletest"
)

func TestMain(m *testing.M) {
	if os.Getenv(nodeVariable) != "" {
		run.Main(mcphost.Name, mcphost.Module)
	}
	if os.Getenv(referee) != "" {
		os.Exit(handOn())
	}
	hostiletest.Main()
	code := m.Run()
	_ = os.RemoveAll(effectsFolder())
	os.Exit(code)
}

// effectsFolder outlives every test: children write their effects until their host has ended, which is after a test's own
// folders are removed.
func effectsFolder() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("bullpen-mcphost-test-%d", os.Getpid()))
}

// company plays the company service: a document that tests change, and sealed secrets.
type company struct {
	mu      sync.Mutex
	current *companyv1.Company
	secrets map[string]string
	// public is the company's public address.
	public string
}

func (c *company) GetCompany(context.Context, *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil, fault.New(fault.NotFound, "No company is active.").WithReason("NO_ACTIVE_REVISION")
	}
	return &companyv1.GetCompanyResponse{Company: c.current}, nil
}

func (c *company) ResolveSecrets(_ context.Context, r *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := &companyv1.ResolveSecretsResponse{}
	for _, text := range r.GetTemplates() {
		for name, value := range c.secrets {
			if pointer := "${" + name + "}"; strings.Contains(text, pointer) {
				text = strings.ReplaceAll(text, pointer, value)
				answer.Secrets = append(answer.Secrets, value)
			}
		}
		if i := strings.Index(text, "${"); i >= 0 {
			return nil, fault.New(fault.Invalid, "Neither the sealed store nor the environment has %s.", text[i:]).WithReason("UNRESOLVED")
		}
		answer.Values = append(answer.Values, text)
	}
	return answer, nil
}

// put activates a revision.
func (c *company) put(servers []*companyv1.McpServer, seats ...*companyv1.Seat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	epoch := c.current.GetEpoch() + 1
	c.current = &companyv1.Company{
		RevisionId: fmt.Sprintf("r%d", epoch), Epoch: epoch, McpServers: servers, Seats: seats,
		Integrations: &companyv1.Integrations{PublicBaseUrl: c.public},
	}
}

// world is one node, or several, over one database and one broker.
type world struct {
	company *company
	pool    *pgxpool.Pool
	bus     bus.Bus
	keys    *rpc.Keys
	logs    *logs
}

// node is one process's worth of mcphost.
type node struct {
	mcphostv1connect.McpHostServiceClient
	service *mcphost.Service
	url     string
	stop    func()
}

func setup(t testing.TB) *world {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test"})
	require.NoError(t, err)
	require.NoError(t, b.EnsureTopics(t.Context(), mcphost.Module.Topics...))
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		require.NoError(t, broker.Close())
	})
	return &world{
		company: &company{secrets: map[string]string{}}, pool: pgtest.Pool(t, "mcphost", mcphost.Module.Migrations), bus: b, keys: keys, logs: &logs{},
	}
}

func (w *world) node(t testing.TB, name string, change ...func(*mcphost.Config)) *node {
	t.Helper()
	settings := mcphost.Config{SeatIdle: time.Minute, MaxChildren: 20, ParallelStarts: 4}
	for _, c := range change {
		c(&settings)
	}
	mux := http.NewServeMux()
	reached := httptest.NewServer(mux)
	service, err := mcphost.New(t.Context(), mcphost.Deps{
		Config: settings, Pool: w.pool, Bus: w.bus, Company: w.company, Log: slog.New(w.logs.handler()), Now: time.Now, Node: name,
		URL: reached.URL, Keys: w.keys,
		Getenv: func(name string) string {
			return map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), "BULLPEN_X": "leak"}[name]
		},
	})
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "mcphost", Log: slog.New(slog.DiscardHandler), Keys: w.keys})
	service.Register(server)
	rpc.Mount(mux, server)
	service.Routes(mux)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	n := &node{service: service, url: reached.URL, stop: sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		reached.Close()
	})}
	t.Cleanup(n.stop)
	client := rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: "toolregistry", Keys: w.keys, Timeout: time.Minute})
	n.McpHostServiceClient = mcphostv1connect.NewMcpHostServiceClient(client)
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(service.Ready(t.Context()), func(c run.Condition) bool { return c.Blocking && !c.OK })
	}, 30*time.Second, 5*time.Millisecond)
	return n
}

// present makes a node that does nothing look alive to the others until the test ends.
func (w *world) present(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- presence.New(w.pool, name, presence.Options{}).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	looker := presence.New(w.pool, "looker", presence.Options{Grace: time.Nanosecond})
	require.Eventually(t, func() bool {
		gone, err := looker.Gone(t.Context(), []string{name})
		require.NoError(t, err)
		again, err := looker.Gone(t.Context(), []string{name})
		require.NoError(t, err)
		return len(gone)+len(again) == 0
	}, 30*time.Second, 10*time.Millisecond)
}

// apply activates a revision and waits until the node has it. A template that no seat uses marks the revision.
func (w *world) apply(t testing.TB, n *node, servers []*companyv1.McpServer, seats ...*companyv1.Seat) {
	t.Helper()
	w.company.mu.Lock()
	mark := fmt.Sprintf("revision-%d", w.company.current.GetEpoch()+1)
	w.company.mu.Unlock()
	w.company.put(append(slices.Clone(servers), &companyv1.McpServer{Name: mark, Transport: "stdio", Command: "none"}), seats...)
	require.NoError(t, w.bus.Publish(t.Context(), bus.Message{Topic: "bullpen.company.revision.v1", Key: "active", Value: []byte("x")}))
	require.Eventually(t, func() bool {
		answer, err := n.ListServers(t.Context(), &mcphostv1.ListServersRequest{})
		return err == nil && slices.ContainsFunc(answer.GetServers(), func(s *mcphostv1.Server) bool { return s.GetServer() == mark })
	}, 10*time.Second, 10*time.Millisecond)
}

// tools asks with patience and answers the one server.
func (n *node) tools(t testing.TB, seat, server string) *mcphostv1.ServerTools {
	t.Helper()
	answer, err := n.ListServerTools(t.Context(), &mcphostv1.ListServerToolsRequest{Seat: seat, Server: server, Wait: durationpb.New(30 * time.Second)})
	require.NoError(t, err)
	require.Len(t, answer.GetServers(), 1)
	return answer.GetServers()[0]
}

func (n *node) call(ctx context.Context, seat, server, tool, arguments string) (*mcphostv1.CallServerToolResponse, error) {
	return n.CallServerTool(ctx, &mcphostv1.CallServerToolRequest{
		Server: server, Tool: tool, Seat: seat, ArgumentsJson: arguments, Timeout: durationpb.New(30 * time.Second),
	})
}

// hostile declares the fixture with its manners, and a file for its effects.
func hostile(t testing.TB, name, modes string) (server *companyv1.McpServer, effects string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(effectsFolder(), 0o700))
	folder, err := os.MkdirTemp(effectsFolder(), "")
	require.NoError(t, err)
	effects = filepath.Join(folder, "effects")
	return &companyv1.McpServer{
		Name: name, Transport: "stdio", Command: self, Shared: true, StartupTimeoutSeconds: 20, RequestTimeoutSeconds: 20,
		Env: map[string]string{hostiletest.Variable: modes, hostiletest.Effects: effects},
	}, effects
}

func count(t testing.TB, effects, line string) int {
	t.Helper()
	data, err := os.ReadFile(effects)
	if err != nil {
		return 0
	}
	n := 0
	for l := range strings.Lines(string(data)) {
		if strings.TrimSpace(l) == line {
			n++
		}
	}
	return n
}

// refusal answers what a call was refused with.
func refusal(t testing.TB, err error, class fault.Class, outcome string) *fault.Error {
	t.Helper()
	require.Error(t, err)
	f := rpc.FromError(err)
	require.Equal(t, class, f.Class, f.Message)
	require.Equal(t, outcome, f.Outcome, f.Message)
	return f
}

// logs keeps every record, debug included.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) handler() slog.Handler {
	return slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})
}

func asSeat(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindSeat, Id: "ada", Seat: "ada"})
}

func asOperator(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "t1"})
}

// events answers what a node that has stopped told the world.
func (w *world) events(t testing.TB) []*mcphostv1.ServerEvent {
	t.Helper()
	rows, err := w.pool.Query(t.Context(), `select payload from outbox order by id`)
	require.NoError(t, err)
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(t, err)
	var events []*mcphostv1.ServerEvent
	for n, payload := range payloads {
		var e mcphostv1.ServerEvent
		require.NoError(t, proto.Unmarshal(payload, &e))
		require.NotEmpty(t, e.GetEventId())
		require.EqualValues(t, n+1, e.GetSequence())
		events = append(events, &e)
	}
	return events
}
