package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpenhq/bullpen/libs/bus"
)

const (
	defaultPoll = 200 * time.Millisecond
	defaultKeep = 7 * 24 * time.Hour
	// standbyPolls is how many polls a relay waits between two tries for the lock of another one.
	standbyPolls = 5
	// sweepEvery is the time between two looks for rows that have been kept long enough.
	sweepEvery = time.Minute
	// backoffMin and backoffMax bound the wait after a failure of the broker or the database.
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
	// markTimeout is what the marking of published rows gets after the relay was told to stop: without it they would be
	// published again.
	markTimeout = 5 * time.Second

	// tryLock is per database and schema. The lock belongs to the connection and ends with it.
	tryLock = `select pg_try_advisory_lock(hashtextextended('bullpen.outbox.' || current_schema(), 0))`
)

// RelayOptions tune a relay; the zero value is sound but for Source.
type RelayOptions struct {
	// Source is the CloudEvents source of everything published, such as "/bullpen/tracker".
	Source string
	// Log is told when publishing stops working and when it works again. Nil discards.
	Log *slog.Logger
	// Metrics takes the relay's counters; nil keeps them unregistered.
	Metrics prometheus.Registerer
	// Poll is how often the table is looked at without a Wake; 0 means 200 ms.
	Poll time.Duration
	// Keep is how long a sent row stays, for [Republish]; 0 means 7 days.
	Keep time.Duration
	// Now is the clock that Keep is measured with; nil means time.Now.
	Now func() time.Time
}

// Relay publishes one schema's outbox.
type Relay struct {
	pool      *pgxpool.Pool
	publisher bus.Publisher
	opts      RelayOptions
	metrics   *metrics
	wake      chan struct{}
}

// NewRelay makes a relay; [Relay.Run] does the work. It takes a connection of its own outside the pool.
func NewRelay(pool *pgxpool.Pool, publisher bus.Publisher, opts RelayOptions) *Relay {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Poll == 0 {
		opts.Poll = defaultPoll
	}
	if opts.Keep == 0 {
		opts.Keep = defaultKeep
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Relay{
		pool: pool, publisher: publisher, opts: opts, metrics: newMetrics(opts.Metrics), wake: make(chan struct{}, 1),
	}
}

// Wake makes the relay look at the table now. Call it after a commit that appended. It never blocks, and calls that come
// close together are one.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends, and answers nil then. While another relay holds the schema it stands by. Failures of the
// database and of the broker are waited out: it never gives up, and never skips a message.
func (r *Relay) Run(ctx context.Context) error {
	backoff := backoffMin
	for {
		worked, err := r.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if worked {
			backoff = backoffMin
		}
		if err != nil {
			r.metrics.failures.Inc()
			r.opts.Log.Warn("outbox relay stopped, trying again", "error", err, "in", backoff)
		}
		if !sleep(ctx, jitter(backoff)) {
			return nil
		}
		backoff = min(2*backoff, backoffMax)
	}
}

// session works on one connection until that fails or ctx ends; worked tells whether anything came of it.
func (r *Relay) session(ctx context.Context) (worked bool, err error) {
	cfg := r.pool.Config().ConnConfig
	cfg.RuntimeParams["application_name"] += "-relay"
	// A machine that vanishes from the network must not hold the lock for the hours that TCP would wait.
	cfg.RuntimeParams["tcp_keepalives_idle"] = "10"
	cfg.RuntimeParams["tcp_keepalives_interval"] = "5"
	cfg.RuntimeParams["tcp_keepalives_count"] = "3"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if err := r.lead(ctx, conn); err != nil {
		return false, err
	}
	r.metrics.leading.Set(1)
	defer r.metrics.leading.Set(0)
	if err := r.restore(ctx, conn); err != nil {
		return false, err
	}

	var swept time.Time
	for {
		full, err := r.round(ctx, conn)
		if err != nil {
			return worked, err
		}
		worked = true
		if full {
			continue
		}
		if now := r.opts.Now(); now.Sub(swept) >= sweepEvery {
			if err := r.sweep(ctx, conn, now.Add(-r.opts.Keep)); err != nil {
				return worked, err
			}
			swept = now
		}
		select {
		case <-ctx.Done():
			return worked, ctx.Err()
		case <-r.wake:
		case <-time.After(r.opts.Poll):
		}
	}
}

// lead waits until this connection holds the schema's lock. It polls, because a statement that waits for the lock would
// hold back vacuum for as long.
func (r *Relay) lead(ctx context.Context, conn *pgx.Conn) error {
	for {
		var held bool
		if err := conn.QueryRow(ctx, tryLock).Scan(&held); err != nil {
			return fmt.Errorf("lock the outbox: %w", err)
		}
		if held {
			return nil
		}
		if !sleep(ctx, standbyPolls*r.opts.Poll) {
			return ctx.Err()
		}
	}
}

// round publishes one batch and marks it; full tells that there may be more at once.
func (r *Relay) round(ctx context.Context, conn *pgx.Conn) (full bool, err error) {
	batch, err := unsent(ctx, conn)
	if err != nil || len(batch.ids) == 0 {
		return false, err
	}
	msgs := make([]bus.Message, len(batch.rows))
	for i, row := range batch.rows {
		msgs[i] = row.message(r.opts.Source)
	}
	err = r.publisher.Publish(ctx, msgs...)
	sent := batch.ids
	if err != nil {
		// What is named as failed may be missing, and everything else is durable.
		sent = nil
		if partial, ok := errors.AsType[*bus.PublishError](err); ok {
			sent = without(batch.ids, partial)
		}
		err = fmt.Errorf("publish: %w", err)
	}
	if len(sent) == 0 {
		return false, err
	}
	mark, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	if _, marked := conn.Exec(mark, markSent, sent); marked != nil {
		return false, errors.Join(err, fmt.Errorf("mark as sent: %w", marked))
	}
	r.metrics.published.Add(float64(len(sent)))
	r.metrics.observe(batch, r.opts.Now())
	return err == nil && batch.full, err
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

// jitter spreads d over the half below it, so that relays do not come back in step.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
