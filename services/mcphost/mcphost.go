// Package mcphost runs the company's MCP servers: it starts their processes, speaks the protocol with them in whichever revision
// they know, and calls their tools for the tool registry.
//
// A shared server is one child for the company; any other is a template, of which every seat with credentials for it gets a child
// of its own, so that what it does outside is done as that seat. A server that fails costs its own tools and nothing else: its
// state and its reason are part of every answer.
//
//	company ─► which should run (internal/fleet) ─► start, watch, restart (internal/server)
//	                                                  ├─ processes            internal/child
//	                                                  ├─ sessions over them   internal/session
//	                                                  └─ tokens for them      internal/authorize
//
// The root package is the whole face of the service; see README.md for its tables, topics and settings.
package mcphost

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/follow"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/presence"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/api"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/events"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/fleet"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/peer"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// Name is the service's, and that of its schema.
const Name = "mcphost"

// version is what servers are told.
const version = "1"

// partitions is how many processes can share the work of a consumer of our events.
const partitions = 8

// absence is how long a node must be gone for the others to take its seats. Its children died with it.
const absence = time.Second

// Module describes the service to its host.
var Module = run.Module{
	Name:       Name,
	NewConfig:  func() run.Config { return new(Config) },
	Migrations: store.Migrations(),
	Topics: []bus.Topic{
		{Name: events.Topic, Partitions: partitions},
		{Name: events.CompanyTopic, Partitions: 1, Compacted: true},
	},
	Peers: []string{"company"},
	New: func(ctx context.Context, h *run.Host) (run.Service, error) {
		return New(ctx, Deps{
			Config: *h.Config.(*Config), Pool: h.Pool, Bus: h.Bus, Company: companyv1connect.NewCompanyServiceClient(h.Client("company")),
			Log: h.Log, Metrics: h.Metrics, Tracer: h.Tracer, Now: h.Now, Node: h.Node, URL: h.URL, Keys: h.Keys, Getenv: h.Getenv,
		})
	},
}

// Company is what mcphost asks of the company service.
type Company interface {
	GetCompany(ctx context.Context, request *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error)
	ResolveSecrets(ctx context.Context, request *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error)
}

// Deps is everything that the service needs.
type Deps struct {
	Config  Config
	Pool    *pgxpool.Pool
	Bus     bus.Bus
	Company Company
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Tracer  trace.TracerProvider
	Now     func() time.Time
	// Node is unique to the process.
	Node string
	// URL is where other nodes reach the process, unless the settings say otherwise.
	URL string
	// Keys sign what is handed on to other nodes.
	Keys *rpc.Keys
	// Getenv reads the few variables that children inherit.
	Getenv func(string) string
}

// Service is the host of MCP servers.
type Service struct {
	deps     Deps
	company  *follow.Follower[*companyv1.Company]
	store    *store.Store
	relay    *outbox.Relay
	presence *presence.Presence
	peers    *peer.Peers
	tokens   *authorize.Authorizer
	fleet    *fleet.Fleet
	router   *api.Router
}

// New builds the service on a migrated schema. It starts no server.
func New(ctx context.Context, d Deps) (*Service, error) {
	s := &Service{deps: d}
	s.relay = outbox.NewRelay(d.Pool, d.Bus, outbox.RelayOptions{Source: "/bullpen/" + Name, Log: d.Log, Metrics: d.Metrics, Now: d.Now})
	var err error
	if s.store, err = store.Open(ctx, d.Pool, store.Node{Name: d.Node, URL: cmp.Or(d.Config.AdvertiseURL, d.URL)}, events.Encode, s.relay.Wake); err != nil {
		return nil, err
	}
	s.presence = presence.New(d.Pool, d.Node, presence.Options{Grace: absence, Log: d.Log, Now: d.Now})
	s.peers = peer.New(d.Node, Name, d.Keys, d.Tracer)
	s.company = follow.New(follow.Options[*companyv1.Company]{
		Bus: d.Bus, Topic: events.CompanyTopic, Group: Name + "-company-" + d.Node, Load: s.load, Log: d.Log,
	})
	if s.tokens, err = s.authorizer(); err != nil {
		return nil, err
	}
	s.fleet = fleet.New(fleet.Options{
		Company: d.Company, Store: s.store, Authorizer: s.tokens, Current: s.company.Current, Changed: s.company.Changed, Log: d.Log, Now: d.Now, Getenv: d.Getenv,
		Node: d.Node, Version: version, Presence: s.presence, Ended: s.peers.Ended, SeatIdle: d.Config.SeatIdle, MaxChildren: d.Config.MaxChildren, ParallelStarts: d.Config.ParallelStarts,
	})
	s.router = &api.Router{
		Handler: &api.Handler{Fleet: s.fleet, Store: s.store, Authorizer: s.tokens, Company: s.company.Current},
		Peers:   s.peers, Refresh: s.company.Refresh,
	}
	return s, nil
}

