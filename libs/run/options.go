package run

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"time"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/telemetry"
)

const (
	defaultListen = "127.0.0.1:8080"
	defaultWait   = time.Minute
	defaultDrain  = 30 * time.Second
	// readyPoll is how often it is asked at start whether anything still blocks.
	readyPoll = 10 * time.Millisecond
)

// Options is a process, described. Zero values mean the defaults of the flags.
type Options struct {
	// Name is the process's, in logs and traces.
	Name string
	// Modules are started in this order and ended in reverse.
	Modules []Module
	// Configs holds modules' settings by module name. A module without an entry reads its own from the environment.
	Configs map[string]Config
	// Listen is the address of the one HTTP listener; port 0 takes a free one.
	Listen string
	// MetricsListen is a second address, for /metrics alone; empty for none.
	MetricsListen string
	// DatabaseURL is required when a module has migrations.
	DatabaseURL config.Secret
	// Brokers are host:port addresses of Kafka; required when a module has topics, and without any Host.Bus is nil.
	Brokers []string
	// Peers maps a service to its base URL. A module of the process itself is never looked for here.
	Peers map[string]string
	// PrincipalKeys sign and verify principals: the first signs. Required, and the same in all processes.
	PrincipalKeys []config.Secret
	// Telemetry is required; the process shuts it down.
	Telemetry *telemetry.Telemetry
	// Migrate creates schemas and migrates them before the modules are built. Without it they must be up to date.
	Migrate bool
	// Wait bounds the wait for Postgres and the broker at start.
	Wait time.Duration
	// Drain bounds the end: Runs, requests and connections together.
	Drain time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Getenv reads the environment; nil reads an empty one.
	Getenv func(string) string

	keys *rpc.Keys
}

var moduleName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// complete fills in defaults and refuses what cannot be started, every fault at once.
func (o Options) complete() (Options, error) {
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if o.Drain <= 0 {
		o.Drain = defaultDrain
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	errs := []error{o.checkModules(), o.checkAddresses()}
	if o.Telemetry == nil {
		errs = append(errs, errors.New("run.Options: Telemetry is required"))
	}
	var err error
	if o.keys, err = rpc.NewKeys(o.PrincipalKeys...); err != nil {
		errs = append(errs, config.Invalid("principal-keys", "cannot be used: %w", err))
	} else {
		o.keys = o.keys.At(o.Now)
	}
	o.Configs, err = o.readConfigs()
	return o, errors.Join(append(errs, err)...)
}

func (o Options) checkModules() error {
	var errs []error
	if len(o.Modules) == 0 {
		errs = append(errs, errors.New("run.Options: no modules"))
	}
	seen := map[string]bool{}
	for _, m := range o.Modules {
		if !moduleName.MatchString(m.Name) || seen[m.Name] {
			errs = append(errs, fmt.Errorf("module %q: a name must be lower-case letters and digits, and used once", m.Name))
		}
		seen[m.Name] = true
		if m.Migrations != nil && o.DatabaseURL == "" {
			errs = append(errs, config.Invalid("database-url", "is needed: %s keeps its data in Postgres", m.Name))
		}
		if len(m.Topics) > 0 && len(o.Brokers) == 0 {
			errs = append(errs, config.Invalid("kafka-brokers", "is needed: %s publishes or reads topics", m.Name))
		}
	}
	return errors.Join(errs...)
}

func (o Options) checkAddresses() error {
	var errs []error
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		errs = append(errs, config.Invalid("listen", "must be host:port, not %q", o.Listen))
	}
	if _, _, err := net.SplitHostPort(o.MetricsListen); o.MetricsListen != "" && err != nil {
		errs = append(errs, config.Invalid("metrics-listen", "must be host:port, not %q", o.MetricsListen))
	}
	for service, address := range o.Peers {
		u, err := url.Parse(address)
		if address != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
			errs = append(errs, config.Invalid(peerFlag(service), "must be an http or https URL without a user"))
		}
	}
	return errors.Join(errs...)
}

// readConfigs answers a validated configuration for every module that has one.
func (o Options) readConfigs() (map[string]Config, error) {
	configs := map[string]Config{}
	var errs []error
	for _, m := range o.Modules {
		if m.NewConfig == nil {
			continue
		}
		c, given := o.Configs[m.Name]
		if !given {
			c = m.NewConfig()
			fs := flag.NewFlagSet(m.Name, flag.ContinueOnError)
			c.RegisterFlags(m.Name+".", fs)
			if err := config.Parse(fs, nil, o.Getenv); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if err := c.Validate(); err != nil {
			errs = append(errs, err)
		}
		configs[m.Name] = c
	}
	return configs, errors.Join(errs...)
}
