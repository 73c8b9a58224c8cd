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

// stopLeftover ends a server that outlived its supervisor, and clears away the pid file of one that did not. Our lock
// says that no supervisor lives, so whatever runs on this cluster is nobody's.
func (c *cluster) stopLeftover(ctx context.Context) error {
	path := filepath.Join(c.data, pidFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unusable("The file %s cannot be read.", path).WithCause(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !c.serves(ctx, pid) {
		// Postgres itself sorts most of these out, but not a pid that another program has been given since.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return unusable("The stale file %s cannot be removed.", path).WithCause(err)
		}
		return nil
	}
	c.log.Info("stopping the postgres that an earlier process left behind", "pid", pid)
	for _, step := range []struct {
		signal  syscall.Signal
		timeout time.Duration
	}{{syscall.SIGINT, fastStop}, {syscall.SIGQUIT, quickStop}} {
		_ = syscall.Kill(pid, step.signal)
		gone, err := c.awaitEnd(ctx, pid, step.timeout)
		if gone || err != nil {
			return err
		}
	}
	return fault.New(fault.Unavailable, "The Postgres that an earlier process left behind (process %d) does not stop. End "+
		"it by hand and start again.", pid)
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
