package outbox_test

import (
	"context"
	"embed"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

//go:embed testdata/*.sql
var migrations embed.FS

const (
	topic   = "bullpen.test.thing.v1"
	patient = 30 * time.Second
	tick    = 5 * time.Millisecond
)

// bundle is a schema and a broker.
type bundle struct {
	pool   *pgxpool.Pool
	broker *embedded.Broker
	bus    bus.Bus
}

func setup(t testing.TB) *bundle {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	return &bundle{pool: pgtest.Pool(t, "tracker", migrations), broker: broker, bus: open(t, broker)}
}

func open(t testing.TB, broker *embedded.Broker) bus.Bus {
	t.Helper()
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.NoError(t, b.EnsureTopics(t.Context(), bus.Topic{Name: topic, Partitions: 4}))
	return b
}

// relay runs a relay until the test ends or stop is called.
func relay(t testing.TB, pool *pgxpool.Pool, p bus.Publisher, opts outbox.RelayOptions) (r *outbox.Relay, stop func()) {
	t.Helper()
	opts.Source = "/bullpen/tracker"
	if opts.Poll == 0 {
		opts.Poll = 20 * time.Millisecond
	}
	r = outbox.NewRelay(pool, p, opts)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-done)
	}
	t.Cleanup(stop)
	return r, stop
}

func message(key string) outbox.Message {
	return outbox.Message{
		Topic: topic, Key: key, EventID: uuid.Must(uuid.NewV7()), Type: "bullpen.test.thing.v1", Payload: []byte(key),
	}
}

func appendOne(t testing.TB, pool *pgxpool.Pool, m outbox.Message) (id int64) {
	t.Helper()
	require.NoError(t, pg.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
		id, err = outbox.Append(t.Context(), tx, m)
		return err
	}))
	return id
}

// receive reads a topic from its start until n different events have come, and answers every message in order.
func receive(t testing.TB, b bus.Bus, n int) []bus.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	sub, err := b.Subscribe(topic, uuid.NewString())
	require.NoError(t, err)
	defer sub.Close()
	var all []bus.Message
	distinct := map[string]bool{}
	for len(distinct) < n {
		msgs, err := sub.Fetch(ctx, 500)
		require.NoError(t, err, "%d of %d events came", len(distinct), n)
		for _, m := range msgs {
			distinct[m.Headers[outbox.HeaderID]] = true
		}
		all = append(all, msgs...)
	}
	return all
}

func unsent(t testing.TB, pool *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from outbox where sent_at is null").Scan(&n))
	return n
}

func requireAllSent(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	require.Eventually(t, func() bool { return unsent(t, pool) == 0 }, patient, tick)
}

// killRelays ends the connections of all relays on the database and answers how many there were.
func killRelays(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	err = pool.QueryRow(ctx, `select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and application_name = 'bullpen-tracker-relay'`).Scan(&n)
	return n, err
}
