package inbox_test

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
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

//go:embed testdata/*.sql
var migrations embed.FS

const (
	topic   = "bullpen.test.thing.v1"
	group   = "tracker"
	patient = 30 * time.Second
	tick    = 5 * time.Millisecond
)

// bundle is a schema and a broker.
type bundle struct {
	pool *pgxpool.Pool
	bus  bus.Bus
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return &bundle{pool: pgtest.Pool(t, "tracker", migrations), bus: openBus(t)}
}

func openBus(t testing.TB) bus.Bus {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.NoError(t, b.EnsureTopics(t.Context(), bus.Topic{Name: topic, Partitions: 2}))
	return b
}

// consume runs a consumer until the test ends or stop is called.
func consume(t testing.TB, b *bundle, opts inbox.Options) (stop func()) {
	t.Helper()
	opts.Topic, opts.Group = topic, group
	c := inbox.NewConsumer(b.pool, b.bus, opts)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
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
	return stop
}

// event is a message as the outbox publishes it.
func event(key, value string) bus.Message {
	return bus.Message{
		Topic: topic, Key: key, Value: []byte(value), Headers: map[string]string{"ce_id": uuid.NewString()},
	}
}

// apply is the handler of most tests.
func apply(ctx context.Context, tx pgx.Tx, m bus.Message) error {
	_, err := tx.Exec(ctx, "insert into effects (key, value) values ($1, $2)", m.Key, string(m.Value))
	return err
}

func (b *bundle) effects(t testing.TB) (values []string) {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), "select value from effects order by id")
	require.NoError(t, err)
	values, err = pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return values
}

// awaitEffects waits until n effects are there and answers them in order.
func (b *bundle) awaitEffects(t testing.TB, n int) []string {
	t.Helper()
	require.Eventually(t, func() bool {
		var have int
		err := b.pool.QueryRow(t.Context(), "select count(*) from effects").Scan(&have)
		return err == nil && have >= n
	}, patient, tick)
	return b.effects(t)
}

func (b *bundle) publish(t testing.TB, msgs ...bus.Message) {
	t.Helper()
	require.NoError(t, b.bus.Publish(t.Context(), msgs...))
}
