//go:build unix

package pgserver_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

const supervisedDirEnv = "PGSERVER_TEST_DIR"

// TestSupervisorProcess is no test: other tests run it as a process that supervises a server and is then killed.
func TestSupervisorProcess(t *testing.T) {
	dir := os.Getenv(supervisedDirEnv)
	if dir == "" {
		t.Skip("runs only as a process of another test")
	}
	s, err := pgserver.Start(context.Background(), pgserver.Options{DataDir: dir})
	require.NoError(t, err)
	fmt.Println("supervising", s.PID())
	<-s.Done()
}

// supervise answers a process that will supervise a server.
func supervise(t *testing.T, dir string) *osexec.Cmd {
	t.Helper()
	process := osexec.Command(os.Args[0], "-test.run=^TestSupervisorProcess$")
	process.Env = append(os.Environ(), supervisedDirEnv+"="+dir)
	return process
}

// supervisor starts a process that supervises a server, and answers the server's process id.
func supervisor(t *testing.T, dir string) (process *osexec.Cmd, server int) {
	t.Helper()
	process = supervise(t, dir)
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "supervising %d", &server); err == nil {
			return process, server
		}
	}
	require.NoError(t, process.Wait())
	t.Fatal("the process ended without a server")
	return nil, 0
}

func TestTakeover(t *testing.T) {
	t.Parallel()

	t.Run("after kill -9 of the supervisor the next one has the data", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		for round := range 3 {
			process, server := supervisor(t, dir)
			conn, err := pgx.Connect(t.Context(), dsn(dir))
			require.NoError(t, err)
			_, err = conn.Exec(t.Context(), "create table if not exists notes (round int)")
			require.NoError(t, err)
			_, err = conn.Exec(t.Context(), "insert into notes values ($1)", round)
			require.NoError(t, err)
			require.NoError(t, process.Process.Kill())
			require.Error(t, process.Wait())

			s := start(t, dir)
			require.NotEqual(t, server, s.PID())
			require.Equal(t, fmt.Sprint(round+1), ask(t, s, "select count(*)::text from notes"))
			require.NoError(t, s.Stop(t.Context()))
		}
	})

	t.Run("after kill -9 of supervisor and server together as well", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		process, server := supervisor(t, dir)
		// Processes of the server outlive it for a moment and hold its memory.
		for range 4 {
			conn, err := pgx.Connect(t.Context(), dsn(dir))
			require.NoError(t, err)
			defer conn.Close(context.WithoutCancel(t.Context()))
		}
		require.NoError(t, process.Process.Kill())
		require.NoError(t, syscall.Kill(server, syscall.SIGKILL))
		require.Error(t, process.Wait())
		require.Equal(t, "1", ask(t, start(t, dir), "select '1'"))
	})

	t.Run("after kill -9 of a supervisor that makes the cluster the next one makes it", func(t *testing.T) {
		t.Parallel()
		for _, stage := range []string{"PG_VERSION", "pg_hba.conf", "global/pg_control", "base/1/PG_VERSION", "base/4/PG_VERSION"} {
			dir := pgtest.Dir(t)
			process := supervise(t, dir)
			require.NoError(t, process.Start())
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(dir, "cluster.new", stage))
				return err == nil
			}, patient, time.Millisecond, stage)
			require.NoError(t, process.Process.Kill())
			require.Error(t, process.Wait())
			s := start(t, dir)
			require.Equal(t, "1", ask(t, s, "select '1'"))
			require.NoError(t, s.Stop(t.Context()))
		}
	})

	t.Run("a server that nobody told of its supervisor's death is stopped", func(t *testing.T) {
		t.Parallel()
		dir := pgtest.Cluster(t)
		require.NoError(t, start(t, dir).Stop(t.Context()))
		orphan := startOrphan(t, dir)
		s := start(t, dir)
		require.NoError(t, orphan.Wait())
		require.Equal(t, "1", ask(t, s, "select '1'"))
	})
}

// startOrphan runs a server on the cluster without a supervisor, as its owner.
func startOrphan(t *testing.T, dir string) *osexec.Cmd {
	t.Helper()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	owner, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	program, err := osexec.LookPath("postgres")
	if err != nil {
		t.Skip("postgres is not on the path")
	}
	orphan := osexec.Command(program, "-D", filepath.Join(dir, "cluster"),
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+filepath.Join(dir, "run"))
	orphan.Dir = dir
	if os.Geteuid() == 0 {
		orphan.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	require.NoError(t, orphan.Start())
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "cluster", "postmaster.pid"))
		return strings.Contains(string(text), "ready")
	}, patient, tick)
	return orphan
}

func dsn(dir string) string {
	return "postgres://bullpen@/bullpen?sslmode=disable&host=" + filepath.Join(dir, "run")
}
