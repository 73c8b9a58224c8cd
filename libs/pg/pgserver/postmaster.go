//go:build unix

package pgserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// pollEvery is how often a starting server is asked whether it takes connections.
	pollEvery = 5 * time.Millisecond
	// fastStop is what a clean stop gets before the server is told to stop at once, and quickStop what that gets.
	fastStop  = 30 * time.Second
	quickStop = 5 * time.Second
	// pipeDelay bounds the wait for children of the server that outlive it and hold its output open.
	pipeDelay = time.Second
	// leftoverTries is how often a start is tried again while processes of a server that was killed still hold its
	// shared memory; they notice within a second or so.
	leftoverTries = 50
	leftoverWait  = 100 * time.Millisecond

	// pidFile is where a running server leaves its process id and its state.
	pidFile = "postmaster.pid"

	invalidCatalogName = "3D000"
	duplicateDatabase  = "42P04"
)

// postmaster is one run of the server.
type postmaster struct {
	cmd    *exec.Cmd
	output *output
	exited chan struct{}
	err    error // set before exited is closed
}

// bringUp takes over what a dead supervisor left, makes the cluster if there is none, and starts the server.
func (c *cluster) bringUp(ctx context.Context) (*postmaster, error) {
	if err := c.stopLeftover(ctx); err != nil {
		return nil, err
	}
	if err := c.create(ctx); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		p, err := c.launch()
		if err != nil {
			return nil, err
		}
		err = c.await(ctx, p)
		if err == nil {
			return p, nil
		}
		stopErr := p.stop(closed())
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if try == leftoverTries || !p.output.contains("pre-existing shared memory block") {
			return nil, errors.Join(err, stopErr)
		}
		timer := time.NewTimer(leftoverWait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// launch starts the process. A thread of its own waits for it: the kernel's signal at the death of the parent goes by
// the thread that started the child, and Go ends threads as it likes.
func (c *cluster) launch() (*postmaster, error) {
	cmd := exec.Command(c.binaries.postgres(), c.settings()...)
	c.prepare(cmd)
	cmd.WaitDelay = pipeDelay
	dieWithParent(cmd.SysProcAttr, c.stopSignal())
	p := &postmaster{cmd: cmd, output: newOutput(c.log), exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fault.New(fault.Unavailable, "Postgres in %s cannot be run.", c.binaries.dir).WithCause(err)
	}
	return p, nil
}

// stopSignal is what the server gets when its supervisor dies: a clean stop, or a quick one when nothing is to be kept.
func (c *cluster) stopSignal() syscall.Signal {
	if c.throwaway {
		return syscall.SIGQUIT
	}
	return syscall.SIGINT
}

// await waits until the server takes connections and our database exists.
func (c *cluster) await(ctx context.Context, p *postmaster) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		// The server says in its pid file when it is ready: knocking earlier only fills its log.
		if c.ready(p.pid()) {
			if err := c.ensureDatabase(ctx); err != nil {
				return fault.New(fault.Unavailable, "Postgres runs but does not let us in.").WithCause(err)
			}
			return nil
		}
		select {
		case <-p.exited:
			return fault.New(fault.Unavailable, "Postgres does not start: %s", p.output.last()).WithCause(p.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// ready reports whether the server has written that it takes connections, in the eighth line of its pid file.
func (c *cluster) ready(pid int) bool {
	text, err := os.ReadFile(filepath.Join(c.data, pidFile))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) > 7 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

// ensureDatabase connects to our database, which a first start has to create.
func (c *cluster) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.dsn(databaseName))
	if err == nil {
		return conn.Close(ctx)
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != invalidCatalogName {
		return err
	}
	conn, err = pgx.Connect(ctx, c.dsn("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "create database "+databaseName)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == duplicateDatabase {
		return nil
	}
	return err
}

func (p *postmaster) pid() int { return p.cmd.Process.Pid }

// exitError answers how the server ended; only after exited is closed.
func (p *postmaster) exitError() error { return p.err }

// stop ends the server: cleanly, or at once when hurry is closed or the clean way takes too long.
func (p *postmaster) stop(hurry <-chan struct{}) error {
	for _, step := range []struct {
		signal  syscall.Signal
		timeout time.Duration
		hurry   <-chan struct{}
	}{
		{syscall.SIGINT, fastStop, hurry}, {syscall.SIGQUIT, quickStop, nil}, {syscall.SIGKILL, quickStop, nil},
	} {
		// An error means that it has ended, which the channel tells as well.
		_ = p.cmd.Process.Signal(step.signal)
		timer := time.NewTimer(step.timeout)
		select {
		case <-p.exited:
			timer.Stop()
			return nil
		case <-timer.C:
		case <-step.hurry:
			timer.Stop()
		}
	}
	return fault.New(fault.Unavailable, "Postgres (process %d) cannot be stopped.", p.pid())
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
