// Package tracker is the work tracker: projects from the org chart, work items in them, their threads and their history.
//
// Its RPCs are tools: a seat reaches them through the tool registry, a person or a program with an API token. Every write commits
// the row, a row of history, the event with its routing snapshot and the ledger of operations together; whom a change concerns
// is decided by whoever reads the events, never here.
//
// The root package is the whole face of the service; see README.md for its tables, topics and settings.
package tracker

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

	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/follow"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/tracker/internal/api"
	"github.com/bullpenhq/bullpen/services/tracker/internal/events"
	"github.com/bullpenhq/bullpen/services/tracker/internal/object"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/search"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Module describes the service to its host.
var Module = run.Module{
	Name:       "tracker",
	NewConfig:  func() run.Config { return &Config{} },
	Migrations: store.Migrations(),
	Topics: []bus.Topic{
		{Name: events.Topic, Partitions: 8},
		{Name: events.CompanyTopic, Partitions: 1, Compacted: true},
		{Name: events.NoticeTopic, Partitions: 8},
	},
	Peers: []string{"company"},
	New: func(ctx context.Context, h *run.Host) (run.Service, error) {
		return New(ctx, Deps{
			Config: *h.Config.(*Config), Pool: h.Pool, Bus: h.Bus, Company: companyv1connect.NewCompanyServiceClient(h.Client("company")),
			Log: h.Log, Metrics: h.Metrics, Now: h.Now, Node: h.Node,
		})
	},
}

// Company is what the tracker asks of the company service.
type Company interface {
	events.Company
	api.Colleagues
}

// Deps is everything that the service needs.
type Deps struct {
	Config  Config
	Pool    *pgxpool.Pool
	Bus     bus.Bus
	Company Company
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
	// Node is unique to the process.
	Node string
}

// Service is the tracker.
type Service struct {
	deps    Deps
	store   *store.Store
	relay   *outbox.Relay
	org     *follow.Follower[*org.Org]
	objects object.Store
	search  *search.Index
	handler *api.Handler
}

// New builds the service on a migrated schema.
func New(ctx context.Context, d Deps) (*Service, error) {
	s := &Service{deps: d}
	s.relay = outbox.NewRelay(d.Pool, d.Bus, outbox.RelayOptions{Source: "/bullpen/tracker", Log: d.Log, Metrics: d.Metrics, Now: d.Now})
	var err error
	if s.store, err = store.Open(ctx, d.Pool, events.Encode, s.committed); err != nil {
		return nil, err
	}
	s.search = search.New(search.Options{Source: s.store.Index(), Dir: d.Config.SearchDir, Log: d.Log, Now: d.Now})
	if err := inbox.Check(ctx, d.Pool); err != nil {
		return nil, err
	}
	s.org = follow.New(follow.Options[*org.Org]{
		Bus: d.Bus, Topic: events.CompanyTopic, Group: "tracker-follow-" + d.Node, Load: s.loadOrg, Log: d.Log,
	})
	if s.objects, err = openObjects(d); err != nil {
		return nil, err
	}
	s.handler = &api.Handler{
		Objects: s.objects, Store: s.store, Org: s.org.Current, Colleagues: d.Company, Now: d.Now, Search: s.search, Lagging: s.search.Lagging,
	}
	return s, nil
}

// committed wakes whoever follows the writes.
func (s *Service) committed() {
	s.relay.Wake()
	s.search.Wake()
}

// openObjects answers where files' bytes go.
func openObjects(d Deps) (object.Store, error) {
	if d.Config.S3.Endpoint == "" {
		return store.NewChunks(d.Pool), nil
	}
	return object.NewS3(d.Config.S3)
}

// loadOrg reads the company and writes its projects before anybody can file in them. Without an active company there is none, which
// is no failure.
func (s *Service) loadOrg(ctx context.Context) (*org.Org, error) {
	o, err := events.LoadOrg(ctx, s.deps.Company)
	if err != nil && rpc.FromError(err).Class == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if current, ok := s.org.Current(); ok && current != nil && current.Revision == o.Revision && current.Epoch == o.Epoch {
		return current, nil
	}
	return o, s.store.SyncProjects(ctx, o)
}

// Register implements [run.Service].
func (s *Service) Register(server *connect.Server) {
	trackerv1connect.RegisterTrackerServiceHandler(server, s.handler)
}

// Routes implements [run.Service]; the tracker serves RPCs alone.
func (s *Service) Routes(*http.ServeMux) {}

// Run implements [run.Service].
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.relay.Run(ctx) })
	group.Go(func() error { return s.org.Run(ctx) })
	group.Go(func() error { return s.search.Run(ctx) })
	group.Go(func() error { return s.sweepObjects(ctx) })
	group.Go(func() error { return s.takeNotices(ctx) })
	group.Go(func() error { return s.advanceTold(ctx) })
	group.Go(func() error { return s.sweepNotices(ctx) })
	group.Go(func() error { return s.mirror(ctx) })
	group.Go(func() error { return ops.Retain(ctx, s.deps.Pool, s.deps.Log) })
	return group.Wait()
}

// Ready implements [run.Readier]: without the company nothing can be served, without an active document nothing needs to be. Searches
// alone wait for their index.
func (s *Service) Ready(context.Context) []run.Condition {
	return []run.Condition{s.companyReady(), s.searchReady()}
}

func (s *Service) companyReady() run.Condition {
	switch current, loaded := s.org.Current(); {
	case !loaded:
		return run.Condition{Name: "company", Blocking: true, Detail: "the company service has not answered yet"}
	case current == nil:
		return run.Condition{Name: "company", Detail: "no company document is active: apply one with -company.document, or put one with the API"}
	default:
		return run.Condition{Name: "company", OK: true}
	}
}

func (s *Service) searchReady() run.Condition {
	progress := s.search.Progress()
	switch {
	case !progress.Built:
		return run.Condition{Name: "search", Detail: fmt.Sprintf("the search index is being built: %d of about %d items; searches are refused until then", progress.Read, max(progress.Items, progress.Read))}
	case s.search.Lagging():
		return run.Condition{Name: "search", Detail: "the search index is more than 5 seconds behind the writes, and searches say so"}
	default:
		return run.Condition{Name: "search", OK: true}
	}
}