// authorizer makes what gets tokens. Browsers come back to the company's public address, or to the process's own.
func (s *Service) authorizer() (*authorize.Authorizer, error) {
	o := authorize.Options{
		Store: s.store, DocumentURL: s.deps.Config.ClientDocumentURL, Log: s.deps.Log, Now: s.deps.Now, Version: version,
		Granted: func(server, seat string) { s.fleet.Granted(server, seat) },
		BaseURL: func() string {
			company, _ := s.company.Current()
			return strings.TrimSuffix(cmp.Or(company.GetIntegrations().GetPublicBaseUrl(), s.deps.URL), "/")
		},
	}
	if key := s.deps.Config.TokenKey; key != "" {
		var err error
		if o.Box, err = sealed.NewBox(key); err != nil {
			return nil, config.Invalid("mcphost.token-key", "%v", err)
		}
	}
	return authorize.New(o), nil
}

// load reads the company; none is active is an answer, not a failure.
func (s *Service) load(ctx context.Context) (*companyv1.Company, error) {
	answer, err := s.deps.Company.GetCompany(ctx, &companyv1.GetCompanyRequest{})
	if f := rpc.FromError(err); f != nil {
		if f.Class == fault.NotFound {
			return nil, nil
		}
		return nil, f
	}
	return answer.GetCompany(), nil
}

// Register implements [run.Service].
func (s *Service) Register(server *connect.Server) {
	mcphostv1connect.RegisterMcpHostServiceHandler(server, s.router)
}

// Routes implements [run.Service]: where a browser comes back to with an operator's consent.
func (s *Service) Routes(mux *http.ServeMux) { s.tokens.Routes(mux) }

// Run implements [run.Service].
func (s *Service) Run(ctx context.Context) error {
	defer s.peers.Close()
	// The others must not take this node for dead while it still ends children.
	after, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.presence.Run(after) })
	group.Go(func() error { return s.company.Run(ctx) })
	group.Go(func() error { return s.relay.Run(ctx) })
	group.Go(func() error {
		defer ended()
		select {
		case <-s.presence.Shown(): // before, a seat that is taken would look like a dead node's
		case <-ctx.Done():
			return nil
		}
		return s.fleet.Run(ctx)
	})
	return group.Wait()
}

// Ready implements [run.Readier]. A server that is down makes nothing else unready. Its reason is for those who may ask for it:
// anybody may read this.
func (s *Service) Ready(context.Context) []run.Condition {
	known := run.Condition{Name: "company", OK: true}
	if _, loaded := s.company.Current(); !loaded {
		known.OK, known.Blocking, known.Detail = false, true, "the company service has not answered yet"
	}
	running := run.Condition{Name: "mcp servers", OK: s.fleet.Running(), Blocking: true}
	if !running.OK {
		running.Detail = "they are not started yet, or end"
	}
	conditions := []run.Condition{known, running}
	if !s.tokens.Durable() && s.wantsTokens() {
		conditions = append(conditions, run.Condition{
			Name: "tokens for mcp servers", Detail: "they live in memory and are lost at a restart: set -mcphost.token-key",
		})
	}
	failing := s.fleet.Failing()
	for _, name := range slices.Sorted(maps.Keys(failing)) {
		conditions = append(conditions, run.Condition{
			Name: "mcp server " + name, Detail: fmt.Sprintf("down here, instances: %d; GET /mcp-servers has the reason", failing[name]),
		})
	}
	return conditions
}

// wantsTokens reports whether a server declares that it is authorised at.
func (s *Service) wantsTokens() bool {
	company, _ := s.company.Current()
	return slices.ContainsFunc(company.GetMcpServers(), func(m *companyv1.McpServer) bool { return m.GetAuthorization() != nil })
}
