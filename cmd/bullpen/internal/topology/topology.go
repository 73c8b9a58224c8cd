// Package topology runs the suite as it is deployed, one operating system process a service, on this machine.
//
// It is what docker-compose.yml says, without containers: the same binaries, settings by environment alone, a schema and a
// port for each, peers by address, and the secrets of the company with the company service only. Postgres and the broker are
// the caller's. A process may be killed, asked to stop and started again; it comes back on its port.
//
// The idea to hold: nothing here reaches into a process. What it is told, it is told by its environment, and what it does is
// seen over the wire.
package topology

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Services answers the names of all services, each before those that call it.
func Services() []string {
	return []string{"company", "knowledge", "tracker", "notification", "mcphost", "toolregistry", "turn"}
}

// keyBytes is the length of the keys that are made here.
const keyBytes = 32

// Options is an installation, described.
type Options struct {
	// Bin holds the services' binaries; see [Build].
	Bin string
	// Dir is for what the processes write, their logs among it. The caller removes it.
	Dir string
	// DatabaseURL is the Postgres that they share.
	DatabaseURL string
	// Brokers are addresses of Kafka.
	Brokers []string
	// Document is the company document that is applied at start.
	Document string
	// Settings are variables of every process, beside those that the topology makes.
	Settings map[string]string
	// Secrets are variables of the company service alone.
	Secrets map[string]string
}

// Topology is a running installation. Its methods are safe for concurrent use on different services.
type Topology struct {
	processes map[string]*process
	keys      *rpc.Keys
}

// Start starts every service at once, as compose does, and answers when all are ready. When one cannot become ready, all are
// ended and the error has the end of its log. The caller closes the topology.
func Start(ctx context.Context, o Options) (*Topology, error) {
	addresses, err := FreeAddresses(len(Services()))
	if err != nil {
		return nil, err
	}
	document := filepath.Join(o.Dir, "company.yaml")
	if err := os.WriteFile(document, []byte(o.Document), 0o600); err != nil {
		return nil, err
	}
	principal := newKey()
	keys, err := rpc.NewKeys(config.Secret(principal))
	if err != nil {
		return nil, err
	}
	everybody := map[string]string{
		config.EnvName("database-url"):   o.DatabaseURL,
		config.EnvName("kafka-brokers"):  strings.Join(o.Brokers, ","),
		config.EnvName("principal-keys"): principal,
	}
	for i, service := range Services() {
		everybody[config.EnvName("peer."+service+"-url")] = "http://" + addresses[i]
	}
	maps.Copy(everybody, o.Settings)
	t := &Topology{processes: map[string]*process{}, keys: keys}
	for i, service := range Services() {
		own := maps.Clone(everybody)
		own[config.EnvName("listen")] = addresses[i]
		if service == "company" {
			own[config.EnvName("company.document")] = document
			own[config.EnvName("company.sealing-key")] = newKey()
			maps.Copy(own, o.Secrets)
		}
		if service == "mcphost" {
			own[config.EnvName("mcphost.token-key")] = newKey()
		}
		t.processes[service] = &process{
			name: service, binary: filepath.Join(o.Bin, service), address: addresses[i], log: filepath.Join(o.Dir, service+".log"),
			environment: own,
		}
	}
	if err := t.all(func(service string) error { return t.Restart(ctx, service) }); err != nil {
		return nil, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return t, nil
}

func (t *Topology) all(do func(service string) error) error {
	group := new(errgroup.Group)
	for _, service := range Services() {
		group.Go(func() error { return do(service) })
	}
	return group.Wait()
}

// URL answers a service's base URL, which stays the same over restarts.
func (t *Topology) URL(service string) string { return "http://" + t.processes[service].address }

// Client answers a client for a service, whose calls are made as the service `operator` unless a call says [rpc.As].
func (t *Topology) Client(service string) *connect.Client { return t.ClientAs("operator", service) }

// ClientAs answers a client for a service, whose calls are made as the service caller unless a call says [rpc.As].
func (t *Topology) ClientAs(caller, service string) *connect.Client {
	return rpc.NewClient(rpc.HTTPTransport(t.URL(service)), rpc.ClientOptions{Service: caller, Keys: t.keys})
}

// Kill ends a service with SIGKILL and waits until it is gone.
func (t *Topology) Kill(service string) error { return t.processes[service].kill() }

// Stop asks a service to end with SIGTERM and answers its exit code.
func (t *Topology) Stop(ctx context.Context, service string) (int, error) {
	return t.processes[service].stop(ctx)
}

// Launch starts a service that has ended, and does not wait for it.
func (t *Topology) Launch(service string) error { return t.processes[service].launch() }

// Await waits until a service that was launched says that it is ready.
func (t *Topology) Await(ctx context.Context, service string) error {
	return t.processes[service].await(ctx)
}

// Restart launches a service that has ended and waits until it is ready.
func (t *Topology) Restart(ctx context.Context, service string) error {
	if err := t.Launch(service); err != nil {
		return err
	}
	return t.Await(ctx, service)
}

// Log answers the end of what a service has written, over all its runs.
func (t *Topology) Log(service string) string { return t.processes[service].lastWords() }

// Close ends every service: in good order where it goes, those that are called last.
func (t *Topology) Close(ctx context.Context) error {
	var errs []error
	for _, service := range slices.Backward(Services()) {
		if _, err := t.Stop(ctx, service); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", service, err))
		}
	}
	return errors.Join(errs...)
}

func newKey() string {
	raw := make([]byte, keyBytes)
	_, _ = rand.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}
