package outbox_test

import (
	"context"
	"io/fs"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

// BenchmarkOutbox measures 8 writers of 1 KB events on a durable server and broker. The first is the floor that the
// others are read against: compare within one run only.
func BenchmarkOutbox(b *testing.B) {
	pool := durable(b)
	payload := make([]byte, 1<<10)
	for _, bench := range []struct {
		name    string
		write   func(ctx context.Context) error
		publish bool
	}{
		{name: "one row", write: func(ctx context.Context) error {
			_, err := pool.Exec(ctx, "insert into aggregates (key) values (gen_random_uuid())")
			return err
		}},
		{name: "append", write: func(ctx context.Context) error { return appendPayload(ctx, pool, payload) }},
		{name: "append and relay", publish: true, write: func(ctx context.Context) error {
			return appendPayload(ctx, pool, payload)
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			_, err := pool.Exec(b.Context(), "truncate outbox")
			require.NoError(b, err)
			wake := func() {}
			if bench.publish {
				broker, err := embedded.Start(b.Context(), embedded.Options{DataDir: b.TempDir()})
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, broker.Close()) })
				r, _ := relay(b, pool, open(b, broker), outbox.RelayOptions{})
				wake = r.Wake
			}
			b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					require.NoError(b, bench.write(b.Context()))
					wake()
				}
			})
			if bench.publish {
				requireAllSent(b, pool)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func appendPayload(ctx context.Context, pool *pgxpool.Pool, payload []byte) error {
	m := message("key")
	m.Payload = payload
	var batch pgx.Batch
	if _, err := outbox.Queue(ctx, &batch, m); err != nil {
		return err
	}
	return pool.SendBatch(ctx, &batch).Close()
}

// durable answers a pool on a server that keeps its promises, unlike the tests' own.
func durable(b *testing.B) *pgxpool.Pool {
	b.Helper()
	s, err := pgserver.Start(b.Context(), pgserver.Options{DataDir: pgtest.Cluster(b)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Stop(context.WithoutCancel(b.Context()))) })
	require.NoError(b, pg.Migrate(b.Context(), s.DSN(), map[string]fs.FS{"tracker": migrations}))
	pool, err := pg.Open(b.Context(), s.DSN(), "tracker")
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	return pool
}
