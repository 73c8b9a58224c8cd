package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
)

const (
	defaultMaxAttempts = 10
	// batchMessages is how many messages share a transaction when they are waiting anyway.
	batchMessages = 200
	// backoffMin and backoffMax bound the wait between two attempts, which doubles.
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
)

// Options say what a consumer reads and who takes it in.
type Options struct {
	// Topic is read, and its twin with [DeadSuffix] written.
	Topic string
	// Group is the consumer group on the broker and the consumer's name in the inbox table. Two kinds of consumer of one
	// schema need two names.
	Group string
	// Handler takes each event in.
	Handler Handler
	// Log is told of failures and dead letters. Nil discards.
	Log *slog.Logger
	// Metrics takes the consumer's counters; nil keeps them unregistered.
	Metrics prometheus.Registerer
	// Tracer makes a span for each event, in the publisher's trace; nil makes none.
	Tracer trace.TracerProvider
	// MaxAttempts is how often one event is tried before it is a dead letter; 0 means 10, which takes about half a
	// minute. Attempts that a lost database ended do not count.
	MaxAttempts int
}

// Consumer is one member of a consumer group.
type Consumer struct {
	pool    *pgxpool.Pool
	bus     bus.Bus
	opts    Options
	metrics *metrics
	tracer  trace.Tracer
}

// NewConsumer makes a consumer; [Consumer.Run] does the work.
func NewConsumer(pool *pgxpool.Pool, b bus.Bus, opts Options) *Consumer {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.MaxAttempts == 0 {
		opts.MaxAttempts = defaultMaxAttempts
	}
	if opts.Tracer == nil {
		opts.Tracer = noop.NewTracerProvider()
	}
	opts.Log = opts.Log.With("topic", opts.Topic, "group", opts.Group)
	return &Consumer{
		pool: pool, bus: b, opts: opts, metrics: newMetrics(opts),
		tracer: opts.Tracer.Tracer("github.com/bullpenhq/bullpen/libs/inbox"),
	}
}

// Run takes events in until ctx ends, and answers nil then: the batch in hand is committed or comes again. It answers an
// error only when it cannot begin. One consumer works one batch at a time; run more of them, in one process or in many,
// to share the partitions.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.ensureDeadTopic(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	sub, err := c.bus.Subscribe(c.opts.Topic, c.opts.Group)
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", c.opts.Topic, err)
	}
	defer sub.Close()
	for {
		msgs, err := sub.Fetch(ctx, batchMessages)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if err := c.take(ctx, msgs); err != nil {
			return ignoreEnd(ctx, err)
		}
		if err := sub.Commit(ctx, msgs...); err != nil && ctx.Err() == nil {
			// The events come again and are known.
			c.opts.Log.Warn("offsets are not committed", "error", err)
		}
	}
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// take takes a batch in, all at once or one by one. It fails only when ctx ends.
func (c *Consumer) take(ctx context.Context, msgs []bus.Message) error {
	err := c.attempt(ctx, msgs)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if len(msgs) > 1 {
		c.opts.Log.Info("a batch failed, going on one by one", "events", len(msgs), "error", err)
	}
	for i := range msgs {
		if err := c.insist(ctx, msgs[i]); err != nil {
			return err
		}
	}
	return nil
}

// insist tries one message until it is taken in or a dead letter. It fails only when ctx ends.
func (c *Consumer) insist(ctx context.Context, m bus.Message) error {
	backoff := backoffMin
	for attempts := 1; ; {
		err := c.attempt(ctx, []bus.Message{m})
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		c.metrics.retries.Inc()
		transient := pg.Transient(err)
		if !transient && (hopeless(err) || attempts >= c.opts.MaxAttempts) {
			err = c.bury(ctx, m, err, attempts)
			if err == nil || ctx.Err() != nil {
				return ctx.Err()
			}
			// The dead letter itself could not be written: nothing is lost as long as we do not go on.
			transient = true
		}
		if !transient {
			attempts++
		}
		c.opts.Log.Warn("an event is not taken in, trying again", "event_id", m.Headers[headerEventID],
			"error", err, "attempts", attempts, "in", backoff)
		if !sleep(ctx, backoff/2+rand.N(backoff/2)) {
			return ctx.Err()
		}
		backoff = min(2*backoff, backoffMax)
	}
}

// hopeless reports whether the handler has claimed that the event can never be taken in.
func hopeless(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Class == fault.Invalid
}

// attempt takes messages in with one transaction.
func (c *Consumer) attempt(ctx context.Context, msgs []bus.Message) error {
	ids := make([]uuid.UUID, len(msgs))
	for i, m := range msgs {
		ids[i], _ = eventID(m)
	}
	handled := 0
	err := pg.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		fresh, err := receive(ctx, tx, c.opts.Group, ids)
		if err != nil {
			return err
		}
		for i, m := range msgs {
			if !fresh[ids[i]] {
				continue
			}
			// The same event may stand in one batch twice.
			delete(fresh, ids[i])
			if _, ok := eventID(m); !ok {
				return fault.New(fault.Invalid, "The message has no readable %s header.", headerEventID)
			}
			if err := c.handle(ctx, tx, m); err != nil {
				return err
			}
			handled++
		}
		return nil
	})
	if err == nil {
		c.metrics.handled.Add(float64(handled))
		c.metrics.known.Add(float64(len(msgs) - handled))
	}
	return err
}

// handle runs the handler in the publisher's trace. A panic is the handler's failure like any other: it must not end
// the process that all consumers share.
func (c *Consumer) handle(ctx context.Context, tx pgx.Tx, m bus.Message) (err error) {
	ctx, span := c.tracer.Start(bus.Extract(ctx, m), "consume "+m.Topic, trace.WithSpanKind(trace.SpanKindConsumer))
	defer span.End()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		if err != nil {
			span.RecordError(err)
		}
	}()
	return c.opts.Handler(ctx, tx, m)
}

// ensureDeadTopic waits for a broker that is away.
func (c *Consumer) ensureDeadTopic(ctx context.Context) error {
	backoff := backoffMin
	for {
		err := c.bus.EnsureTopics(ctx, bus.Topic{Name: c.opts.Topic + DeadSuffix, Partitions: 1})
		if f, ok := fault.As(err); err == nil || (ok && f.Class != fault.Unavailable) || errors.Is(err, bus.ErrClosed) {
			return err
		}
		c.opts.Log.Warn("the topic for dead letters cannot be made, trying again", "error", err, "in", backoff)
		if !sleep(ctx, backoff) {
			return ctx.Err()
		}
		backoff = min(2*backoff, backoffMax)
	}
}

// sleep waits for d and answers false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
