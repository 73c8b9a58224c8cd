package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Process is a running program. It lives until the context it was started with ends, or something in it fails.
type Process struct {
	o     Options
	log   *slog.Logger
	node  string
	began time.Time

	listener net.Listener
	servers  []*http.Server
	app      atomic.Pointer[http.ServeMux]
	state    state

	rpc     *connect.Server
	peers   *peers
	pools   map[string]*pgxpool.Pool
	bus     bus.Bus
	modules []*running
	failed  chan error

	ready chan struct{}
	done  chan struct{}
	err   error
}

// running is a module at work.
type running struct {
	name    string
	service Service
	cancel  context.CancelFunc
	done    chan struct{}
}

// Start checks the options and listens; the rest of the way up happens behind it, while /healthz and /readyz answer. Wait for
// Ready, or for Done, whichever comes. Ending ctx ends the process in good order.
func Start(ctx context.Context, o Options) (*Process, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	p := &Process{
		state: state{phase: phaseStarting},
		o:     o,
		log:   o.Telemetry.Log,
		node:  nodeName(),
		began: time.Now(),
		pools: map[string]*pgxpool.Pool{},
		// One for each module and listener, so that nobody waits to report.
		failed: make(chan error, len(o.Modules)+2),
		ready:  make(chan struct{}),
		done:   make(chan struct{}),
	}
	p.rpc = rpc.NewServer(rpc.ServerOptions{
		Service:        o.Name,
		Log:            p.log,
		Metrics:        o.Telemetry.Registry,
		TracerProvider: o.Telemetry.TracerProvider,
		Propagator:     o.Telemetry.Propagator,
		Keys:           o.keys,
		Tokens:         newTokens(o.Name, func() *peers { return p.peers }),
		Now:            o.Now,
	})
	p.peers = newPeers(o, p.rpc)
	if err := p.listen(); err != nil {
		p.peers.close()
		return nil, err
	}
	go p.live(ctx)
	return p, nil
}

// nodeName answers a name that no other process has and that says where to look.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + strings.ToLower(rand.Text()[:10])
}

// URL answers the base URL of the HTTP listener.
func (p *Process) URL() string { return "http://" + p.listener.Addr().String() }

// Ready is closed once every module runs and /readyz first answers 200. It stays open if the process ends before.
func (p *Process) Ready() <-chan struct{} { return p.ready }

// Done is closed once the process has ended; Wait does not block then.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the process has ended, and answers why, or nil if its context ended it and everything drained.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// live is the process from listening to its end.
func (p *Process) live(ctx context.Context) {
	defer close(p.done)
	err := p.up(ctx)
	if err == nil {
		err = p.work(ctx)
	} else if ctx.Err() != nil {
		// Stopped while starting: what failed, failed because of that.
		err = nil
	}
	p.state.set(phaseDraining, "")
	p.log.Info("process draining")
	p.err = errors.Join(err, p.down(context.WithoutCancel(ctx)))
}

// up does everything between listening and ready.
func (p *Process) up(ctx context.Context) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	if err := p.build(ctx); err != nil {
		return err
	}
	for _, m := range p.modules {
		p.run(ctx, m)
	}
	return nil
}

// build makes the modules and puts them behind the listener.
func (p *Process) build(ctx context.Context) error {
	p.state.set(phaseStarting, "building services")
	mux := http.NewServeMux()
	for _, m := range p.o.Modules {
		service, err := m.New(ctx, p.host(m))
		if err != nil {
			return fmt.Errorf("%s cannot be built: %w", m.Name, err)
		}
		service.Register(p.rpc)
		service.Routes(mux)
		p.modules = append(p.modules, &running{name: m.Name, service: service, done: make(chan struct{})})
	}
	if err := p.peers.check(); err != nil {
		return err
	}
	if err := rpc.Warm(p.rpc); err != nil {
		return err
	}
	rpc.Mount(mux, p.rpc)
	rpc.MountHealth(mux, func(ctx context.Context) bool { return p.readiness(ctx).Ready })
	p.app.Store(mux)
	return nil
}

// run starts one module. Its context ends when down says so, not with the process's: the order matters.
func (p *Process) run(ctx context.Context, m *running) {
	ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(m.done)
		err := m.service.Run(ctx)
		switch {
		case err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)):
			p.failed <- fmt.Errorf("%s failed: %w", m.name, err)
		case ctx.Err() == nil:
			p.failed <- fmt.Errorf("%s stopped although nobody asked it to", m.name)
		}
	}()
}

// work is the process's life, ended by its context or by a failure.
func (p *Process) work(ctx context.Context) error {
	p.state.set(phaseUp, "")
	unblocked := time.NewTicker(readyPoll)
	defer unblocked.Stop()
	for !p.readiness(ctx).Ready {
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.failed:
			return err
		case <-unblocked.C:
		}
	}
	close(p.ready)
	p.log.Info("process ready", "url", p.URL(), "modules", len(p.modules), "took", time.Since(p.began).Round(time.Millisecond))
	// What starting needed and working does not, such as migrations, goes back to the system.
	debug.FreeOSMemory()
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.failed:
		return err
	}
}

// down ends the process in reverse, within the drain timeout.
func (p *Process) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.o.Drain)
	defer cancel()
	var errs []error
	for i := len(p.modules) - 1; i >= 0; i-- {
		errs = append(errs, p.end(ctx, p.modules[i]))
	}
	for _, s := range p.servers {
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("requests were still running after %s: %w", p.o.Drain, err), s.Close())
		}
	}
	p.peers.close()
	if p.bus != nil {
		errs = append(errs, p.bus.Close())
	}
	errs = append(errs, p.closePools(ctx), p.o.Telemetry.Shutdown(ctx))
	for {
		select {
		case err := <-p.failed:
			errs = append(errs, err)
		default:
			return errors.Join(errs...)
		}
	}
}

func (p *Process) end(ctx context.Context, m *running) error {
	if m.cancel == nil {
		// Built, but never run.
		return nil
	}
	m.cancel()
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s did not drain within %s", m.name, p.o.Drain)
	}
}

// closePools waits for connections in use, and gives up when ctx ends: a handler that was abandoned may still hold one.
func (p *Process) closePools(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, pool := range p.pools {
			pool.Close()
		}
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return errors.New("database connections were still in use at the end")
	}
}
