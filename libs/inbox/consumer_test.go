package inbox_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

func TestConsumer(t *testing.T) {
	t.Parallel()

	t.Run("an event that comes more than once has one effect", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		require.NoError(t, inbox.Check(t.Context(), b.pool))
		twice, last := event("a", "twice"), event("a", "last")
		b.publish(t, twice, twice)
		stop := consume(t, b, inbox.Options{Handler: apply})
		b.awaitEffects(t, 1)
		stop()

		b.publish(t, twice, last)
		consume(t, b, inbox.Options{Handler: apply})
		require.Equal(t, []string{"twice", "last"}, b.awaitEffects(t, 2))
	})

	t.Run("events of one key keep their order", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		const n = 450
		want := make([]string, n)
		msgs := make([]bus.Message, n)
		for i := range n {
			want[i] = fmt.Sprint(i)
			msgs[i] = event("a", want[i])
		}
		b.publish(t, msgs...)
		consume(t, b, inbox.Options{Handler: apply})
		require.Equal(t, want, b.awaitEffects(t, n))
	})

	t.Run("a consumer that dies between commit and offset repeats nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.publish(t, event("a", "one"), event("b", "two"))
		lossy := &bundle{pool: b.pool, bus: forgetful{b.bus}}
		stop := consume(t, lossy, inbox.Options{Handler: apply})
		b.awaitEffects(t, 2)
		stop()

		b.publish(t, event("a", "three"), event("b", "four"))
		consume(t, b, inbox.Options{Handler: apply})
		got := b.awaitEffects(t, 4)
		slices.Sort(got)
		require.Equal(t, []string{"four", "one", "three", "two"}, got)
	})

	t.Run("members of a group share the work and each event has one effect", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		const n = 200
		for range 3 {
			consume(t, b, inbox.Options{Handler: apply})
		}
		for i := range n {
			b.publish(t, event(fmt.Sprint(i), fmt.Sprint(i)))
		}
		got := b.awaitEffects(t, n)
		slices.Sort(got)
		require.Len(t, slices.Compact(got), n)
	})

	t.Run("a handler continues the publisher's trace", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: 1})
		m := event("a", "traced")
		bus.Inject(trace.ContextWithSpanContext(t.Context(), span), &m)
		b.publish(t, m)
		seen := make(chan trace.TraceID, 1)
		consume(t, b, inbox.Options{Handler: func(ctx context.Context, _ pgx.Tx, _ bus.Message) error {
			seen <- trace.SpanContextFromContext(ctx).TraceID()
			return nil
		}})
		require.Equal(t, span.TraceID(), <-seen)
	})
}

// Not parallel: it looks at all goroutines of the process.
func TestStoppedConsumerLeavesNothingRunning(t *testing.T) {
	b := setup(t)
	before := goleak.IgnoreCurrent()
	stop := consume(t, b, inbox.Options{Handler: apply})
	b.publish(t, event("a", "one"))
	b.awaitEffects(t, 1)
	stop()
	require.NoError(t, b.bus.Close())
	goleak.VerifyNone(t, before,
		goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"))
}

// forgetful is a bus whose consumers die before they commit an offset.
type forgetful struct{ bus.Bus }

func (f forgetful) Subscribe(topic, group string) (bus.Subscription, error) {
	s, err := f.Bus.Subscribe(topic, group)
	return forgetfulSubscription{s}, err
}

type forgetfulSubscription struct{ bus.Subscription }

func (forgetfulSubscription) Commit(context.Context, ...bus.Message) error { return nil }

func TestConsumerDatabaseFaults(t *testing.T) {
	t.Parallel()

	t.Run("a lost connection is no attempt at the event", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		var runs atomic.Int32
		consume(t, b, inbox.Options{MaxAttempts: 1, Handler: func(ctx context.Context, tx pgx.Tx, m bus.Message) error {
			if err := apply(ctx, tx, m); err != nil {
				return err
			}
			if runs.Add(1) <= 3 {
				_, err := b.pool.Exec(ctx, "select pg_terminate_backend($1)", tx.Conn().PgConn().PID())
				return err
			}
			return nil
		}})
		b.publish(t, event("a", "one"), event("a", "two"))
		require.Equal(t, []string{"one", "two"}, b.awaitEffects(t, 2))
		dead, err := inbox.ListDead(t.Context(), b.pool, 10)
		require.NoError(t, err)
		require.Empty(t, dead)
	})

	t.Run("a database that is killed again and again loses nothing and doubles nothing", func(t *testing.T) {
		t.Parallel()
		server := pgtest.Server(t)
		require.NoError(t, pg.Migrate(t.Context(), server.DSN(), map[string]fs.FS{"tracker": migrations}))
		pool, err := pg.Open(t.Context(), server.DSN(), "tracker")
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		b := &bundle{pool: pool, bus: openBus(t)}
		consume(t, b, inbox.Options{MaxAttempts: 1, Handler: apply})
		const rounds, events = 3, 60
		for round := range rounds {
			for i := range events {
				b.publish(t, event(fmt.Sprint(i), fmt.Sprintf("%d-%d", round, i)))
				if i == events/2 {
					require.NoError(t, syscall.Kill(server.PID(), syscall.SIGKILL))
				}
			}
			b.awaitEffects(t, (round+1)*events)
		}
		got := b.effects(t)
		slices.Sort(got)
		require.Len(t, slices.Compact(got), rounds*events)
	})
}

func TestSweep(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", migrations)
	const old = 6_000
	_, err := pool.Exec(t.Context(), `insert into inbox (consumer, event_id, received_at)
select 'tracker', gen_random_uuid(), now() - make_interval(days => case when n > $1 then 1 else 31 end)
from generate_series(1, $1 + 1) n`, old)
	require.NoError(t, err)
	n, err := inbox.Sweep(t.Context(), pool, 30*24*time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, old, n)
	_, err = inbox.Sweep(t.Context(), pool, 0)
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}
