package bench

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/pg"
)

// floorClients is the concurrency at which floors are taken: beyond it, two cores give no more.
const floorClients = 8

// commitRate answers how many single-row inserts a second the database commits at floorClients connections.
func commitRate(ctx context.Context, dsn string, during time.Duration) (float64, error) {
	if err := pg.EnsureSchemas(ctx, dsn, "floor"); err != nil {
		return 0, err
	}
	pool, err := pg.Open(ctx, dsn, "floor")
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `create table if not exists rows (id bigint generated always as identity primary key, body bytea not null)`); err != nil {
		return 0, err
	}
	return rate(ctx, during, floorClients, func(ctx context.Context) error { return insertRow(ctx, pool) })
}

func insertRow(ctx context.Context, pool *pgxpool.Pool) error {
	body := make([]byte, 200)
	if _, err := rand.Read(body); err != nil {
		return err
	}
	_, err := pool.Exec(ctx, `insert into rows (body) values ($1)`, body)
	return err
}

// rate runs call from so many clients, each as soon as its last one is done, and answers how many succeeded a second.
func rate(ctx context.Context, during time.Duration, clients int, call func(context.Context) error) (float64, error) {
	bounded, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var done atomic.Int64
	var failure atomic.Pointer[error]
	var group sync.WaitGroup
	began := time.Now()
	for range clients {
		group.Go(func() {
			for bounded.Err() == nil {
				switch err := call(bounded); {
				case err == nil:
					done.Add(1)
				case bounded.Err() == nil:
					failure.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), ctx.Err()
}
