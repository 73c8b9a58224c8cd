package run_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/run"
)

// freeAddress answers a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// forward serves a Postgres at another address until the test ends.
func forward(t *testing.T, address string, to *pgconn.Config) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	var open sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	network, target := pgconn.NetworkAddress(to.Host, to.Port)
	open.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(network, target)
			if err != nil {
				_ = near.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				open.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				})
			}
		}
	})
}

func TestProcessWaitsForPostgresAndKafka(t *testing.T) {
	t.Parallel()
	database, err := pgconn.ParseConfig(pgtest.DSN(t))
	require.NoError(t, err)
	postgres, kafka := freeAddress(t), freeAddress(t)
	host, port, err := net.SplitHostPort(postgres)
	require.NoError(t, err)

	m := plain("tracker", piece{})
	m.Migrations = migrations()
	m.Topics = []bus.Topic{{Name: "bullpen.tracker.item.v1"}}
	o := options(t, m)
	o.Brokers = []string{kafka}
	o.DatabaseURL = config.Secret(fmt.Sprintf("host=%s port=%s user=%s password=%s dbname=%s sslmode=disable",
		host, port, database.User, database.Password, database.Database))
	// The forwarder closes after the process: cleanups run backwards.
	p, _ := startLate(t, o, func() {
		forward(t, postgres, database)
		broker(t, kafka)
	})

	ready(t, p)
	_, r := readiness(t, p)
	require.True(t, r.Ready)
}

// startLate starts a process, sees it wait, and then lets what it waits for come up.
func startLate(t *testing.T, o run.Options, up func()) (*run.Process, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p, err := run.Start(ctx, o)
	require.NoError(t, err)
	status, r := readiness(t, p)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, r.Conditions[0].Detail, "starting")
	status, _ = get(t, p.URL()+"/healthz")
	require.Equal(t, http.StatusOK, status)
	status, _ = get(t, p.URL()+"/anything")
	require.Equal(t, http.StatusServiceUnavailable, status)
	up()
	t.Cleanup(func() {
		stop()
		<-p.Done()
	})
	return p, stop
}

func TestProcessStopsWaitingInASentence(t *testing.T) {
	t.Parallel()
	nobody := freeAddress(t)
	m := plain("tracker", piece{})
	m.Topics = []bus.Topic{{Name: "bullpen.tracker.item.v1"}}
	o := options(t, m)
	o.Brokers = []string{nobody}
	o.Wait = 50 * time.Millisecond
	p, _ := startUnready(t, o)
	require.ErrorContains(t, p.Wait(), "Kafka did not come up within 50ms")

	m = plain("tracker", piece{})
	m.Migrations = migrations()
	o = options(t, m)
	o.DatabaseURL = config.Secret("postgres://u:hunter2@" + nobody + "/x")
	o.Wait = 50 * time.Millisecond
	p, _ = startUnready(t, o)
	require.ErrorContains(t, p.Wait(), "Postgres did not come up within 50ms")
	require.NotContains(t, p.Wait().Error(), "hunter2")
}

func TestWhatWaitingDoesNotMendFailsAtOnce(t *testing.T) {
	t.Parallel()
	m := plain("tracker", piece{})
	m.Migrations = migrations()
	o := options(t, m)
	o.DatabaseURL = "postgres://%zz"
	p, _ := startUnready(t, o)
	require.ErrorContains(t, p.Wait(), "Postgres cannot be used")

	a, b := plain("tracker", piece{}), plain("knowledge", piece{})
	a.Topics = []bus.Topic{{Name: "bullpen.x.v1", Partitions: 8}}
	b.Topics = []bus.Topic{{Name: "bullpen.x.v1", Partitions: 1}}
	o = options(t, a, b)
	o.Brokers = []string{"127.0.0.1:1"}
	p, _ = startUnready(t, o)
	require.EqualError(t, p.Wait(), "tracker and knowledge describe the topic bullpen.x.v1 differently")
}

func TestStopWhileStartingIsNoFailure(t *testing.T) {
	t.Parallel()
	m := plain("tracker", piece{})
	m.Topics = []bus.Topic{{Name: "bullpen.tracker.item.v1"}}
	o := options(t, m)
	o.Brokers = []string{freeAddress(t)}
	p, stop := startUnready(t, o)
	stop()
	require.NoError(t, p.Wait())
}

// limits is a configuration with one setting.
type limits struct{ items int }

func (l *limits) RegisterFlags(prefix string, fs *flag.FlagSet) {
	fs.IntVar(&l.items, prefix+"max-items", 10, "Items at most, 1 to 100.")
}

func (l *limits) Validate() error {
	if l.items < 1 || l.items > 100 {
		return config.Invalid("tracker.max-items", "must be 1 to 100, not %d", l.items)
	}
	return nil
}

func limited(seen *int) run.Module {
	m := module("tracker", func(h *run.Host) (run.Service, error) {
		*seen = h.Config.(*limits).items
		return piece{}, nil
	})
	m.NewConfig = func() run.Config { return &limits{} }
	return m
}

