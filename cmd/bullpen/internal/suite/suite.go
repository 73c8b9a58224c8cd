// Package suite runs every service in one process, with a broker and a Postgres of its own when it is given none.
//
// It is the one place that knows that a process can hold the whole suite. The services are the same modules that run one to a
// container; what differs is what stands behind their hosts: an embedded broker that keeps its records in the data directory,
// a supervised local Postgres, and calls that stay in the process.
//
//	data directory: postgres/  broker/  search/  keys/{principal,sealing,tokens}  endpoint.json  lock
package suite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/run"
)

// stopTimeout bounds the end of Postgres and the broker, after the services have ended.
const stopTimeout = 30 * time.Second

// Options says where the suite keeps its data and how it runs.
type Options struct {
	// DataDir holds everything that must outlive the process. It is made when it is not there.
	DataDir string
	// Run is the process. Without a DatabaseURL, Brokers or PrincipalKeys the suite brings its own.
	Run run.Options
}

// Suite is the running suite.
type Suite struct {
	process  *run.Process
	postgres *pgserver.Server
	broker   *embedded.Broker
	dataDir  string
	// Brokers are the addresses of the broker in use.
	Brokers []string
	// Database is the Postgres in use.
	Database config.Secret
	// Keys sign principals.
	Keys []config.Secret
}

// Start starts the suite and answers before it is ready. When ctx ends, it drains and stops.
func Start(ctx context.Context, o Options) (*Suite, error) {
	if err := os.MkdirAll(o.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	s := &Suite{dataDir: o.DataDir}
	if err := s.keys(&o.Run); err != nil {
		return nil, err
	}
	if err := s.backing(ctx, &o.Run); err != nil {
		return nil, errors.Join(err, s.stop(o.Run.Telemetry.Log))
	}
	if settings := Tracker(o.Run); settings != nil && settings.SearchDir == "" {
		settings.SearchDir = filepath.Join(o.DataDir, "search")
	}
	s.Brokers, s.Database, s.Keys = o.Run.Brokers, o.Run.DatabaseURL, o.Run.PrincipalKeys
	process, err := run.Start(ctx, o.Run)
	if err != nil {
		return nil, errors.Join(err, s.stop(o.Run.Telemetry.Log))
	}
	s.process = process
	return s, nil
}

// keys makes the installation's keys, or reads them.
func (s *Suite) keys(o *run.Options) error {
	dir := filepath.Join(s.dataDir, "keys")
	if len(o.PrincipalKeys) == 0 {
		principal, err := key(dir, "principal")
		if err != nil {
			return fmt.Errorf("principal key: %w", err)
		}
		o.PrincipalKeys = []config.Secret{principal}
	}
	if settings := Company(*o); settings != nil {
		if err := fill(&settings.SealingKey, dir, "sealing"); err != nil {
			return err
		}
	}
	if settings := McpHost(*o); settings != nil {
		return fill(&settings.TokenKey, dir, "tokens")
	}
	return nil
}

// fill gives a setting the installation's own key when it was given none.
func fill(setting *config.Secret, dir, name string) (err error) {
	if *setting != "" {
		return nil
	}
	if *setting, err = key(dir, name); err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	return nil
}

// backing starts Postgres and the broker side by side, unless they are given.
func (s *Suite) backing(ctx context.Context, o *run.Options) error {
	// They must outlive ctx: the services drain into them.
	lasting := context.WithoutCancel(ctx)
	group := new(errgroup.Group)
	if o.DatabaseURL == "" {
		group.Go(func() (err error) {
			s.postgres, err = pgserver.Start(lasting, pgserver.Options{DataDir: filepath.Join(s.dataDir, "postgres"), Log: o.Telemetry.Log})
			return err
		})
	}
	if len(o.Brokers) == 0 {
		group.Go(func() (err error) {
			s.broker, err = embedded.Start(lasting, embedded.Options{DataDir: filepath.Join(s.dataDir, "broker")})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if s.postgres != nil {
		o.DatabaseURL = config.Secret(s.postgres.DSN())
	}
	if s.broker != nil {
		o.Brokers = s.broker.Brokers()
	}
	return nil
}

// URL answers where the suite listens.
func (s *Suite) URL() string { return s.process.URL() }

// Ready is closed once every service runs.
func (s *Suite) Ready() <-chan struct{} { return s.process.Ready() }

// Done is closed once every service has ended.
func (s *Suite) Done() <-chan struct{} { return s.process.Done() }

// Wait blocks until the process has ended and everything is stopped, and answers why it ended.
func (s *Suite) Wait(log *slog.Logger) error {
	return errors.Join(s.process.Wait(), s.stop(log))
}

func (s *Suite) stop(log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	if s.broker != nil {
		errs = append(errs, s.broker.Close())
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Stop(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		log.Error("the suite did not stop cleanly", "error", err)
		return err
	}
	return nil
}
