// Package run is the host of a process: it turns a list of modules into a running program, and it is the only place that
// knows how many of them the program has.
//
// A [Module] is a service's whole description. The host reads its settings, brings its schema up to date, opens its pool,
// builds it, mounts its RPCs and routes on one HTTP listener, runs it, and ends it. What a service needs of others it gets
// from its [Host]: Client answers a client for a service by name, and whether that leads into the same process or over the
// network is decided here and can be asked nowhere.
//
//	Start ─► listen ─► wait for Postgres and broker ─► migrate ─► pools ─► New, Register, Routes ─► Run ─► ready
//	                   (healthz 200, readyz 503)                                                    (readyz 200)
//	end ───► readyz 503 ─► end each Run, last module first ─► drain HTTP ─► bus, pools, traces
//
// Modules are ended one after the other, in reverse order, so list a service before those that call it: what drains may
// still call what it needs.
//
// [Main] is a whole main function. [Start] is the same for programs that bring their own flags.
package run

import (
	"context"
	"flag"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Config is a module's settings.
type Config interface {
	// RegisterFlags adds the settings to fs, each name beginning with prefix, which ends in a dot: `tracker.`. The defaults
	// are in place afterwards.
	RegisterFlags(prefix string, fs *flag.FlagSet)
	// Validate is called once the settings are read; see [config.Invalid] for its errors.
	Validate() error
}

// Service is a module that has been built.
type Service interface {
	// Register adds the service's RPCs to the process's server.
	Register(s *connect.Server)
	// Routes adds what is not an RPC, such as webhooks. The service authenticates these itself. `/healthz`, `/readyz` and
	// `/metrics` are taken.
	Routes(mux *http.ServeMux)
	// Run does the service's own work and blocks until ctx ends and the work is drained. Every RPC of the process is
	// served before it starts and until it has returned. Returning an error, or returning before ctx ends, ends the process.
	Run(ctx context.Context) error
}

// Readier is a Service with conditions of its own for /readyz. Ready is called at each probe, perhaps by several at once, and
// must answer within two seconds, when ctx ends.
type Readier interface {
	Ready(ctx context.Context) []Condition
}

// Condition is one thing that is well or not.
type Condition struct {
	// Name says what, in a word or two.
	Name string `json:"name"`
	// OK is false when something is wrong.
	OK bool `json:"ok"`
	// Blocking makes the whole process not ready while OK is false; otherwise the condition only shows.
	Blocking bool `json:"blocking"`
	// Detail says what is wrong and what to do. Anybody may read it: it must hold no secret.
	Detail string `json:"detail,omitempty"`
}

// Module describes a service to its host.
type Module struct {
	// Name is the service's name and that of its schema, flags and metrics label: lower-case letters and digits.
	Name string
	// NewConfig answers an empty configuration; nil for a service without settings.
	NewConfig func() Config
	// Migrations are the schema's files, all in one folder; nil for a service without a schema, whose Host has no Pool.
	Migrations fs.FS
	// Topics are those that the service publishes or reads; they exist before New is called.
	Topics []bus.Topic
	// Peers names the services that this one calls. Each gets a flag -peer.<name>-url, and one that is neither in the
	// process nor given by its flag fails the start.
	Peers []string
	// New builds the service. It may read its own database; it may not call other services yet, as they are not built.
	New func(ctx context.Context, h *Host) (Service, error)
}

// Host is what a process gives to one module. The fields are the module's own: logger, metrics and tracer bear its name.
type Host struct {
	// Name is the module's.
	Name string
	// Config is what NewConfig answered, read and validated; nil without NewConfig.
	Config Config
	Log    *slog.Logger
	// Metrics adds the label `service` to everything registered.
	Metrics prometheus.Registerer
	Tracer  trace.TracerProvider
	// Pool is open on the module's migrated schema, and nil without Migrations. The host closes it.
	Pool *pgxpool.Pool
	// Bus is the process's. The host closes it.
	Bus bus.Bus
	// Keys sign and verify principals.
	Keys *rpc.Keys
	// Now is the process's clock.
	Now func() time.Time
	// Node is unique among all processes, and new at each start.
	Node string
	// URL is the base URL under which other processes probably reach this one. A listener on every address is named by the
	// machine's first address that is not loopback; only an operator knows better, so offer a setting.
	URL string
	// Getenv reads the environment, for names that are not settings.
	Getenv func(string) string

	peers *peers
}

// Client answers a client for a service, which calls as this module unless a call says [rpc.As]. A service that is not in
// the module's Peers, or has no address, fails the start with a sentence that says so. Clients may be made in New and are to
// be used from Run on.
func (h *Host) Client(service string) *connect.Client {
	return h.peers.client(h.Name, service)
}