func TestModuleReadsItsSettings(t *testing.T) {
	t.Parallel()
	for want, change := range map[int]func(*run.Options){
		10: func(*run.Options) {},
		20: func(o *run.Options) {
			o.Getenv = func(name string) string { return map[string]string{"BULLPEN_TRACKER_MAX_ITEMS": "20"}[name] }
		},
		30: func(o *run.Options) { o.Configs = map[string]run.Config{"tracker": &limits{items: 30}} },
	} {
		t.Run(strconv.Itoa(want), func(t *testing.T) {
			t.Parallel()
			var seen int
			o := options(t, limited(&seen))
			change(&o)
			start(t, o)
			require.Equal(t, want, seen)
		})
	}
}

func TestOptionsThatCannotBeStartedAreRefusedInSentences(t *testing.T) {
	t.Parallel()
	withData := plain("tracker", piece{})
	withData.Migrations, withData.Topics = migrations(), []bus.Topic{{Name: "x"}}
	var seen int
	for says, change := range map[string]func(*run.Options){
		"no modules": func(o *run.Options) { o.Modules = nil },
		"-principal-keys (BULLPEN_PRINCIPAL_KEYS) cannot be used: at least one":               func(o *run.Options) { o.PrincipalKeys = nil },
		"principal key 1 has 3 bytes; a key must have at least 32":                            func(o *run.Options) { o.PrincipalKeys = []config.Secret{"abc"} },
		"-database-url (BULLPEN_DATABASE_URL) is needed: tracker keeps its data in Postgres":  func(o *run.Options) { o.Modules = []run.Module{withData} },
		"-kafka-brokers (BULLPEN_KAFKA_BROKERS) is needed: tracker publishes or reads topics": func(o *run.Options) { o.Modules = []run.Module{withData} },
		`-listen (BULLPEN_LISTEN) must be host:port, not "8080"`:                              func(o *run.Options) { o.Listen = "8080" },
		`-metrics-listen (BULLPEN_METRICS_LISTEN) must be host:port`:                          func(o *run.Options) { o.MetricsListen = "9090" },
		"-peer.company-url (BULLPEN_PEER_COMPANY_URL) must be an http or https URL":           func(o *run.Options) { o.Peers = map[string]string{"company": "company:80"} },
		`module "Tool-Registry": a name must be lower-case`:                                   func(o *run.Options) { o.Modules = []run.Module{plain("Tool-Registry", piece{})} },
		"must be 1 to 100, not 0": func(o *run.Options) {
			o.Modules, o.Configs = []run.Module{limited(&seen)}, map[string]run.Config{"tracker": &limits{}}
		},
		"BULLPEN_TRACKER_MAX_ITEMS (twin of -tracker.max-items) cannot be read": func(o *run.Options) {
			o.Modules, o.Getenv = []run.Module{limited(&seen)}, func(string) string { return "many" }
		},
		"Telemetry is required": func(o *run.Options) { o.Telemetry = nil },
		"listen on":             func(o *run.Options) { o.Listen = "203.0.113.1:1" },
	} {
		o := options(t, plain("company", piece{}))
		change(&o)
		_, err := run.Start(t.Context(), o)
		require.ErrorContains(t, err, says)
	}
}

func TestFlagsAreThoseOfTheProcessItsModulesAndTheirPeers(t *testing.T) {
	t.Parallel()
	var seen int
	m := limited(&seen)
	m.Peers = []string{"knowledge", "notification"}
	f := run.NewFlags("suite", m, plain("knowledge", piece{}))
	table := f.Markdown()
	for _, name := range []string{"-listen", "-database-url", "-tracker.max-items", "-peer.notification-url", "-peer.company-url"} {
		require.Contains(t, table, "`"+name+"`")
	}
	require.Contains(t, table, "`-peer.knowledge-url`", "the page is also that of knowledge's own process")
	require.Nil(t, f.Set.Lookup("peer.knowledge-url"), "it is in this process")

	keys := string(principalKey) + ", " + string(principalKey)
	o, err := f.Parse([]string{"-tracker.max-items=7", "-peer.company-url=http://company:80"}, func(name string) string {
		return map[string]string{"BULLPEN_PRINCIPAL_KEYS": keys, "BULLPEN_KAFKA_BROKERS": "a:1,b:2"}[name]
	})
	require.NoError(t, err)
	require.Equal(t, []config.Secret{principalKey, principalKey}, o.PrincipalKeys)
	require.Equal(t, []string{"a:1", "b:2"}, o.Brokers)
	require.Equal(t, "http://company:80", o.Peers["company"])
	require.Equal(t, 7, o.Configs["tracker"].(*limits).items)
	require.True(t, o.Migrate)

	_, err = run.NewFlags("suite", m).Parse([]string{"-drain-timeout=0s"}, func(string) string { return "" })
	require.ErrorContains(t, err, "-drain-timeout (BULLPEN_DRAIN_TIMEOUT) must be longer than 0")
}

func TestSecondListenerServesMetricsAlone(t *testing.T) {
	t.Parallel()
	o := options(t, plain("company", piece{}))
	o.MetricsListen = freeAddress(t)
	start(t, o)
	status, body := get(t, "http://"+o.MetricsListen+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "go_goroutines")
	status, _ = get(t, "http://"+o.MetricsListen+"/readyz")
	require.Equal(t, http.StatusNotFound, status)
}
