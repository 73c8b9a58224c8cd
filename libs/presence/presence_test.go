package presence_test

import (
	"context"
	"embed"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/presence"
)

//go:embed testdata/*.sql
var migrations embed.FS

const (
	patient = 30 * time.Second
	tick    = 5 * time.Millisecond
)

// clock is moved by hand.
type clock struct{ nanos atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.nanos.Load()) }

func (c *clock) pass(d time.Duration) { c.nanos.Add(int64(d)) }

// show runs a presence until the test ends or stop is called.
func show(t *testing.T, pool *pgxpool.Pool, node string, o presence.Options) (p *presence.Presence, stop func()) {
	t.Helper()
	p = presence.New(pool, node, o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		require.NoError(t, <-done)
	}
	t.Cleanup(stop)
	select {
	case <-p.Shown():
	case <-time.After(patient):
		t.Fatal("a presence is not shown")
	}
	return p, stop
}

// absent reports whether nobody holds a node's lock, to somebody without patience.
func absent(t *testing.T, pool *pgxpool.Pool, node string) bool {
	t.Helper()
	looking := &clock{}
	p := presence.New(pool, "looker", presence.Options{Now: looking.now, Grace: time.Second})
	_, err := p.Gone(t.Context(), []string{node})
	require.NoError(t, err)
	looking.pass(time.Second)
	gone, err := p.Gone(t.Context(), []string{node})
	require.NoError(t, err)
	return len(gone) == 1
}

func TestAProcessIsGoneOnceItHasBeenAbsentForTheGrace(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "presence", migrations)
	var c clock
	watcher, _ := show(t, pool, "watcher", presence.Options{Now: c.now, Grace: 2 * time.Second})
	_, stop := show(t, pool, "worker", presence.Options{})
	require.False(t, absent(t, pool, "worker"))
	gone, err := watcher.Gone(t.Context(), []string{"worker"})
	require.NoError(t, err)
	require.Empty(t, gone)

	stop()
	require.Eventually(t, func() bool { return absent(t, pool, "worker") }, patient, tick)
	gone, err = watcher.Gone(t.Context(), []string{"worker"})
	require.NoError(t, err)
	require.Empty(t, gone, "it may come back")
	c.pass(2 * time.Second)
	gone, err = watcher.Gone(t.Context(), []string{"worker"})
	require.NoError(t, err)
	require.Equal(t, []string{"worker"}, gone)
}

func TestALostConnectionIsReplacedAndTheProcessNeverGone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "presence", migrations)
	var c clock
	watcher, _ := show(t, pool, "watcher", presence.Options{Now: c.now, Grace: time.Second})
	show(t, pool, "worker", presence.Options{})
	require.Eventually(t, func() bool { return !absent(t, pool, "worker") }, patient, tick)

	var killed int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity
		where datname = current_database() and application_name = 'bullpen-presence-presence'`).Scan(&killed))
	require.Positive(t, killed)
	_, err := watcher.Gone(t.Context(), []string{"worker"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !absent(t, pool, "worker") }, patient, tick)
	c.pass(time.Minute)
	gone, err := watcher.Gone(t.Context(), []string{"worker"})
	require.NoError(t, err)
	require.Empty(t, gone)
}

func TestAProcessIsNeverGoneToItself(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "presence", migrations)
	var c clock
	p := presence.New(pool, "lonely", presence.Options{Now: c.now})
	_, err := p.Gone(t.Context(), []string{"lonely"})
	require.NoError(t, err)
	c.pass(time.Hour)
	gone, err := p.Gone(t.Context(), []string{"lonely", "never-was"})
	require.NoError(t, err)
	require.Empty(t, gone, "the other one is asked about for the first time")
}
