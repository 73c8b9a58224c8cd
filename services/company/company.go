// Package company is the company service: it keeps the company document as immutable revisions, of which one is active,
// answers who is who in it, holds the sealed secrets and resolves `${NAME}`, and keeps API tokens as hashes.
//
// It calls nobody. Others read the active revision and follow its topic; what a document means to them is theirs to say.
// The idea to hold: a company that was accepted is complete. Defaults are filled in, inheritance is worked out, references
// exist, and a block that this build cannot honour was refused with its line, so no reader has to check again.
package company

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"time"
	// The document names time zones, and an image need not have their tables.
	_ "time/tzdata"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/company/internal/api"
	"github.com/bullpenhq/bullpen/services/company/internal/events"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

// name is the service's, and the principal it signs as.
const name = "company"

// Module is the service for a process host.
var Module = run.Module{
	Name:       name,
	NewConfig:  func() run.Config { return &Config{} },
	Migrations: store.Migrations(),
	Topics:     []bus.Topic{events.Topic()},
	New: func(ctx context.Context, h *run.Host) (run.Service, error) {
		c, ok := h.Config.(*Config)
		if !ok {
			return nil, errors.New("company: the host has no configuration for it")
		}
		return New(ctx, Deps{
			Config: *c, Pool: h.Pool, Publisher: h.Bus, Log: h.Log, Metrics: h.Metrics, Now: h.Now, Getenv: h.Getenv,
		})
	},
}

// Config is the service's settings.
type Config struct {
	// SealingKey seals secrets: 32 bytes in base64 or hex. Without it secrets can neither be put nor opened.
	SealingKey config.Secret
	// Document is a file whose content is made active at start, when it differs from what is active.
	Document string

	flagPrefix string
}

// RegisterFlags implements [run.Config].
func (c *Config) RegisterFlags(prefix string, fs *flag.FlagSet) {
	c.flagPrefix = prefix
	config.SecretVar(fs, &c.SealingKey, prefix+"sealing-key", "Key that seals secrets: 32 bytes in base64 or hex.")
	fs.StringVar(&c.Document, prefix+"document", "", "Company document to make active at start, when it differs from the active one.")
}

// Validate implements [run.Config].
func (c *Config) Validate() error {
	if c.SealingKey == "" {
		return nil
	}
	if _, err := sealed.NewBox(c.SealingKey); err != nil {
		return config.Invalid(c.flagPrefix+"sealing-key", "%v", err)
	}
	return nil
}

// Deps is what the service is built of.
type Deps struct {
	Config Config
	// Pool is open on the migrated schema. The caller closes it.
	Pool      *pgxpool.Pool
	Publisher bus.Publisher
	Log       *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	Now     func() time.Time
	// Getenv reads the environment, for `${NAME}`.
	Getenv func(string) string
}

// Service is the company service.
type Service struct {
	store   *store.Store
	handler *api.Handler
	server  *connect.Server
	relay   *outbox.Relay
	log     *slog.Logger
}

// New builds the service, and makes the configured document active. A document with problems is logged line by line and fails.
func New(ctx context.Context, d Deps) (*Service, error) {
	s := &Service{store: store.New(d.Pool, events.Activated), log: d.Log}
	if err := s.store.Check(ctx); err != nil {
		return nil, err
	}
	var box *sealed.Box
	if d.Config.SealingKey != "" {
		var err error
		if box, err = sealed.NewBox(d.Config.SealingKey); err != nil {
			return nil, config.Invalid("company.sealing-key", "%v", err)
		}
	}
	s.relay = outbox.NewRelay(d.Pool, d.Publisher, outbox.RelayOptions{
		Source: "/bullpen/" + name, Log: d.Log, Metrics: d.Metrics,
	})
	s.handler = api.New(api.Options{Store: s.store, Box: box, Getenv: d.Getenv, Now: d.Now, Wake: s.relay.Wake})
	if d.Config.Document != "" {
		if err := s.applyFile(ctx, d.Config.Document, d.Now()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Register implements [run.Service].
func (s *Service) Register(server *connect.Server) {
	s.server = server
	companyv1connect.RegisterCompanyServiceHandler(server, s.handler)
	toolv1connect.RegisterPrincipalServiceHandler(server, s.handler)
}

// Routes implements [run.Service]: the configuration of MCP servers. Call it after Register.
func (s *Service) Routes(mux *http.ServeMux) { api.Routes(mux, s.server) }

// Run announces activations and forgets old operations, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.relay.Run(ctx) })
	group.Go(func() error { return s.store.Retain(ctx, s.log) })
	return group.Wait()
}

// Ready implements [run.Readier]. Without a company there is nothing to do, and it may be put through this very process: the
// condition does not block.
func (s *Service) Ready(ctx context.Context) []run.Condition {
	active, err := s.handler.Active(ctx)
	if err == nil {
		return []run.Condition{{Name: "company", OK: true, Detail: active}}
	}
	detail := "The active company cannot be read; see the log."
	if f, ok := fault.As(err); ok {
		detail = f.Message
	}
	return []run.Condition{{Name: "company", Detail: detail}}
}

// Check answers everything that is wrong with a document, as CheckCompany does, without a service.
func Check(text string) []*companyv1.Problem { return api.Problems(text) }
