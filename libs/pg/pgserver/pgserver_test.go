//go:build unix

package pgserver_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

const (
	patient = 30 * time.Second
	tick    = 5 * time.Millisecond
)

// start starts a server that is stopped when the test ends.
func start(t *testing.T, dir string) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(t.Context(), pgserver.Options{DataDir: dir, Log: testLog(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	return s
}

func testLog(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func exec(t *testing.T, s *pgserver.Server, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), statement)
	require.NoError(t, err)
}

func ask(t *testing.T, s *pgserver.Server, query string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&answer))
	return answer
}

func TestStart(t *testing.T) {
	t.Parallel()

	t.Run("the data outlives the server", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Dir(t)
		s := start(t, dir)
		exec(t, s, "create table notes (body text); insert into notes values ('kept')")
		dsn := s.DSN()
		require.NoError(t, s.Stop(t.Context()))
		<-s.Done()

		s = start(t, dir)
		require.Equal(t, dsn, s.DSN())
		require.Equal(t, "kept", ask(t, s, "select body from notes"))
	})

	t.Run("nobody but this user can reach it, and nothing listens on the network", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		s := start(t, dir)
		require.Empty(t, ask(t, s, "show listen_addresses"))
		for _, path := range []string{dir, filepath.Join(dir, "run"), filepath.Join(dir, "cluster")} {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), path)
		}
	})

	t.Run("it keeps every promise of durability, and text is UTF-8", func(t *testing.T) {
		t.Parallel()
		s := start(t, pgtest.Cluster(t))
		for setting, want := range map[string]string{
			"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "256MB",
			"max_connections": "120", "jit": "off", "max_wal_size": "4GB", "checkpoint_timeout": "15min",
			"server_encoding": "UTF8", "timezone": "UTC",
		} {
			require.Equal(t, want, ask(t, s, "show "+setting), setting)
		}
		require.Equal(t, "äöü", ask(t, s, "select lower('ÄÖÜ')"))
	})

	t.Run("a path that is too long for a socket gets a short one elsewhere", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(pgtest.Dir(t), strings.Repeat("long", 30))
		require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o711))
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
		s := start(t, dir)
		require.Equal(t, "1", ask(t, s, "select '1'"))
		socket := ask(t, s, "show unix_socket_directories")
		require.True(t, strings.HasPrefix(strings.Trim(socket, `"`), "/tmp/bullpen-"), socket)
		require.NoError(t, s.Stop(t.Context()))
		_, err := os.Stat(strings.Trim(socket, `"`))
		require.ErrorIs(t, err, os.ErrNotExist)
	})

	t.Run("a statement that fails leaves none of its text in the log", func(t *testing.T) {
		t.Parallel()
		var log syncBuffer
		s, err := pgserver.Start(t.Context(), pgserver.Options{
			DataDir: pgtest.Cluster(t),
			Log:     slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		require.NoError(t, err)
		conn, err := pgx.Connect(t.Context(), s.DSN())
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "create temp table tokens (hash text primary key check (hash <> 'hunter2'))")
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), "insert into tokens values ('hunter2')")
		require.Error(t, err)
		require.NoError(t, conn.Close(t.Context()))
		require.NoError(t, s.Stop(t.Context()))
		require.Contains(t, log.String(), "tokens")
		require.NotContains(t, log.String(), "hunter2")
	})
}

func TestSupervision(t *testing.T) {
	t.Parallel()

	t.Run("a server that is killed comes back with what was committed", func(t *testing.T) {
		t.Parallel()
		s := start(t, pgtest.Cluster(t))
		exec(t, s, "create table notes (body text)")
		for range 2 {
			exec(t, s, "insert into notes values ('kept')")
			pid := s.PID()
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			require.Eventually(t, func() bool { return s.PID() != pid }, patient, tick)
		}
		require.Equal(t, "2", ask(t, s, "select count(*)::text from notes"))
	})

	t.Run("stop ends it for good, also while it is being started again", func(t *testing.T) {
		t.Parallel()
		s := start(t, pgtest.Cluster(t))
		require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
		require.NoError(t, s.Stop(t.Context()))
		<-s.Done()
		_, err := pgx.Connect(t.Context(), s.DSN())
		require.Error(t, err)
		require.NoError(t, s.Stop(t.Context()))
	})

	t.Run("a stop in a hurry loses nothing", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		s := start(t, dir)
		exec(t, s, "create table notes (body text); insert into notes values ('kept')")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, s.Stop(ctx))
		require.Equal(t, "kept", ask(t, start(t, dir), "select body from notes"))
	})

	t.Run("the end of a start's context ends the start", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Dir(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := pgserver.Start(ctx, pgserver.Options{DataDir: dir})
		require.Error(t, err)
		require.Equal(t, "1", ask(t, start(t, dir), "select '1'"))
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()

	refused := func(t *testing.T, dir string, class fault.Class, sentence string) {
		t.Helper()
		_, err := pgserver.Start(t.Context(), pgserver.Options{DataDir: dir})
		f, ok := fault.As(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, class, f.Class)
		require.Contains(t, f.Message, sentence)
	}

	t.Run("a directory that another supervisor holds", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		start(t, dir)
		refused(t, dir, fault.Conflict, "Another process already runs the database")
	})

	t.Run("a cluster of another major version", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Dir(t)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "cluster"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster", "PG_VERSION"), []byte("9.6\n"), 0o600))
		refused(t, dir, fault.Conflict, "was made by Postgres 9.6, and this machine has ")
	})

	t.Run("a folder that holds something else", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Dir(t)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644))
		refused(t, dir, fault.Invalid, "it holds thesis.txt")
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm(), "a refused folder was closed")
	})

	t.Run("no directory at all", func(t *testing.T) {
		t.Parallel()
		refused(t, "", fault.Invalid, "needs a data directory")
	})

	t.Run("a folder that the unprivileged user may not enter", func(t *testing.T) {
		t.Parallel()
		if os.Geteuid() != 0 {
			t.Skip("only root drops to another user")
		}
		dir := pgtest.Dir(t)
		require.NoError(t, os.Mkdir(dir, 0o700))
		refused(t, filepath.Join(dir, "inner"), fault.Invalid, "who may not enter "+dir)
	})

	t.Run("a server that does not start says why", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		s := start(t, dir)
		require.NoError(t, s.Stop(t.Context()))
		config := filepath.Join(dir, "cluster", "postgresql.conf")
		require.NoError(t, os.WriteFile(config, []byte("no_such_setting = 1\n"), 0o644))
		refused(t, dir, fault.Unavailable, "no_such_setting")
	})
}

func TestLeftovers(t *testing.T) {
	t.Parallel()

	t.Run("a pid file that names another program is cleared away", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		stale := filepath.Join(dir, "cluster", "postmaster.pid")
		require.NoError(t, os.WriteFile(stale, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644))
		require.Equal(t, "1", ask(t, start(t, dir), "select '1'"))
	})

	t.Run("a cluster that was never finished is made anew", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Dir(t)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "cluster.new", "base"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster.new", "PG_VERSION"), []byte("15"), 0o600))
		require.Equal(t, "1", ask(t, start(t, dir), "select '1'"))
	})
}

// syncBuffer is a buffer that many goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
