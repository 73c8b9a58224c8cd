package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

// publisher puts something in the way of a real one.
type publisher func(ctx context.Context, msgs ...bus.Message) error

func (p publisher) Publish(ctx context.Context, msgs ...bus.Message) error { return p(ctx, msgs...) }

func TestRelayOrder(t *testing.T) {
	t.Parallel()

	t.Run("an event that commits after its successor is not lost", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		early, err := b.pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = early.Rollback(t.Context()) }()
		first, err := outbox.Append(t.Context(), early, message("early"))
		require.NoError(t, err)
		second := appendOne(t, b.pool, message("late"))
		require.Less(t, first, second)

		r, _ := relay(t, b.pool, b.bus, outbox.RelayOptions{Poll: time.Hour})
		require.Equal(t, "late", receive(t, b.bus, 1)[0].Key)
		requireAllSent(t, b.pool)
		require.NoError(t, early.Commit(t.Context()))
		r.Wake()
		receive(t, b.bus, 2)
		requireAllSent(t, b.pool)
	})

	t.Run("writers, killed connections and a relay lose nothing and keep the order of each key", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		const writers, events, keys = 6, 120, 10
		r, _ := relay(t, b.pool, b.bus, outbox.RelayOptions{})
		var group errgroup.Group
		for w := range writers {
			random := rand.New(rand.NewPCG(7, uint64(w)))
			group.Go(func() error {
				for n := range events {
					// Several aggregates in one transaction make ids and commits disagree between keys.
					if err := write(t.Context(), b, random.Perm(keys)[:1+random.IntN(3)], n%5 == 0); err != nil {
						return err
					}
					r.Wake()
				}
				return nil
			})
		}
		killing, stop := context.WithCancel(t.Context())
		killed := make(chan int, 1)
		go func() {
			total := 0
			for killing.Err() == nil {
				n, _ := killRelays(killing, b.pool)
				total += n
			}
			killed <- total
		}()
		require.NoError(t, group.Wait())
		stop()
		require.Positive(t, <-killed)

		var written int
		require.NoError(t, b.pool.QueryRow(t.Context(), "select count(*) from outbox").Scan(&written))
		seen := map[string]bool{}
		versions := map[string]int{}
		for _, m := range receive(t, b.bus, written) {
			if id := m.Headers[outbox.HeaderID]; !seen[id] {
				seen[id] = true
				version, err := strconv.Atoi(string(m.Value))
				require.NoError(t, err)
				require.Equal(t, versions[m.Key]+1, version, "key %s", m.Key)
				versions[m.Key] = version
			}
		}
		require.Len(t, seen, written)
		requireAllSent(t, b.pool)
	})
}

// write moves aggregates on by one version each, with an event whose value is the version.
func write(ctx context.Context, b *bundle, keys []int, rollBack bool) error {
	errRolledBack := errors.New("rolled back")
	err := pg.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		for _, k := range slices.Sorted(slices.Values(keys)) {
			m := message(fmt.Sprintf("key-%d", k))
			var version int
			if err := tx.QueryRow(ctx, `insert into aggregates as a (key, version) values ($1, 1)
on conflict (key) do update set version = a.version + 1 returning version`, m.Key).Scan(&version); err != nil {
				return err
			}
			m.Payload = []byte(strconv.Itoa(version))
			if _, err := outbox.Append(ctx, tx, m); err != nil {
				return err
			}
		}
		if rollBack {
			return errRolledBack
		}
		return nil
	})
	if errors.Is(err, errRolledBack) {
		return nil
	}
	return err
}

