// Package notification is the service between the outside and the seats.
//
// Vendors call its webhooks. What they send is made durable before it is
// acknowledged, then read, and addressed to seats; every seat's delivery leaves
// as an event keyed by the seat. Seats answer through the reply tool, and a
// durable queue posts what they say under their own accounts, each answer once.
//
//	vendor ─► webhook (verify, one commit, 2xx) ─► routing ─► deliveries + outbox ─► Kafka
//	vendor ◄─ outbound (lease, post, look again) ◄─ outbound rows ◄─ reply
//
// Changes of work items come as the tracker's events. Whom each concerns is in
// the event; who is told of it is decided here, when it is known who is in the
// company: persons get a notice, agents a delivery.
//
//	tracker ─► Kafka ─► work (one commit of decisions, notices, deliveries) ─► Kafka
//
// It keeps no opinion on what a delivery is worth: that a seat sleeps, or has
// too much mail, is the turn service's business.
package notification

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/follow"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/notification/internal/api"
	"github.com/bullpenhq/bullpen/services/notification/internal/credential"
	"github.com/bullpenhq/bullpen/services/notification/internal/events"
	"github.com/bullpenhq/bullpen/services/notification/internal/github"
	"github.com/bullpenhq/bullpen/services/notification/internal/githubapi"
	"github.com/bullpenhq/bullpen/services/notification/internal/outbound"
	"github.com/bullpenhq/bullpen/services/notification/internal/roster"
	"github.com/bullpenhq/bullpen/services/notification/internal/routing"
	"github.com/bullpenhq/bullpen/services/notification/internal/slack"
	"github.com/bullpenhq/bullpen/services/notification/internal/slackapi"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
	"github.com/bullpenhq/bullpen/services/notification/internal/webhook"
)

const (
	name          = "notification"
	revisionTopic = "bullpen.company.revision.v1"
	deliveryKeep  = 7 * day
	// inboxKeep is how long an event that was taken in is remembered: longer than any broker keeps one.
	inboxKeep = 30 * day

	// replyWait is how long a reply waits for the vendor before it says pending.
	replyWait  = 5 * time.Second
	sweepEvery = time.Hour
	routerPoll = 200 * time.Millisecond
)

// Module describes the service to a process.
var Module = run.Module{
	Name:       name,
	NewConfig:  func() run.Config { return &Config{} },
	Migrations: store.Migrations(),
	Topics: []bus.Topic{
		{Name: events.Topic, Partitions: 8},
		{Name: events.NoticeTopic, Partitions: 8},
		{Name: events.WorkTopic, Partitions: 8},
		{Name: revisionTopic, Partitions: 1, Compacted: true},
	},
	Peers: []string{"company"},
	New: func(ctx context.Context, h *run.Host) (run.Service, error) {
		return New(ctx, Deps{
			Config: *h.Config.(*Config), Pool: h.Pool, Bus: h.Bus, Log: h.Log, Metrics: h.Metrics, Now: h.Now, Node: h.Node,
			Company: companyv1connect.NewCompanyServiceClient(h.Client("company")),
		})
	},
}

// Company is what this service asks of the company service.
type Company interface {
	GetCompany(ctx context.Context, req *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error)
	ResolveSecrets(ctx context.Context, req *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error)
}

// Deps is what the service is made of. All fields but Metrics are required.
type Deps struct {
	Config  Config
	Pool    *pgxpool.Pool
	Bus     bus.Bus
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
	// Node is unique among all processes.
	Node    string
	Company Company
	// Posting overrides how fast outbound messages are retried; its zero value
	// is meant for production.
	Posting Posting
}

// Posting tunes the outbound queue; see the package outbound for the meaning of
// each. Zero values mean the defaults.
type Posting struct {
	Poll, Lease, Timeout, Grace, Backoff, BackoffMax time.Duration
}

// Service is the running service.
type Service struct {
	deps    Deps
	store   *store.Store
	company *follow.Follower[*roster.Roster]
	secrets *credential.Cache
	relay   *outbox.Relay
	router  *routing.Router
	writer  *webhook.Writer
	edge    *webhook.Edge
	poster  *outbound.Poster
	handler *api.Handler
	work    *events.Work
}

