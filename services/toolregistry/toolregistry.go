// Package toolregistry is the one door to every tool of the company.
//
// It knows the catalogue: the suite's own tools, read out of the contracts, and those that MCP servers bring, read from mcphost.
// It decides which of them a caller sees and what a name means, checks who may call what with which arguments, carries the call
// to whoever runs the tool, cleans what comes back, and records all of it. It holds no credential, and runs no tool itself but the
// two that read what it knows.
//
// The idea to hold: a call passes the same stages whoever makes it (internal/door), and what a stage needs to know is kept
// current beside it, so that the way through costs no look at another service but the one that does the work.
//
//	turn ──► CallTool ─► identify ─► resolve ─► permit ─► decide, read ─► dispatch ─► clean ─► record ─► answer
//	                        ▲           ▲                    │              │                    │
//	                     company     surfaces              ask: park     owner or             audit, in
//	                     (followed)  (mcphost, by event)   (internal/desk) mcphost            batches
package toolregistry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/api"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/audit"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/desk"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/events"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/seatcache"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/shelf"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

// Name is the service's, and that of its schema.
const Name = "toolregistry"

// partitions is how many processes can share the work of a consumer of our events.
const partitions = 8

// Module describes the service to a process. It has no settings: what can be set is in the company document.
var Module = run.Module{
	Name:       Name,
	Migrations: store.Migrations,
	Topics: []bus.Topic{
		{Name: events.Topic, Partitions: partitions},
		{Name: events.ApprovalTopic, Partitions: partitions},
		{Name: events.ServerTopic, Partitions: partitions},
		{Name: shelf.Topic, Partitions: partitions},
		{Name: revisionTopic, Partitions: 1, Compacted: true},
	},
	Peers: []string{"company", "mcphost", "notification", "tracker", "knowledge", Name},
	New: func(_ context.Context, h *run.Host) (run.Service, error) {
		return New(Deps{Log: h.Log, Metrics: h.Metrics, Pool: h.Pool, Bus: h.Bus, Client: h.Client, Now: h.Now, Node: h.Node, Keys: h.Keys})
	},
}

// Deps are what the service is built of. All are required but Metrics.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Pool is open on the migrated schema.
	Pool *pgxpool.Pool
	Bus  bus.Bus
	// Client answers a client for a service, which calls as this one unless a call says otherwise.
	Client func(service string) *connect.Client
	Now    func() time.Time
	// Node is unique among all processes.
	Node string
	// Keys sign and verify principals, and authenticate what operators' clients are given to bring back.
	Keys *rpc.Keys
}

// Service is the tool registry. Serve its RPCs before Run and until it has returned.
type Service struct {
	deps    Deps
	company *company
	seats   *seatcache.Cache
	store   *store.Store
	audit   *audit.Writer
	asked   *store.Approvals
	desk    *desk.Desk
	shelf   *shelf.Shelf
	relay   *outbox.Relay
	handler *api.Handler
	// operator is what stands on plain HTTP beside the RPCs.
	operator *operator
	server   *connect.Server
}

