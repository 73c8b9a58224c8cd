package run

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
)

// connect brings up the database and the broker, side by side.
func (p *Process) connect(ctx context.Context) error {
	p.state.set(phaseStarting, "waiting for Postgres and Kafka")
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.connectDatabase(ctx) })
	g.Go(func() error { return p.connectBroker(ctx) })
	return g.Wait()
}

func (p *Process) connectDatabase(ctx context.Context) error {
	sources := map[string]fs.FS{}
	for _, m := range p.o.Modules {
		if m.Migrations != nil {
			sources[m.Name] = m.Migrations
		}
	}
	if len(sources) == 0 {
		return nil
	}
	dsn := p.o.DatabaseURL.Reveal()
	schemas := slices.Sorted(maps.Keys(sources))
	if p.o.Migrate {
		err := p.await(ctx, "Postgres", func(ctx context.Context) (bool, error) {
			err := pg.EnsureSchemas(ctx, dsn, schemas...)
			return retryDatabase(ctx, err), err
		})
		if err != nil {
			return err
		}
		if err := pg.Migrate(ctx, dsn, sources); err != nil {
			return err
		}
	}
	return p.await(ctx, "Postgres", func(ctx context.Context) (bool, error) {
		err := p.openPools(ctx, dsn, schemas)
		return retryDatabase(ctx, err), err
	})
}

// retryDatabase reports whether the database may come up yet: a refused password does not mend by waiting.
func retryDatabase(ctx context.Context, err error) bool { return pg.Transient(err) || ctx.Err() != nil }

// openPools opens those that are not open yet, at the same time.
func (p *Process) openPools(ctx context.Context, dsn string, schemas []string) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	opened := maps.Clone(p.pools)
	for _, schema := range schemas {
		if opened[schema] != nil {
			continue
		}
		g.Go(func() error {
			// A pool outlives the attempt that opened it; it holds on to none of its context.
			pool, err := pg.Open(ctx, dsn, schema)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			p.pools[schema] = pool
			return nil
		})
	}
	return g.Wait()
}

func (p *Process) connectBroker(ctx context.Context) error {
	if len(p.o.Brokers) == 0 {
		return nil
	}
	topics, err := topicsOf(p.o.Modules)
	if err != nil {
		return err
	}
	b, err := bus.Open(bus.Config{Brokers: p.o.Brokers, ClientID: p.o.Name + "-" + p.node, Log: p.log})
	if err != nil {
		return err
	}
	p.bus = b
	return p.await(ctx, "Kafka", func(ctx context.Context) (bool, error) {
		err := b.Ping(ctx)
		if err == nil {
			err = b.EnsureTopics(ctx, topics...)
		}
		return fault.ClassOf(err) == fault.Unavailable, err
	})
}

// topicsOf gathers the modules' topics. Two modules that describe one topic differently would make its shape depend on who
// starts first.
func topicsOf(modules []Module) ([]bus.Topic, error) {
	byName := map[string]bus.Topic{}
	owner := map[string]string{}
	for _, m := range modules {
		for _, t := range m.Topics {
			if other, known := byName[t.Name]; known && other != t {
				return nil, fmt.Errorf("%s and %s describe the topic %s differently", owner[t.Name], m.Name, t.Name)
			}
			byName[t.Name], owner[t.Name] = t, m.Name
		}
	}
	topics := make([]bus.Topic, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		topics = append(topics, byName[name])
	}
	return topics, nil
}

const (
	attemptTimeout = 10 * time.Second
	firstPause     = 100 * time.Millisecond
	longestPause   = 2 * time.Second
)

// await repeats attempt until it succeeds, says that repeating is of no use, or the start's time is over. It says once what it
// waits for.
func (p *Process) await(ctx context.Context, what string, attempt func(context.Context) (retry bool, err error)) error {
	deadline := time.NewTimer(p.o.Wait)
	defer deadline.Stop()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		retry, err := bounded(ctx, attempt)
		if err == nil {
			return nil
		}
		if !retry || ctx.Err() != nil {
			return fmt.Errorf("%s cannot be used: %w", what, err)
		}
		if pause == firstPause {
			p.log.Warn("waiting", "for", what, "at_most", p.o.Wait, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("%s did not come up within %s: %w", what, p.o.Wait, err)
		}
	}
}

func bounded(ctx context.Context, attempt func(context.Context) (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return attempt(ctx)
}

// host answers what the process gives to a module.
func (p *Process) host(m Module) *Host {
	return &Host{
		Name:    m.Name,
		Config:  p.o.Configs[m.Name],
		Log:     p.log.With("service", m.Name),
		Metrics: prometheus.WrapRegistererWith(prometheus.Labels{"service": m.Name}, p.o.Telemetry.Registry),
		Tracer:  p.o.Telemetry.TracerProvider,
		Pool:    p.pool(m.Name),
		Bus:     p.bus,
		Keys:    p.o.keys,
		Now:     p.o.Now,
		Node:    p.node,
		URL:     p.advertised(),
		Getenv:  p.o.Getenv,
		peers:   p.peers,
	}
}

func (p *Process) pool(schema string) *pgxpool.Pool { return p.pools[schema] }
