package tracker_test

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker"
)

// Nothing that was acknowledged is lost, nothing is there twice, and asking again settles whatever nobody knew, while the service and its
// database are killed, connections break, and calls arrive twice.
func TestNoWriteIsLostOrDoubledWhateverBreaks(t *testing.T) {
	t.Parallel()
	storm{writes: 300, callers: 8, share: everyday, kills: 1}.run(t)
}

func TestChaosOfTenThousandWrites(t *testing.T) {
	chaotic(t)
	storm{writes: 10_000, callers: 16, share: everyday, kills: 8}.run(t)
}

// What changes many items is done whole or not at all, also when the service is killed in the middle of it.
func TestChaosOfGesturesOnManyItems(t *testing.T) {
	chaotic(t)
	storm{writes: 1000, callers: 8, share: gesturesAlone, kills: 12}.run(t)
}

func chaotic(t *testing.T) {
	t.Helper()
	if os.Getenv("BULLPEN_TEST_CHAOS") != "1" {
		t.Skip("takes half a minute; runs when BULLPEN_TEST_CHAOS=1 (make chaos)")
	}
}

// storm is some writes by some callers, and what breaks meanwhile.
type storm struct {
	writes, callers int
	share           shares
	// kills is how often the service is killed, each time after as many writes as the last time. At every fourth, Postgres dies with it.
	kills int
}

// patience bounds everything that is awaited.
const patience = 4 * time.Minute

func (s storm) run(t *testing.T) {
	t.Helper()
	postgres := pgtest.Server(t)
	migrated := map[string]fs.FS{"tracker": tracker.Module.Migrations}
	require.NoError(t, pg.EnsureSchemas(t.Context(), postgres.DSN(), "tracker"))
	require.NoError(t, pg.Migrate(t.Context(), postgres.DSN(), migrated))
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "audit"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.NoError(t, b.EnsureTopics(t.Context(), tracker.Module.Topics...))

	dsn, database := throughCutter(t, postgres.DSN())
	service := startProcess(t, dsn, broker.Brokers())
	keys, err := faultKeys()
	require.NoError(t, err)
	transport := rpc.HTTPTransport("http://" + service.door.listener.Addr().String())
	t.Cleanup(transport.Close)
	client := trackerv1connect.NewTrackerServiceClient(rpc.NewClient(transport, rpc.ClientOptions{Service: "toolregistry", Keys: keys, Timeout: 10 * time.Second}))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	l := newLoad(client, s)
	l.prepare(ctx, t)
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.run(ctx)
	}()
	h := havoc{storm: s, door: service.door, database: database, service: service, postgres: postgres}
	h.run(l, written)
	require.NoError(t, ctx.Err(), "every write was settled in time")
	require.Empty(t, l.wrong)
	t.Logf("%d writes in %.1fs: %d changed something, %d were refused; %d calls had an outcome that nobody knew, %d certainly did nothing, %d went out twice; "+
		"cut %d connections of callers and %d of the database, started the service again %d times and Postgres %d times",
		len(l.acknowledged)+len(l.refused), time.Since(began).Seconds(), l.applied(), len(l.refused), l.unknown.Load(), l.nothing.Load(), l.doubled.Load(),
		h.cutCallers, h.cutDatabase, service.starts-1, h.postgresKills)

	pool, err := pg.Open(ctx, postgres.DSN(), "tracker")
	require.NoError(t, err)
	defer pool.Close()
	l.audit(ctx, t, pool)
	sound(t, bundle{pool: pool})
	left(ctx, t, pool, b)
	if s.writes > 1000 {
		require.Positive(t, l.unknown.Load(), "something was left unknown, and settled")
	}
}

// havoc breaks things until the writes are done.
type havoc struct {
	storm
	door, database                         *cutter
	service                                *process
	postgres                               *pgserver.Server
	cutCallers, cutDatabase, postgresKills int
}

func (h *havoc) run(l *load, written <-chan struct{}) {
	killed := 0
	for tick := time.Tick(100 * time.Millisecond); ; {
		select {
		case <-written:
			return
		case <-tick:
		}
		switch n := rand.IntN(10); {
		case n < 2:
			h.cutCallers += h.door.cut(0.15)
		case n < 4:
			h.cutDatabase += h.database.cut(0.15)
		}
		if killed == h.kills || l.done() < (killed+1)*h.writes/(h.kills+1) {
			continue
		}
		h.service.kill()
		if killed++; killed%4 == 1 {
			h.postgresKills++
			_ = syscall.Kill(h.postgres.PID(), syscall.SIGKILL)
		}
	}
}

// targets are items that the callers share.
type targets struct {
	mu  sync.Mutex
	ids []string
}

func (p *targets) add(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = append(p.ids, id)
}

func (p *targets) some() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[rand.IntN(len(p.ids))]
}
