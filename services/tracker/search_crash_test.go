package tracker_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker"
)

// The environment of a test binary that is to be a process of the tracker, until it is killed.
const (
	crashDSN = "BULLPEN_TEST_SEARCH_DSN"
	crashDir = "BULLPEN_TEST_SEARCH_DIR"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(crashDSN); dsn != "" {
		fmt.Fprintln(os.Stderr, "ended:", indexUntilKilled(dsn, os.Getenv(crashDir)))
		os.Exit(1)
	}
	if dsn := os.Getenv(faultDSN); dsn != "" {
		fmt.Fprintln(os.Stderr, "ended:", serveUntilKilled(dsn, os.Getenv(faultBrokers)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// indexUntilKilled keeps an index in dir by a clock that runs so fast that it is kept after every change, and says so on standard
// output once it is built.
func indexUntilKilled(dsn, dir string) error {
	ctx := context.Background()
	pool, err := pg.Open(ctx, dsn, "tracker")
	if err != nil {
		return err
	}
	broker, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		return err
	}
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "child"})
	if err != nil {
		return err
	}
	began := time.Now()
	service, err := tracker.New(ctx, tracker.Deps{
		Config: tracker.Config{SearchDir: dir}, Pool: pool, Bus: b, Company: roster{}, Log: slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(), Node: "child", Now: func() time.Time { return began.Add(10_000 * time.Since(began)) },
	})
	if err != nil {
		return err
	}
	go func() {
		for tick := time.Tick(time.Millisecond); !service.Ready(ctx)[1].OK; {
			<-tick
		}
		fmt.Println("built")
	}()
	return service.Run(ctx)
}

func TestAProcessThatIsKilledWhileItWritesLeavesAnIndexThatAnswersRightly(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	require.NoError(t, pg.EnsureSchemas(t.Context(), dsn, "tracker"))
	pool := migrated(t, dsn)
	writer := join(t, pool, "").indexed(t)
	dir := t.TempDir()
	var filed []string
	for round := range 4 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), crashDSN+"="+dsn, crashDir+"="+dir)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		child.Stderr = os.Stderr
		require.NoError(t, child.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "built", strings.TrimSpace(line))
		// Writes go on until the child has kept some of them, and it is killed somewhere among the next.
		for n := range 25 + 7*round {
			word := fmt.Sprintf("round%dword%dx", round, n)
			writer.file(t, "Item "+word, "")
			filed = append(filed, word)
		}
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		after := join(t, pool, dir).indexed(t)
		for _, word := range filed {
			require.Equal(t, "Item "+word, after.titles(t, word)[0], "round %d", round)
		}
		after.stop()
	}
}

func migrated(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	migrations := map[string]fs.FS{"tracker": tracker.Module.Migrations}
	require.NoError(t, pg.Migrate(t.Context(), dsn, migrations))
	pool, err := pg.Open(t.Context(), dsn, "tracker")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
