//go:build unix

package pgserver

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// stopLeftover ends a server that outlived its supervisor, and sees to it that the traces of one that did not stop no
// start. Our lock says that no supervisor lives, so whatever runs on this cluster is nobody's.
func (c *cluster) stopLeftover(ctx context.Context) error {
	path := filepath.Join(c.data, pidFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c.clearSocket()
	}
	if err != nil {
		return unusable("The file %s cannot be read.", path).WithCause(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !c.serves(ctx, pid) {
		return errors.Join(disown(path, rest), c.clearSocket())
	}
	c.log.Info("stopping the postgres that an earlier process left behind", "pid", pid)
	for _, step := range []struct {
		signal  syscall.Signal
		timeout time.Duration
	}{{syscall.SIGINT, fastStop}, {syscall.SIGQUIT, quickStop}} {
		_ = syscall.Kill(pid, step.signal)
		gone, err := c.awaitEnd(ctx, pid, step.timeout)
		if gone || err != nil {
			return errors.Join(err, c.clearSocket())
		}
	}
	return fault.New(fault.Unavailable, "The Postgres that an earlier process left behind (process %d) does not stop. End "+
		"it by hand and start again.", pid)
}

// disown puts our own process id into the pid file of a server that is gone. Its number may belong to another program by
// now, or to a process that nobody has collected, and Postgres would then refuse to start; a number that is its parent's
// it passes over. The file must stay: with what else it says Postgres finds processes of the old server that still work
// on the cluster.
func disown(path, rest string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		_, err = file.WriteString(strconv.Itoa(os.Getpid()) + "\n" + rest)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return unusable("The stale file %s cannot be written.", path).WithCause(err)
	}
	return nil
}

// clearSocket removes the socket of a server that is gone, and the lock beside it, which names only a process.
func (c *cluster) clearSocket() error {
	for _, name := range []string{socketName, socketName + ".lock"} {
		path := filepath.Join(c.socketDir, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return unusable("The stale file %s cannot be removed.", path).WithCause(err)
		}
	}
	return nil
}

func (c *cluster) awaitEnd(ctx context.Context, pid int, timeout time.Duration) (gone bool, err error) {
	ticker := time.NewTicker(2 * pollEvery)
	defer ticker.Stop()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		if !c.serves(ctx, pid) {
			return true, nil
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// serves reports whether a process is a live server of this cluster, and not another program with its old number. A
// process that has ended but was not collected by its parent is not alive.
func (c *cluster) serves(ctx context.Context, pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if line, err := os.ReadFile(filepath.Join(proc, "cmdline")); err == nil {
		// Empty for one that was not collected.
		return bytes.Contains(line, []byte(c.data))
	}
	line, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && bytes.Contains(line, []byte(c.data))
}
