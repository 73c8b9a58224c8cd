package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker/internal/events"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// BenchmarkWrite measures writes of 8 callers on a durable server. The first is the floor that the others are read against: compare within
// one run only. A program without an operation id saves the round trip that looks for the first answer.
func BenchmarkWrite(b *testing.B) {
	pool := durable(b)
	s, err := store.Open(b.Context(), pool, events.Encode, func() {})
	require.NoError(b, err)
	o := &org.Org{Revision: "r1", Epoch: 1, Zone: time.UTC, Seats: []org.Seat{{Handle: "ops", Kind: "agent"}, {Handle: "dev", Kind: "agent"}}}
	for n := range 8 {
		o.Projects = append(o.Projects, org.Project{Key: fmt.Sprint("P", n), Name: "Project"})
	}
	require.NoError(b, s.SyncProjects(b.Context(), o))
	_, err = pool.Exec(b.Context(), `create table floor (id bigint generated always as identity primary key, body text not null)`)
	require.NoError(b, err)
	w := &writer{store: s, org: o}
	for range 512 {
		require.NoError(b, w.create(b.Context(), "P0", ""))
	}
	for _, bench := range []struct {
		name  string
		write func(ctx context.Context) error
	}{
		{"one row", func(ctx context.Context) error {
			_, err := pool.Exec(ctx, `insert into floor (body) values ('one row')`)
			return err
		}},
		{"update an item", func(ctx context.Context) error { return w.update(ctx, "") }},
		{"update an item in a named operation", func(ctx context.Context) error { return w.update(ctx, uuid.NewString()) }},
		{"file an item in one of 8 projects", func(ctx context.Context) error {
			return w.create(ctx, fmt.Sprint("P", w.drawn.Load()%8), "")
		}},
		{"file an item in one project", func(ctx context.Context) error { return w.create(ctx, "P1", "") }},
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

// writer writes items as an agent does.
type writer struct {
	store *store.Store
	org   *org.Org
	drawn atomic.Int64
	ids   []string
}

func (w *writer) act() store.Act {
	return store.Act{By: item.Actor{Name: "ops", Kind: "operator"}, At: time.Now().Truncate(time.Microsecond), Org: w.org}
}

func (w *writer) create(ctx context.Context, project, operation string) error {
	n := w.drawn.Add(1)
	i := &item.Item{ID: uuid.Must(uuid.NewV7()), Project: project, Title: fmt.Sprint("Item ", n), Body: "What there is to do", Status: "todo", Priority: "none"}
	if len(w.ids) < 512 {
		w.ids = append(w.ids, i.ID.String())
	}
	res := &trackerv1.CreateWorkItemResponse{}
	kind := ""
	f := store.Filing{Item: i, Wishes: store.Wishes{Type: &kind}, Act: w.act()}
	return w.store.InsertItem(ctx, w.operation("create_work_item", operation), res, f, func(done store.Filed) { res.Position = done.At.String() })
}

func (w *writer) update(ctx context.Context, operation string) error {
	n := w.drawn.Add(1)
	title, priority := fmt.Sprint("Title ", n), item.Priority(int16(n%5))
	res := &trackerv1.UpdateWorkItemResponse{}
	e := store.Edit{Name: w.ids[n%int64(len(w.ids))], Update: item.Update{Title: &title, Priority: &priority}, Act: w.act()}
	return w.store.UpdateItem(ctx, w.operation("update_work_item", operation), res, e, func(done store.Edited) { res.Position = done.At.String() })
}

func (w *writer) operation(tool, id string) ops.Operation {
	op := ops.Operation{ID: id, Tool: tool, Digest: ops.Digest(&trackerv1.UpdateWorkItemRequest{Item: id})}
	if id != "" {
		op.Caller = "seat:ops"
	}
	return op
}

// durable answers a pool on a server that keeps its promises, unlike the tests' own.
func durable(b *testing.B) *pgxpool.Pool {
	b.Helper()
	s, err := pgserver.Start(b.Context(), pgserver.Options{DataDir: pgtest.Cluster(b)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Stop(context.WithoutCancel(b.Context()))) })
	require.NoError(b, pg.EnsureSchemas(b.Context(), s.DSN(), "tracker"))
	require.NoError(b, pg.Migrate(b.Context(), s.DSN(), map[string]fs.FS{"tracker": store.Migrations()}))
	pool, err := pg.Open(b.Context(), s.DSN(), "tracker")
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	return pool
}