// New builds the service without calling anybody. It fails when a contract declares something that cannot be a tool.
func New(d Deps) (*Service, error) {
	tools, err := catalogue.Load()
	if err != nil {
		return nil, err
	}
	clients, err := clientsOf(tools, d.Client)
	if err != nil {
		return nil, err
	}
	host := mcphostv1connect.NewMcpHostServiceClient(d.Client("mcphost"))
	cleaner := hygiene.New()
	s := &Service{deps: d, company: follow(d)}
	s.relay = outbox.NewRelay(d.Pool, d.Bus, outbox.RelayOptions{Source: "/bullpen/" + Name, Log: d.Log, Metrics: d.Metrics, Now: d.Now})
	s.store = store.New(d.Pool, events.Encode, s.relay.Wake)
	s.asked = store.NewApprovals(d.Pool, events.EncodeApproval, s.relay.Wake, d.Now)
	s.audit = audit.New(audit.Options{Store: s.store, Log: d.Log, Metrics: d.Metrics})
	s.seats = seatcache.New(seatcache.Options{Host: host, Memory: s.store, Builtins: door.Builtins(tools), Log: d.Log, Now: d.Now})
	entrance := door.New(door.Options{
		Catalogue: tools, Company: s.company.at, Asked: s.company.asked, Seats: s.seats, Dispatch: dispatch.New(clients, host), Cleaner: cleaner,
		Audit: s.audit, Approvals: s.asked, Log: d.Log, Now: d.Now, Metrics: d.Metrics,
	})
	s.operator = s.newOperator(tools, entrance, host, cleaner)
	s.desk = desk.New(desk.Options{Store: s.asked, Door: entrance, Log: d.Log, Now: d.Now, Node: d.Node})
	s.shelf = shelf.New(shelf.Options{
		Knowledge: d.Client("knowledge"), Bus: d.Bus, Group: Name + "-skills-" + d.Node, Log: d.Log, Company: s.company.known,
		Changed: s.company.follower.Changed,
	})
	s.handler = api.New(api.Options{
		Audit: s.audit, Skills: s.shelf.Skills,
		Door: entrance, Seats: s.seats, Store: s.store, Approvals: s.asked, Desk: s.desk, Host: host, Company: s.company.at, Cleaner: cleaner, Log: d.Log,
	})
	return s, nil
}

// clientsOf makes the client of every service that has tools to dispatch to.
func clientsOf(tools *catalogue.Catalogue, client func(string) *connect.Client) (func(string) *connect.Client, error) {
	clients := map[string]*connect.Client{}
	for _, tool := range tools.Tools() {
		if tool.EngineLocal || clients[tool.Service] != nil {
			continue
		}
		if clients[tool.Service] = client(tool.Service); clients[tool.Service] == nil {
			return nil, fmt.Errorf("the tool %s belongs to the service %s, which cannot be called", tool.Name, tool.Service)
		}
	}
	return func(service string) *connect.Client { return clients[service] }, nil
}

// Register implements [run.Service].
func (s *Service) Register(server *connect.Server) {
	s.server = server
	toolregistryv1connect.RegisterToolRegistryServiceHandler(server, s.handler)
}

// Routes implements [run.Service]: `GET /tools`, `GET /mcp-servers`, `/approvals`, and the operator's side. Call it after Register.
func (s *Service) Routes(mux *http.ServeMux) {
	api.Routes(mux, s.server)
	s.operator.routes(mux)
}

// Run implements [run.Service].
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.company.run(ctx) })
	group.Go(func() error { return s.forgetSeats(ctx) })
	group.Go(func() error {
		return events.Listen(ctx, s.deps.Bus, Name+"-servers-"+s.deps.Node, s.deps.Log, events.Heard{
			Changed: func(seat string) {
				s.seats.Invalidate(seat)
				s.operator.serverChanged(seat)
			},
			Updated: s.operator.mcp.ResourceUpdated, Listed: s.operator.mcp.ListsChanged, Ready: s.operator.serverReady,
		})
	})
	group.Go(func() error { return s.operator.run(ctx) })
	group.Go(func() error { return s.audit.Run(ctx) })
	group.Go(func() error { return s.relay.Run(ctx) })
	group.Go(func() error { return s.sweep(ctx) })
	group.Go(func() error { return s.desk.Run(ctx) })
	group.Go(func() error { return s.shelf.Run(ctx) })
	return group.Wait()
}

// Ready implements [run.Readier].
func (s *Service) Ready(context.Context) []run.Condition {
	known := run.Condition{Name: "company", OK: true}
	switch current, loaded := s.company.follower.Current(); {
	case !loaded:
		known.OK, known.Blocking, known.Detail = false, true, "the company service has not answered yet"
	case current == nil:
		known.OK, known.Detail = false, "no company is active: put a company document"
	}
	return []run.Condition{known}
}
