package run

import (
	"flag"
	"slices"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/telemetry"
)

// Flags is the whole surface of a program's settings: the process's own and those of its modules.
type Flags struct {
	// Set holds every flag; a program may add its own.
	Set *flag.FlagSet

	options   Options
	keys      config.Secret
	peers     map[string]*string
	level     string
	format    string
	collector string
}

// NewFlags makes the flags of a program of these modules.
func NewFlags(name string, modules ...Module) *Flags {
	f := &Flags{
		Set:     flag.NewFlagSet(name, flag.ContinueOnError),
		options: Options{Name: name, Modules: modules, Configs: map[string]Config{}},
		peers:   map[string]*string{},
	}
	f.process()
	for _, m := range modules {
		if m.NewConfig != nil {
			c := m.NewConfig()
			c.RegisterFlags(m.Name+".", f.Set)
			f.options.Configs[m.Name] = c
		}
	}
	return f
}

func (f *Flags) process() {
	o, fs := &f.options, f.Set
	fs.StringVar(&o.Listen, "listen", defaultListen, "Address of the HTTP listener, for RPCs, webhooks and probes. Port 0 takes a free one.")
	fs.StringVar(&o.MetricsListen, "metrics-listen", "", "Second address, for /metrics alone. The first serves /metrics only while it is a loopback address.")
	config.SecretVar(fs, &o.DatabaseURL, "database-url", "Postgres, as a URL or key=value pairs.")
	config.ListVar(fs, &o.Brokers, "kafka-brokers", "Addresses of Kafka, host:port with commas between.")
	config.SecretVar(fs, &f.keys, "principal-keys", "Keys that sign the caller of every call between services, at least 32 bytes each, with commas between. The first signs, all verify; the same in every process.")
	fs.BoolVar(&o.Migrate, "migrate", true, "Create the schemas and bring them up to date at start.")
	fs.DurationVar(&o.Wait, "start-timeout", defaultWait, "How long to wait at start for Postgres and Kafka.")
	fs.DurationVar(&o.Drain, "drain-timeout", defaultDrain, "How long to let work finish at the end.")
	fs.StringVar(&f.level, "log-level", "info", "Least level that is logged: debug, info, warn or error.")
	fs.StringVar(&f.format, "log-format", "text", "Form of log lines: text or json.")
	fs.StringVar(&f.collector, "otlp-endpoint", "", "URL of an OpenTelemetry collector, such as http://localhost:4318. Empty sends no traces.")
	for service := range called(o.Modules) {
		if !slices.ContainsFunc(o.Modules, func(m Module) bool { return m.Name == service }) {
			f.peers[service] = fs.String(peerFlag(service), "", peerUsage(service))
		}
	}
}

func peerUsage(service string) string {
	return "Base URL of " + service + ", such as http://" + service + ":8080. Only where it is another process."
}

// called answers the services that modules call. The token service is among them: API tokens are verified there.
func called(modules []Module) map[string]bool {
	names := map[string]bool{tokenService: true}
	for _, m := range modules {
		for _, peer := range m.Peers {
			names[peer] = true
		}
	}
	return names
}

// Markdown answers the table of all settings of these modules, for the configuration page: of one process, or of several that
// share the page, so the peers that are in this process are listed too. Call it before Parse: it shows what is set as default.
func (f *Flags) Markdown() string {
	all := flag.NewFlagSet(f.Set.Name(), flag.ContinueOnError)
	f.Set.VisitAll(func(one *flag.Flag) { all.Var(one.Value, one.Name, one.Usage) })
	for service := range called(f.options.Modules) {
		if all.Lookup(peerFlag(service)) == nil {
			all.String(peerFlag(service), "", peerUsage(service))
		}
	}
	return config.Markdown(all)
}

// Parse reads the settings, flags before environment twins, and makes the process's telemetry.
func (f *Flags) Parse(args []string, getenv func(string) string) (Options, error) {
	if err := config.Parse(f.Set, args, getenv); err != nil {
		return Options{}, err
	}
	o := f.options
	o.Getenv = getenv
	for key := range strings.SplitSeq(f.keys.Reveal(), ",") {
		if key = strings.TrimSpace(key); key != "" {
			o.PrincipalKeys = append(o.PrincipalKeys, config.Secret(key))
		}
	}
	o.Peers = map[string]string{}
	for service, address := range f.peers {
		o.Peers[service] = *address
	}
	for name, d := range map[string]time.Duration{"start-timeout": o.Wait, "drain-timeout": o.Drain} {
		if d <= 0 {
			return Options{}, config.Invalid(name, "must be longer than 0, not %s", d)
		}
	}
	var err error
	o.Telemetry, err = telemetry.New(telemetry.Options{Service: o.Name, Level: f.level, Format: f.format, OTLPEndpoint: f.collector})
	return o, err
}
