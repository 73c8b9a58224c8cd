package bench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
)

// Options bound a benchmark.
type Options struct {
	// Executable is this program.
	Executable string
	// Duration is how long each load runs.
	Duration time.Duration
	// Runs is how often each is repeated; medians are reported.
	Runs int
	// Idle is how long the suite rests before its memory is read.
	Idle time.Duration
	// Watch is told what is being measured.
	Watch io.Writer
}

// Boot measures how long the suite takes to be ready, on no data and on data that is there, and how much memory it keeps at rest.
func Boot(ctx context.Context, o Options) (report *Report, err error) {
	report = &Report{Area: "boot", LoadBefore: load()}
	data, err := pgserver.TempDir("bullpen-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	var cold, warm, floorCold, floorWarm []float64
	for run := range o.Runs {
		dir := filepath.Join(data, "suite", string(rune('a'+run)))
		floor := filepath.Join(data, "floor", string(rune('a'+run)))
		for _, start := range []struct{ suite, floor *[]float64 }{{&cold, &floorCold}, {&warm, &floorWarm}} {
			took, err := bareStart(ctx, floor)
			if err != nil {
				return nil, err
			}
			*start.floor = append(*start.floor, ms(took))
			p, err := up(ctx, o.Executable, dir, nil)
			if err != nil {
				return nil, err
			}
			*start.suite = append(*start.suite, ms(p.started))
			if err := p.stop(); err != nil {
				return nil, err
			}
		}
	}
	report.add("ready on no data (cold), median", median(cold), "ms", "<= 5000")
	report.add("  floor: Postgres and broker alone, cold", median(floorCold), "ms", "")
	report.add("ready on its data (warm), median", median(warm), "ms", "<= 1500")
	report.add("  floor: Postgres and broker alone, warm", median(floorWarm), "ms", "")
	if err := idle(ctx, o, filepath.Join(data, "suite", "a"), report); err != nil {
		return nil, err
	}
	report.LoadAfter = load()
	return report, nil
}

// idle reads the memory of a suite that has nothing to do.
func idle(ctx context.Context, o Options, dir string, report *Report) error {
	p, err := up(ctx, o.Executable, dir, nil)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(o.Idle):
	}
	memory, err := p.memory()
	report.add("memory at rest, Postgres apart", memory, "MB", "<= 150")
	return errors.Join(err, p.stop())
}

// bareStart starts what the suite cannot do without, and nothing of the suite.
func bareStart(ctx context.Context, dir string) (time.Duration, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	began := time.Now()
	started := make(chan error, 1)
	var broker *embedded.Broker
	go func() {
		var err error
		broker, err = embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dir, "broker")})
		started <- err
	}()
	postgres, err := pgserver.Start(ctx, pgserver.Options{DataDir: filepath.Join(dir, "postgres"), Log: slog.New(slog.DiscardHandler)})
	if err = errors.Join(err, <-started); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, errors.Join(broker.Close(), postgres.Stop(ctx))
}
