// Package embedded runs a Kafka broker inside the process, so that a suite of
// services needs no broker beside it.
//
// It speaks the Kafka protocol on a loopback port; clients cannot tell it from
// a cluster of one broker. It is for one machine: no replicas, no
// authentication, and nothing but loopback is ever listened on.
//
// With a data directory everything survives a restart: topics, messages and
// the committed offsets of groups. Writes are not synced one by one, like
// Apache Kafka's own default: what was acknowledged survives kill -9 of the
// process, because the kernel has it, but the last moments may be missing after
// a power cut. A segment or log whose end was torn is cut to its last whole
// record at the start, with a warning. If offsets were lost with it, groups
// see some messages again. Who cannot bear a loss keeps the messages in
// Postgres and publishes them again.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// cleanInterval is how often compaction and retention are applied.
const cleanInterval = time.Hour

// Options say where the broker listens and where it keeps its data.
type Options struct {
	// DataDir is made if it is missing and is used by one broker at a time.
	// Empty keeps everything in memory.
	DataDir string
	// Addr is host:port on loopback; empty means 127.0.0.1:0, a free port.
	// A broker that clients are to find again after a restart needs a fixed
	// port.
	Addr string
	// Log gets the broker's warnings. Nil discards.
	Log *slog.Logger
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	lock    *os.File
	address string
	close   sync.Once
	closing chan struct{}
	cleaned chan struct{}
}

// Start returns when the broker accepts connections.
func Start(ctx context.Context, opts Options) (*Broker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	port, err := loopbackPort(opts.Addr)
	if err != nil {
		return nil, err
	}
	kopts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.Ports(port),
		kfake.WithLogger(logger{opts.Log}),
		kfake.ClusterID("bullpen-embedded"),
	}
	b := &Broker{closing: make(chan struct{}), cleaned: make(chan struct{})}
	if opts.DataDir != "" {
		if b.lock, err = lockDir(opts.DataDir); err != nil {
			return nil, err
		}
		kopts = append(kopts, kfake.DataDir(opts.DataDir))
	}
	b.cluster, err = kfake.NewCluster(kopts...)
	if err != nil {
		return nil, errors.Join(explain(err, opts, port), b.unlock())
	}
	b.address = b.cluster.ListenAddrs()[0]
	go b.clean()
	return b, nil
}

// clean applies compaction and retention. kfake has a timer for that, but
// starts it only when a topic is made, not when topics are loaded.
func (b *Broker) clean() {
	defer close(b.cleaned)
	tick := time.NewTicker(cleanInterval)
	defer tick.Stop()
	for {
		select {
		case <-b.closing:
			return
		case <-tick.C:
			b.cluster.Compact()
		}
	}
}

// explain puts the two failures that a person can do something about into
// words.
func explain(err error, opts Options, port int) error {
	if _, refused := errors.AsType[*net.OpError](err); refused {
		return fmt.Errorf("embedded broker: port %d cannot be listened on; stop what uses it or choose another: %w", port, err)
	}
	if opts.DataDir != "" {
		return fmt.Errorf("embedded broker: the data in %s cannot be used; move the folder away to start empty: %w", opts.DataDir, err)
	}
	return fmt.Errorf("embedded broker: %w", err)
}

// Brokers are the addresses to give to clients.
func (b *Broker) Brokers() []string { return []string{b.address} }

// Close writes everything to disk and stops. It is idempotent.
func (b *Broker) Close() error {
	var err error
	b.close.Do(func() {
		close(b.closing)
		<-b.cleaned
		b.cluster.Close()
		err = b.unlock()
	})
	return err
}

func loopbackPort(addr string) (int, error) {
	if addr == "" {
		return 0, nil
	}
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, fmt.Errorf("embedded broker: address %q is not host:port: %w", addr, err)
	}
	// The broker always listens on this one address, which is also the one it
	// advertises to clients.
	if host != "127.0.0.1" && host != "localhost" {
		return 0, fmt.Errorf("embedded broker: it has no authentication and listens on 127.0.0.1 only, not on %q", host)
	}
	port, err := strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return 0, fmt.Errorf("embedded broker: %q is not a port", p)
	}
	return port, nil
}

// logger hands on what goes wrong; the rest is the broker's own affair.
type logger struct{ log *slog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	if l.log == nil {
		return
	}
	switch level {
	case kfake.LogLevelError:
		l.log.Error("embedded broker", "problem", fmt.Sprintf(format, args...))
	case kfake.LogLevelWarn:
		l.log.Warn("embedded broker", "problem", fmt.Sprintf(format, args...))
	default:
	}
}
