package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"connectrpc.com/connect/v2"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// peers finds the way to a service: into this process, or to an address.
type peers struct {
	keys       *rpc.Keys
	tracer     trace.TracerProvider
	propagator propagation.TextMapPropagator
	// declared is what each module says it calls.
	declared map[string][]string

	mu         sync.Mutex
	transports map[string]connect.Transport
	missing    []error
	checked    bool
}

func newPeers(o Options, server *connect.Server) *peers {
	p := &peers{
		keys:       o.keys,
		tracer:     o.Telemetry.TracerProvider,
		propagator: o.Telemetry.Propagator,
		declared:   map[string][]string{},
		transports: map[string]connect.Transport{},
	}
	for service, url := range o.Peers {
		if url != "" {
			p.transports[service] = rpc.HTTPTransport(url)
		}
	}
	inProcess := rpc.InProcess(server)
	for _, m := range o.Modules {
		p.declared[m.Name] = m.Peers
		p.transports[m.Name] = inProcess
	}
	return p
}

func (p *peers) client(caller, service string) *connect.Client {
	transport, err := p.transport(caller, service)
	if err != nil {
		transport = nowhere{err}
	}
	return rpc.NewClient(transport, rpc.ClientOptions{Service: caller, Keys: p.keys, TracerProvider: p.tracer, Propagator: p.propagator})
}

func (p *peers) transport(caller, service string) (connect.Transport, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	transport, known := p.transports[service]
	var err error
	switch declared, isModule := p.declared[caller]; {
	case isModule && !slices.Contains(declared, service):
		err = fmt.Errorf("%s calls %s but does not name it in Module.Peers", caller, service)
	case !known:
		name := peerFlag(service)
		err = fmt.Errorf("%s needs to know where %s is: give -%s or %s", caller, service, name, config.EnvName(name))
	default:
		return transport, nil
	}
	if !p.checked {
		p.missing = append(p.missing, err)
	}
	return nil, err
}

// check answers what clients were asked for in vain so far.
func (p *peers) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = true
	return errors.Join(p.missing...)
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.transports {
		if remote, ok := t.(*rpc.Transport); ok {
			remote.Close()
		}
	}
}

// nowhere is the transport to a service that cannot be found.
type nowhere struct{ err error }

// NewClientStream implements [connect.Transport].
func (n nowhere) NewClientStream(context.Context, connect.Spec) (connect.ClientStream, error) {
	return nil, fault.New(fault.Unavailable, "%s", n.err)
}

func peerFlag(service string) string { return "peer." + service + "-url" }
