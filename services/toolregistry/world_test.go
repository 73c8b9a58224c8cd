package toolregistry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry"
)

// neighbours play the services that the registry calls, behind their generated contracts.
type neighbours struct {
	companyv1connect.UnimplementedCompanyServiceHandler
	trackerv1connect.UnimplementedTrackerServiceHandler
	mcphostv1connect.UnimplementedMcpHostServiceHandler
	toolv1connect.UnimplementedPrincipalServiceHandler

	mu      sync.Mutex
	company *companyv1.Company
	silent  bool // the company service does not answer
	create  func(ctx context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error)
	read    func(ctx context.Context) error
	tools   map[string]*mcphostv1.ListServerToolsResponse // by seat
	call    func(ctx context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error)
	// exchange answers a request of the protocol; say hands on what comes before its end.
	exchange func(ctx context.Context, req *mcphostv1.ExchangeRequest, say func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse
}

func (n *neighbours) GetCompany(context.Context, *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silent {
		return nil, fault.New(fault.Unavailable, "The company is being restarted.")
	}
	if n.company == nil {
		return nil, fault.New(fault.NotFound, "No company is active.").WithReason("NO_ACTIVE_REVISION")
	}
	return &companyv1.GetCompanyResponse{Company: n.company}, nil
}

// put makes a company active, or none.
func (n *neighbours) put(company *companyv1.Company) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.company = company
}

// silence takes the company service away, or brings it back.
func (n *neighbours) silence(silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = silent
}

func (n *neighbours) CreateWorkItem(ctx context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
	return n.create(ctx, req)
}

func (n *neighbours) ListProjects(ctx context.Context, _ *trackerv1.ListProjectsRequest) (*trackerv1.ListProjectsResponse, error) {
	return &trackerv1.ListProjectsResponse{}, n.read(ctx)
}

func (n *neighbours) ListServerTools(_ context.Context, req *mcphostv1.ListServerToolsRequest) (*mcphostv1.ListServerToolsResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer := n.tools[req.GetSeat()]; answer != nil {
		return answer, nil
	}
	return &mcphostv1.ListServerToolsResponse{Digest: "none"}, nil
}

func (n *neighbours) CallServerTool(ctx context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
	return n.call(ctx, req)
}

func (n *neighbours) Exchange(ctx context.Context, req *mcphostv1.ExchangeRequest, stream mcphostv1connect.McpHostServiceExchangeServerStream) error {
	var failed error
	end := n.exchange(ctx, req, func(said *mcphostv1.ExchangeResponse) { failed = errors.Join(failed, stream.Send(said)) })
	return errors.Join(failed, stream.Send(end))
}

// VerifyToken knows a machine's token and a person's.
func (n *neighbours) VerifyToken(ctx context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
	p, err := operatorTokens{}.VerifyToken(ctx, req.GetToken())
	return &toolv1.VerifyTokenResponse{Principal: p}, err
}

func (n *neighbours) ListServers(context.Context, *mcphostv1.ListServersRequest) (*mcphostv1.ListServersResponse, error) {
	return &mcphostv1.ListServersResponse{Servers: []*mcphostv1.Server{
		{Server: "gh", Instances: []*mcphostv1.Instance{{Node: "n1", Seat: "ada", State: "failed", Reason: "bad token"}}},
	}, Nodes: []*mcphostv1.Node{{Node: "n1"}, {Node: "n2"}}}, nil
}

// bring changes what servers bring to a seat.
func (n *neighbours) bring(seat string, answer *mcphostv1.ListServerToolsResponse) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tools == nil {
		n.tools = map[string]*mcphostv1.ListServerToolsResponse{}
	}
	n.tools[seat] = answer
}

type operatorTokens struct{}

func (operatorTokens) VerifyToken(_ context.Context, token string) (*rpc.Principal, error) {
	switch token {
	case "good":
		return &rpc.Principal{Kind: rpc.KindOperator, Id: "token-1", TokenId: "token-1"}, nil
	case "ines", "ines-phone":
		return &rpc.Principal{Kind: rpc.KindPerson, Id: "ines", Seat: "ines", TokenId: "token-of-" + token}, nil
	default:
		return nil, fault.New(fault.Forbidden, "unknown token")
	}
}

// world is the registry among its neighbours, all behind one transport.
type world struct {
	neighbours *neighbours
	library    library
	service    *toolregistry.Service
	pool       *pgxpool.Pool
	bus        bus.Bus
	url        string
	// turn calls as the turn service, which signs for seats; console for operators.
	turn, console toolregistryv1connect.ToolRegistryServiceClient
	client        func(service string) *connect.Client
	keys          *rpc.Keys
	stop          func()
	ahead         atomic.Int64 // how far the service's clock has been put forward
}

