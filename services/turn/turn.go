// Package turn is the turn service: it runs the company's seats.
//
// It owns each seat's mailbox, the leases by which workers share the seats, and the turns with their journals. Deliveries
// come in as events and go into the mailbox; a worker that holds the seat makes a turn of what waits in one conversation,
// asks the seat's model, calls the tools it asks for through the tool registry as the seat, and ends when the seat submits
// and the record bears its word out. Each step is committed before the next, so that a turn outlives its worker.
//
// It does not know what a tool does, where a message came from or how an answer gets back: those are the registry's and
// notification's.
package turn

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/follow"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/presence"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/turn/internal/api"
	"github.com/bullpenhq/bullpen/services/turn/internal/engine"
	"github.com/bullpenhq/bullpen/services/turn/internal/events"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// Module describes the service to a process.
var Module = run.Module{
	Name:       "turn",
	NewConfig:  func() run.Config { return &Config{} },
	Migrations: store.Migrations(),
	Topics: []bus.Topic{
		{Name: events.TurnTopic, Partitions: 8},
		{Name: events.DeliveryTopic, Partitions: 8},
		{Name: events.ApprovalTopic, Partitions: 8},
		{Name: revisionTopic, Partitions: 1, Compacted: true},
	},
	Peers: []string{"company", "toolregistry"},
	New: func(ctx context.Context, h *run.Host) (run.Service, error) {
		return New(ctx, Deps{
			Config: h.Config.(*Config), Node: h.Node, Pool: h.Pool, Bus: h.Bus, Log: h.Log, Metrics: h.Metrics, Tracer: h.Tracer, Now: h.Now,
			Company: companyv1connect.NewCompanyServiceClient(h.Client("company")),
			Tools:   toolregistryv1connect.NewToolRegistryServiceClient(h.Client("toolregistry")),
		})
	},
}

// revisionTopic announces that another revision of the company is active.
const revisionTopic = "bullpen.company.revision.v1"

// inboxKeep is longer than any topic keeps an event.
const inboxKeep = 30 * 24 * time.Hour

// Company is what the service asks of the company service.
type Company interface {
	GetCompany(context.Context, *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error)
	ResolveSecrets(context.Context, *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error)
}

// Deps are what the service works with. Metrics and Tracer may be nil.
type Deps struct {
	Config *Config
	// Node names this worker; it must be new at each start.
	Node    string
	Pool    *pgxpool.Pool
	Bus     bus.Bus
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Tracer  trace.TracerProvider
	Now     func() time.Time
	Company Company
	Tools   engine.Tools
}

// Service is the turn service.
type Service struct {
	deps    Deps
	handler *api.Handler
	engine  *engine.Engine
	relay   *outbox.Relay
	// consumers take in deliveries, and what became of calls that waited for a person.
	consumers []*inbox.Consumer
	company   *follow.Follower[*companyv1.Company]
	presence  *presence.Presence
}

// New builds the service on a migrated schema.
func New(ctx context.Context, d Deps) (*Service, error) {
	s := &Service{deps: d}
	s.relay = outbox.NewRelay(d.Pool, d.Bus, outbox.RelayOptions{Source: "/bullpen/turn", Log: d.Log, Metrics: d.Metrics, Now: d.Now})
	kept := store.New(d.Pool, events.Encoders(), s.relay.Wake)
	if err := kept.Check(ctx); err != nil {
		return nil, err
	}
	s.company = follow.New(follow.Options[*companyv1.Company]{
		Bus: d.Bus, Topic: revisionTopic, Group: "turn-follow-" + d.Node, Load: s.loadCompany, Log: d.Log,
	})
	s.presence = presence.New(d.Pool, d.Node, presence.Options{Log: d.Log})
	s.engine = engine.New(engine.Deps{
		Store: kept, Tools: d.Tools, Models: model.NewRegistry(s.resolve, d.Log, d.Now), Company: s.company, Presence: s.presence,
		Log: d.Log, Metrics: d.Metrics, Now: d.Now,
	}, engine.Options{
		Node: d.Node, LeaseTTL: d.Config.LeaseTTL, MaxConcurrent: d.Config.MaxConcurrent, DrainTimeout: d.Config.DrainTimeout,
		Poll: d.Config.Poll,
	})
	heard := events.ConsumerDeps{
		Pool: d.Pool, Bus: d.Bus, Wake: s.engine.Wake, Log: d.Log, Metrics: d.Metrics, Tracer: d.Tracer,
	}
	s.consumers = []*inbox.Consumer{events.Consumer(heard), events.ApprovalConsumer(heard)}
	s.handler = api.New(kept, s.engine, deadLetters{pool: d.Pool, store: kept, wake: s.engine.Wake})
	return s, nil
}

// Register implements run.Service.
func (s *Service) Register(server *connect.Server) {
	turnv1connect.RegisterTurnServiceHandler(server, s.handler)
}

// Routes implements run.Service: there are none.
func (s *Service) Routes(*http.ServeMux) {}

// Run implements run.Service. The engine drains first; what it publishes at the end still leaves.
func (s *Service) Run(ctx context.Context) error {
	after, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return s.company.Run(running) })
	for _, consumer := range s.consumers {
		group.Go(func() error { return consumer.Run(running) })
	}
	group.Go(func() error { return s.sweep(running) })
	group.Go(func() error {
		defer stop()
		return s.engine.Run(running)
	})
	group.Go(func() error { return s.relay.Run(after) })
	// While the engine drains it still holds seats.
	group.Go(func() error { return s.presence.Run(after) })
	return group.Wait()
}

// sweep forgets events that can no longer come again.
func (s *Service) sweep(ctx context.Context) error {
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if _, err := inbox.Sweep(ctx, s.deps.Pool, inboxKeep); err != nil && ctx.Err() == nil {
				s.deps.Log.Warn("cannot sweep the inbox", "error", err)
			}
		}
	}
}

// Ready implements run.Readier: a seat that waits for a model is worth saying and does not stop the rest.
func (s *Service) Ready(context.Context) []run.Condition {
	if _, loaded := s.company.Current(); !loaded {
		return []run.Condition{{Name: "company", Blocking: true, Detail: "the company service has not answered yet"}}
	}
	models := run.Condition{Name: "turns", OK: true}
	if why := s.engine.HeldBecause(); why != "" {
		models.OK, models.Detail = false, why
		return []run.Condition{models}
	}
	for seat, why := range s.engine.HeldSeats() {
		models.OK, models.Detail = false, seat+": "+why
	}
	return []run.Condition{models}
}

// loadCompany answers the active company, nil when there is none.
func (s *Service) loadCompany(ctx context.Context) (*companyv1.Company, error) {
	res, err := s.deps.Company.GetCompany(ctx, &companyv1.GetCompanyRequest{})
	if err == nil {
		return res.GetCompany(), nil
	}
	if f := rpc.FromError(err); f.Class == fault.NotFound {
		return nil, nil
	}
	return nil, err
}

func (s *Service) resolve(ctx context.Context, templates []string) ([]string, error) {
	res, err := s.deps.Company.ResolveSecrets(ctx, &companyv1.ResolveSecretsRequest{Templates: templates})
	if err != nil {
		return nil, rpc.FromError(err)
	}
	if len(res.GetValues()) != len(templates) {
		return nil, errors.New("the company service filled in another number of templates than asked")
	}
	return res.GetValues(), nil
}