// New builds the service on a migrated schema. It calls nobody yet.
func New(ctx context.Context, d Deps) (*Service, error) {
	s := &Service{deps: d, store: store.New(d.Pool, events.Encode, events.EncodeWork), secrets: credential.New(d.Company, d.Now)}
	if err := s.store.Check(ctx); err != nil {
		return nil, err
	}
	s.company = follow.New(follow.Options[*roster.Roster]{
		Bus: d.Bus, Topic: revisionTopic, Group: "notification-follow-" + d.Node, Load: s.load, Log: d.Log,
	})
	s.relay = outbox.NewRelay(d.Pool, d.Bus, outbox.RelayOptions{Source: "/bullpen/notification", Log: d.Log, Metrics: d.Metrics, Keep: deliveryKeep})
	s.router = routing.New(routing.Options{
		Store: s.store, Roster: s.roster, Delivered: s.relay.Wake, Poll: routerPoll, Log: d.Log, Now: d.Now, Metrics: d.Metrics,
		Limits: routing.Limits{MachineWakes: d.Config.MachineWakes, Window: d.Config.MachineWindow},
	})
	s.writer = webhook.NewWriter(s.store.InsertWebhooks, s.router.Wake)
	s.edge = webhook.New(webhook.Options{
		Writer: s.writer, Roster: s.roster, Credentials: s.secrets, Log: d.Log, Now: d.Now, Metrics: d.Metrics,
	})
	s.poster = outbound.New(outbound.Options{
		Store: s.store, Token: s.token, Owner: d.Node, Log: d.Log, Metrics: d.Metrics,
		Surfaces: map[string]outbound.Surface{
			github.Source: githubapi.New(d.Config.GithubAPIURL, d.Now),
			slack.Source:  slackapi.New(d.Config.SlackAPIURL),
		},
		Poll: d.Posting.Poll, Lease: d.Posting.Lease, Timeout: d.Posting.Timeout, Grace: d.Posting.Grace,
		Backoff: d.Posting.Backoff, BackoffMax: d.Posting.BackoffMax,
	})
	s.work = &events.Work{
		Pool: d.Pool, Store: s.store, Bus: d.Bus, Roster: s.roster, Changed: s.company.Changed, Settled: s.relay.Wake,
		MaxWakes: d.Config.MachineWakes, Window: d.Config.MachineWindow, Now: d.Now, Log: d.Log, Metrics: d.Metrics,
	}
	s.handler = api.New(api.Options{
		Store: s.store, Queued: s.poster.Wake, Settled: s.poster.Changed, Drain: s.router.Drain, RedriveEvents: s.redriveEvents, Wait: replyWait,
	})
	return s, nil
}

// Register adds the service's RPCs.
func (s *Service) Register(server *connect.Server) {
	notificationv1connect.RegisterNotificationServiceHandler(server, s.handler)
}

// Routes adds the webhooks, which authenticate their callers by signature.
func (s *Service) Routes(mux *http.ServeMux) { s.edge.Routes(mux) }

// Run works until ctx ends and what is under way is finished.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range []func(context.Context) error{
		s.company.Run, s.relay.Run, s.router.Run, s.writer.Run, s.poster.Run, s.wakeRouter, s.sweep, s.work.Consumer().Run,
	} {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}

// redriveEvents takes dead events of the tracker in once more.
func (s *Service) redriveEvents(ctx context.Context, ids ...int64) (int, error) {
	n, err := inbox.Redrive(ctx, s.deps.Pool, map[string]inbox.Handler{events.WorkTopic: s.work.Tell}, ids...)
	s.relay.Wake()
	return n, err
}

// wakeRouter lets webhooks that waited for a company be routed as soon as there
// is one.
func (s *Service) wakeRouter(ctx context.Context) error {
	for {
		changed := s.company.Changed()
		s.router.Wake()
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// sweep deletes what nobody can ask for any more.
func (s *Service) sweep(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		_, webhooks := s.store.SweepWebhooks(ctx, s.deps.Config.WebhookKeep)
		_, operations := ops.Sweep(ctx, s.deps.Pool, ops.Keep)
		_, work := s.store.SweepWork(ctx, s.deps.Config.NoticeKeep)
		_, received := inbox.Sweep(ctx, s.deps.Pool, inboxKeep)
		if err := errors.Join(webhooks, operations, work, received); err != nil && ctx.Err() == nil {
			s.deps.Log.Warn("sweep failed", "error", err)
		}
	}
}

// load reads the active company; there may be none.
func (s *Service) load(ctx context.Context) (*roster.Roster, error) {
	res, err := s.deps.Company.GetCompany(ctx, &companyv1.GetCompanyRequest{})
	if err != nil {
		if f := rpc.FromError(err); f.Class == fault.NotFound {
			return nil, nil
		}
		return nil, err
	}
	return roster.New(res.GetCompany()), nil
}

func (s *Service) roster() *roster.Roster {
	r, _ := s.company.Current()
	return r
}

// token answers what a seat posts with.
func (s *Service) token(ctx context.Context, surface, handle string) (config.Secret, error) {
	r := s.roster()
	if r == nil {
		return "", fault.New(fault.Unavailable, "no company is active.")
	}
	seat, ok := r.Seat(handle)
	if !ok {
		return "", fault.New(fault.Unavailable, "the seat is not in the company any more.")
	}
	template := seat.GithubToken
	if surface == slack.Source {
		template = seat.SlackBotToken
	}
	return s.secrets.Resolve(ctx, r.Revision, template)
}