// forward puts the service's clock forward.
func (w *world) forward(d time.Duration) { w.ahead.Add(int64(d)) }

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

type options struct {
	http bool
	// still builds the service without running it: nothing is written behind a call's back, as after a kill.
	still bool
	bus   bool
	// company replaces the usual one.
	company *companyv1.Company
}

// nowhere is a bus that nobody listens at, for tests that run nothing.
type nowhere struct{ bus.Bus }

func build(t testing.TB, o options) *world {
	t.Helper()
	if o.company == nil {
		o.company = companyOf()
	}
	w := &world{neighbours: &neighbours{company: o.company}, bus: nowhere{}, pool: pgtest.Pool(t, "toolregistry", toolregistry.Module.Migrations)}
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	w.keys = keys
	log := slog.New(slog.DiscardHandler)
	server := rpc.NewServer(rpc.ServerOptions{Service: "test", Log: log, Keys: keys, Tokens: operatorTokens{}})
	companyv1connect.RegisterCompanyServiceHandler(server, w.neighbours)
	trackerv1connect.RegisterTrackerServiceHandler(server, w.neighbours)
	mcphostv1connect.RegisterMcpHostServiceHandler(server, w.neighbours)
	toolv1connect.RegisterPrincipalServiceHandler(server, w.neighbours)
	knowledgev1connect.RegisterKnowledgeServiceHandler(server, &w.library)
	notificationv1connect.RegisterNotificationServiceHandler(server, notificationv1connect.UnimplementedNotificationServiceHandler{})
	mux := http.NewServeMux()
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	w.url = front.URL
	transport := rpc.InProcess(server)
	if o.http {
		over := rpc.HTTPTransport(front.URL)
		t.Cleanup(over.Close)
		transport = over
	}
	as := func(service string) *connect.Client {
		return rpc.NewClient(transport, rpc.ClientOptions{Service: service, Keys: keys})
	}
	w.client = func(string) *connect.Client { return as("toolregistry") }
	if o.bus {
		w.bus = broker(t)
	}
	w.service, err = toolregistry.New(w.deps(log))
	require.NoError(t, err)
	w.service.Register(server)
	w.service.Routes(mux)
	rpc.Mount(mux, server)
	w.turn = toolregistryv1connect.NewToolRegistryServiceClient(as("turn"))
	w.console = toolregistryv1connect.NewToolRegistryServiceClient(as("console"))
	w.stop = func() {}
	if !o.still {
		w.run(t)
	}
	return w
}

func (w *world) deps(log *slog.Logger) toolregistry.Deps {
	return toolregistry.Deps{Log: log, Pool: w.pool, Bus: w.bus, Client: w.client, Now: w.now, Node: "n1", Keys: w.keys}
}

func (w *world) run(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, w.service.Run(ctx)) })
	w.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(w.stop)
}

func broker(t testing.TB) bus.Bus {
	t.Helper()
	b, err := embedded.Start(t.Context(), embedded.Options{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	opened, err := bus.Open(bus.Config{Brokers: b.Brokers(), ClientID: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = opened.Close() })
	require.NoError(t, opened.EnsureTopics(t.Context(), toolregistry.Module.Topics...))
	return opened
}

func companyOf() *companyv1.Company {
	return &companyv1.Company{
		RevisionId: "r1", TrackerBackend: "native", KnowledgeBackend: "none",
		Seats: []*companyv1.Seat{{Handle: "ada", Kind: "agent"}, {Handle: "bo", Kind: "agent"}, {Handle: "ines", Kind: "human"}},
		McpServers: []*companyv1.McpServer{
			{Name: "wiki", Shared: true, Transport: "http", RequestTimeoutSeconds: 7},
			{Name: "gh", Transport: "stdio", ToolPrefix: "gh_", ToolAnnotations: map[string]*companyv1.ToolAnnotations{"get": {ReadOnly: new(true)}}},
		},
	}
}

func turnClaims() *toolv1.TurnClaims {
	return &toolv1.TurnClaims{TurnId: "t1", WorkKey: "w1", ConversationKey: "c1", RevisionId: "r1"}
}

// asSeat calls in a turn of ada's.
func asSeat(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{
		Kind: rpc.KindSeat, Id: "ada", Seat: "ada", DisplayName: "Ada",
		Turn: turnClaims(),
	})
}

func asOperator(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "token-1", DisplayName: "Ines's token", Seat: "ines"})
}

// overBoth runs a test over both transports: they must mean the same.
func overBoth(t *testing.T, o options, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, http := range map[string]bool{"in process": false, "over HTTP": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := o // the other one writes to its own, too
			mine.http = http
			test(t, build(t, mine))
		})
	}
}

// refusal answers what a call was refused with.
func refusal(t testing.TB, err error) *fault.Error {
	t.Helper()
	require.Error(t, err)
	return rpc.FromError(err)
}