func TestRelayFailures(t *testing.T) {
	t.Parallel()

	t.Run("a broker that is away is waited for", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		data := filepath.Join(t.TempDir(), "broker")
		broker, err := embedded.Start(t.Context(), embedded.Options{DataDir: data})
		require.NoError(t, err)
		address := broker.Brokers()[0]
		b := open(t, broker)
		relay(t, pool, b, outbox.RelayOptions{})
		appendOne(t, pool, message("before"))
		requireAllSent(t, pool)

		require.NoError(t, broker.Close())
		appendOne(t, pool, message("meanwhile"))
		require.Equal(t, 1, unsent(t, pool))

		broker, err = embedded.Start(t.Context(), embedded.Options{DataDir: data, Addr: address})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, broker.Close()) })
		requireAllSent(t, pool)
		receive(t, b, 2)
	})

	t.Run("of two relays one publishes, and the other takes over", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		var mu sync.Mutex
		published := map[string]int{}
		counting := func(name string) publisher {
			return func(ctx context.Context, msgs ...bus.Message) error {
				mu.Lock()
				published[name] += len(msgs)
				mu.Unlock()
				return b.bus.Publish(ctx, msgs...)
			}
		}
		counts := func() (int, int) {
			mu.Lock()
			defer mu.Unlock()
			return published["first"], published["second"]
		}
		_, stopFirst := relay(t, b.pool, counting("first"), outbox.RelayOptions{})
		appendOne(t, b.pool, message("lead"))
		requireAllSent(t, b.pool)
		relay(t, b.pool, counting("second"), outbox.RelayOptions{})
		require.Eventually(t, func() bool {
			var n int
			err := b.pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity
where datname = current_database() and application_name = 'bullpen-tracker-relay'`).Scan(&n)
			return err == nil && n == 2
		}, patient, tick)
		for range 20 {
			appendOne(t, b.pool, message("more"))
		}
		requireAllSent(t, b.pool)
		first, second := counts()
		require.Equal(t, 21, first)
		require.Zero(t, second)

		stopFirst()
		appendOne(t, b.pool, message("after"))
		requireAllSent(t, b.pool)
		_, second = counts()
		require.Equal(t, 1, second)
	})

	t.Run("exactly what was published is marked", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		ids := []int64{
			appendOne(t, b.pool, message("a")), appendOne(t, b.pool, message("b")), appendOne(t, b.pool, message("c")),
		}
		block := make(chan struct{})
		var calls int
		relay(t, b.pool, publisher(func(ctx context.Context, msgs ...bus.Message) error {
			if calls++; calls > 1 {
				<-block
				return b.bus.Publish(ctx, msgs...)
			}
			return &bus.PublishError{
				Failures: []bus.Failure{{Index: 1, Topic: topic, Key: "b", Err: errors.New("the partition has no leader")}},
				Total:    len(msgs),
			}
		}), outbox.RelayOptions{})
		require.Eventually(t, func() bool { return unsent(t, b.pool) == 1 }, patient, tick)
		var left int64
		require.NoError(t, b.pool.QueryRow(t.Context(), "select id from outbox where sent_at is null").Scan(&left))
		require.Equal(t, ids[1], left)
		close(block)
		requireAllSent(t, b.pool)
	})

	t.Run("what was published is marked even when the relay is told to stop", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		appendOne(t, b.pool, message("last"))
		ctx, cancel := context.WithCancel(t.Context())
		r := outbox.NewRelay(b.pool, publisher(func(ctx context.Context, msgs ...bus.Message) error {
			defer cancel()
			return b.bus.Publish(ctx, msgs...)
		}), outbox.RelayOptions{})
		require.NoError(t, r.Run(ctx))
		require.Zero(t, unsent(t, b.pool))
	})
}

// Not parallel: it looks at all goroutines of the process.
func TestStoppedRelayLeavesNothingRunning(t *testing.T) {
	pool := pgtest.Pool(t, "tracker", migrations)
	before := goleak.IgnoreCurrent()
	_, stop := relay(t, pool, publisher(func(context.Context, ...bus.Message) error { return nil }), outbox.RelayOptions{})
	appendOne(t, pool, message("one"))
	requireAllSent(t, pool)
	stop()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"))
}

func TestRetention(t *testing.T) {
	t.Parallel()

	t.Run("sent rows go when their time is over, unsent ones never", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		for range 3 {
			appendOne(t, b.pool, message("old"))
		}
		require.NoError(t, b.bus.Publish(t.Context(), bus.Message{Topic: topic, Key: "other"}), "the broker has not lost the topic")
		_, err := b.pool.Exec(t.Context(), "update outbox set sent_at = now() - interval '8 days'")
		require.NoError(t, err)
		recent := appendOne(t, b.pool, message("recent"))
		_, err = b.pool.Exec(t.Context(), "update outbox set sent_at = now() - interval '6 days' where id = $1", recent)
		require.NoError(t, err)
		stuck := appendOne(t, b.pool, message("stuck"))
		_, err = b.pool.Exec(t.Context(), "update outbox set created_at = now() - interval '9 days' where id = $1", stuck)
		require.NoError(t, err)

		relay(t, b.pool, b.bus, outbox.RelayOptions{})
		require.Eventually(t, func() bool {
			var n int
			err := b.pool.QueryRow(t.Context(), "select count(*) from outbox where sent_at is not null").Scan(&n)
			return err == nil && n == 2
		}, patient, tick)
		all, err := b.bus.ReadAll(t.Context(), topic)
		require.NoError(t, err)
		require.Len(t, all, 2, "the other message, and the one that was stuck")
	})

	t.Run("a relay that starts on a wiped broker publishes everything again", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		sent := map[string]bool{}
		for range 5 {
			m := message("item-1")
			sent[m.EventID.String()] = true
			appendOne(t, b.pool, m)
		}
		_, stop := relay(t, b.pool, b.bus, outbox.RelayOptions{})
		requireAllSent(t, b.pool)
		stop()

		wiped := setup(t)
		relay(t, b.pool, wiped.bus, outbox.RelayOptions{})
		for _, m := range receive(t, wiped.bus, len(sent)) {
			require.True(t, sent[m.Headers[outbox.HeaderID]])
		}
		requireAllSent(t, b.pool)
	})

	t.Run("what is asked for is published again, under the same ids and in the same order", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		sent := make([]uuid.UUID, 5)
		for i := range sent {
			m := message("item-1")
			sent[i] = m.EventID
			appendOne(t, b.pool, m)
		}
		_, stop := relay(t, b.pool, b.bus, outbox.RelayOptions{})
		requireAllSent(t, b.pool)
		stop()

		n, err := outbox.Republish(t.Context(), b.pool, time.Now().Add(-time.Hour))
		require.NoError(t, err)
		require.EqualValues(t, len(sent), n)
		relay(t, b.pool, b.bus, outbox.RelayOptions{})
		requireAllSent(t, b.pool)
		all, err := b.bus.ReadAll(t.Context(), topic)
		require.NoError(t, err)
		require.Len(t, all, 2*len(sent))
		for i, m := range all {
			require.Equal(t, sent[i%len(sent)].String(), m.Headers[outbox.HeaderID])
		}
		n, err = outbox.Republish(t.Context(), b.pool, time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Zero(t, n)
	})
}
