package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	// requestTimeout bounds one request to a broker that has gone silent.
	// kafka-go tells the broker half of it, so that the answer can still come.
	requestTimeout = 10 * time.Second
	dialTimeout    = 3 * time.Second
	// metadataTTL bounds how long a moved leader goes unnoticed.
	metadataTTL = 2 * time.Second
)

// ErrClosed is what calls answer once the bus or the subscription is closed.
var ErrClosed = errors.New("bus: closed")

// client is the Bus over kafka-go.
type client struct {
	cfg       Config
	log       *slog.Logger
	sockets   *sockets
	transport *kafka.Transport
	kafka     *kafka.Client
	hash      *kafka.Hash
	link      *link
	// stop ends the transport's own goroutines.
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	subs   map[*subscription]struct{}
}

var _ Bus = (*client)(nil)

// Open makes a bus. It does no I/O: the first call that needs a broker
// connects, and a broker that is away now may come later.
func Open(cfg Config) (Bus, error) {
	if len(cfg.Brokers) == 0 {
		return nil, errors.New("bus: no broker address was given")
	}
	for _, b := range cfg.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return nil, fmt.Errorf("bus: broker address %q is not host:port: %w", b, err)
		}
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	open := newSockets()
	transport := &kafka.Transport{
		Dial:        open.dial,
		DialTimeout: dialTimeout,
		MetadataTTL: metadataTTL,
		ClientID:    cfg.ClientID,
		Context:     ctx,
	}
	return &client{
		cfg:       cfg,
		log:       log,
		sockets:   open,
		transport: transport,
		kafka:     &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: requestTimeout, Transport: transport},
		hash:      &kafka.Hash{},
		link:      newLink(log.With("use", "call")),
		stop:      stop,
		subs:      make(map[*subscription]struct{}),
	}, nil
}

// Ping asks a broker for its API versions: unlike metadata, these are never
// answered from a cache.
func (c *client) Ping(ctx context.Context) error {
	if err := c.usable(); err != nil {
		return err
	}
	res, err := c.kafka.ApiVersions(ctx, &kafka.ApiVersionsRequest{})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return fmt.Errorf("no broker of %v answers: %w", c.cfg.Brokers, err)
	}
	return nil
}

func (c *client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	subs := make([]*subscription, 0, len(c.subs))
	for s := range c.subs {
		subs = append(subs, s)
	}
	c.mu.Unlock()

	// All at once: each may have to wait for its coordinator.
	var wg sync.WaitGroup
	for _, s := range subs {
		wg.Go(func() { _ = s.Close() })
	}
	wg.Wait()
	c.stop()
	c.transport.CloseIdleConnections()
	c.sockets.closeAll()
	return nil
}

func (c *client) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return nil
}

// topic answers what the transport's cache knows of a topic. A topic that is
// not there is an error of kafka-go that counts as temporary.
func (c *client) topic(ctx context.Context, name string) (kafka.Topic, error) {
	meta, err := c.kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name}})
	if err != nil {
		return kafka.Topic{}, err
	}
	t := meta.Topics[0]
	if t.Error != nil {
		return t, fmt.Errorf("topic %s: %w", name, t.Error)
	}
	return t, nil
}
