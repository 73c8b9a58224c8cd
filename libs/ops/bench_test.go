package ops_test

import (
	"context"
	"io/fs"
	"runtime"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

const insertEffect = "insert into effects (operation) values ($1)"

// BenchmarkWrite measures writes of 8 callers on a durable server. The first is the floor that the others are read
// against: compare within one run only.
func BenchmarkWrite(b *testing.B) {
	pool := durable(b)
	for _, bench := range []struct {
		name  string
		write func(ctx context.Context) error
	}{
		{"one row", func(ctx context.Context) error {
			_, err := pool.Exec(ctx, insertEffect, "floor")
			return err
		}},
		{"one row in an operation", func(ctx context.Context) error {
			var r toolv1.Receipt
			_, err := ops.Do(ctx, pool, operation(uuid.NewString()), &r, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, insertEffect, "do")
				return err
			})
			return err
		}},
		{"one row in an operation, as a batch", func(ctx context.Context) error {
			var r toolv1.Receipt
			_, err := ops.DoBatch(ctx, pool, operation(uuid.NewString()), &r,
				func(context.Context, pgx.Tx) (*pgx.Batch, error) {
					var batch pgx.Batch
					batch.Queue(insertEffect, "batch")
					return &batch, nil
				})
			return err
		}},
		{"one row in an operation that is never repeated", func(ctx context.Context) error {
			var r toolv1.Receipt
			_, err := ops.DoBatch(ctx, pool, operation(""), &r, func(context.Context, pgx.Tx) (*pgx.Batch, error) {
				var batch pgx.Batch
				batch.Queue(insertEffect, "minted")
				return &batch, nil
			})
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					require.NoError(b, bench.write(b.Context()))
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
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
