package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker"
	"github.com/bullpenhq/bullpen/services/tracker/sample"
)

// TrackerOptions bound [Tracker].
type TrackerOptions struct {
	Options
	// Items are the sizes to measure at, each in an installation of its own.
	Items []int
	// History is how many rows of history each item has.
	History int
	// Slice is how long each load runs in one round.
	Slice time.Duration
}

// TrackerDefaults answers what `bullpen bench tracker` does unless it is told otherwise.
func TrackerDefaults() TrackerOptions {
	return TrackerOptions{Items: []int{10_000, 1_000_000}, History: 10, Slice: 5 * time.Second}
}

const (
	trackerProjects = 8
	// indexPatience bounds how long the search index may take to be built.
	indexPatience = 15 * time.Minute
)

// Tracker measures the work tracker from outside: reads warm and right after a restart of everything, and writes beside single-row
// commits on the same server, at each size.
func Tracker(ctx context.Context, o TrackerOptions) (report *Report, err error) {
	report = &Report{Area: "tracker", LoadBefore: load()}
	for _, items := range o.Items {
		if err := trackerAt(ctx, o, items, report); err != nil {
			return nil, err
		}
	}
	report.LoadAfter = load()
	return report, nil
}

// trackerSite is an installation with much work in it.
type trackerSite struct {
	data, document string
	items          int
	executable     string
	postgres       *pgserver.Server
	dsn            string
	suite          *process
	client         trackerv1connect.TrackerServiceClient
}

func trackerAt(ctx context.Context, o TrackerOptions, items int, report *Report) (err error) {
	s := &trackerSite{items: items, executable: o.Executable}
	if s.data, err = pgserver.TempDir("bullpen-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(ctx), os.RemoveAll(s.data)) }()
	s.document = filepath.Join(s.data, "company.yaml")
	if err := os.WriteFile(s.document, []byte(trackerCompany()), 0o600); err != nil {
		return err
	}
	name := func(what string) string { return fmt.Sprintf("%s items: %s", thousands(items), what) }
	fmt.Fprintf(o.Watch, "%s items: load them\n", thousands(items))
	began := time.Now()
	if err := s.load(ctx, o.History); err != nil {
		return err
	}
	report.add(name("loaded, with history, in"), time.Since(began).Seconds(), "s", "")
	fmt.Fprintf(o.Watch, "%s items: build the search index\n", thousands(items))
	began = time.Now()
	if err := s.start(ctx); err != nil {
		return err
	}
	report.add(name("search index built in"), time.Since(began).Seconds(), "s", "")
	kinds, err := s.kinds(ctx)
	if err != nil {
		return err
	}
	for _, measure := range []func() error{
		func() error { return s.reads(ctx, o, kinds, name, report) },
		func() error { return s.writes(ctx, o, name, report) },
		func() error { return s.firstReads(ctx, o, kinds, name, report) },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	memory, err := s.suite.memory()
	if err != nil {
		return err
	}
	report.add(name("memory of the suite, after all that"), memory, "MB", "")
	report.add(name("load average"), loadNumber(), "", "")
	return nil
}

// load fills the tracker's schema before the suite sees it.
func (s *trackerSite) load(ctx context.Context, history int) error {
	if err := s.database(ctx); err != nil {
		return err
	}
	name := tracker.Module.Name
	if err := pg.EnsureSchemas(ctx, s.dsn, name); err != nil {
		return err
	}
	if err := pg.Migrate(ctx, s.dsn, map[string]fs.FS{name: tracker.Module.Migrations}); err != nil {
		return err
	}
	pool, err := pg.Open(ctx, s.dsn, name)
	if err != nil {
		return err
	}
	defer pool.Close()
	return sample.Load(ctx, pool, sample.Size{Items: s.items, History: history, Projects: trackerProjects, Seats: seats, Until: time.Now()})
}

func (s *trackerSite) database(ctx context.Context) (err error) {
	if s.postgres, err = pgserver.Start(ctx, pgserver.Options{DataDir: filepath.Join(s.data, "postgres"), Log: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	s.dsn = s.postgres.DSN()
	return nil
}

// start starts the suite, and answers when searches are served.
func (s *trackerSite) start(ctx context.Context) (err error) {
	environment := map[string]string{config.EnvName("database-url"): s.dsn}
	if s.suite, err = up(ctx, s.executable, filepath.Join(s.data, "suite"), environment, "--company", s.document); err != nil {
		return err
	}
	keys, err := s.suite.keys()
	if err != nil {
		return err
	}
	s.client = trackerv1connect.NewTrackerServiceClient(rpc.NewClient(rpc.HTTPTransport(s.suite.url), rpc.ClientOptions{Service: "bench", Keys: keys}))
	waiting, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	for {
		_, err := s.client.SearchWorkItems(caller(waiting), &trackerv1.SearchWorkItemsRequest{Text: "anything"})
		if err == nil {
			return nil
		}
		if rpc.FromError(err).Class != fault.Unavailable || waiting.Err() != nil {
			return err
		}
		select {
		case <-waiting.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// caller is the operator that calls are made as.
func caller(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "bench", DisplayName: "bench"})
}

// restart stops the suite and Postgres, so that nothing is in their memory, and starts both.
func (s *trackerSite) restart(ctx context.Context) error {
	if err := s.stop(ctx); err != nil {
		return err
	}
	if err := s.database(ctx); err != nil {
		return err
	}
	return s.start(ctx)
}

func (s *trackerSite) stop(ctx context.Context) error {
	var errs []error
	if s.suite != nil {
		errs = append(errs, s.suite.stop())
		s.suite = nil
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop(context.WithoutCancel(ctx)))
		s.postgres = nil
	}
	return errors.Join(errs...)
}

func thousands(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// loadNumber answers the load average as a figure; 0 where the system does not say.
func loadNumber() (n float64) {
	_, _ = fmt.Sscan(load(), &n)
	return n
}

// trackerCompany answers a document whose projects and seats are those of the sample.
func trackerCompany() string {
	var document strings.Builder
	document.WriteString(`name: Bench
providers:
  llm:
    default:
      type: scripted
      scenario: {rules: [{rounds: [{submit: {outcome: delivered, summary: Seen.}}]}]}
tracker: {backend: native}
units:
`)
	for p := range trackerProjects {
		fmt.Fprintf(&document, "  - name: Unit %d\n    project: P%d\n    roles:\n", p+1, p+1)
		for n := p; n < seats; n += trackerProjects {
			fmt.Fprintf(&document, "      - {name: Seat %d, handle: seat-%d}\n", n, n)
		}
	}
	return document.String()
}
