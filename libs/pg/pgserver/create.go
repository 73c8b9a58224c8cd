//go:build unix

package pgserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// draftWait bounds the wait for the makers of a cluster whose supervisor was killed; they notice within a second or so.
const draftWait = 30 * time.Second

// create makes the cluster when there is none. It is built beside its place and then renamed, so that an interrupted
// start leaves nothing that looks like a cluster.
func (c *cluster) create(ctx context.Context) error {
	if major, err := c.major(); err != nil || major != "" {
		return err
	}
	lock, err := c.lockDraft(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	draft := filepath.Join(c.root, draftName)
	if err := os.RemoveAll(draft); err != nil {
		return unusable("The unfinished cluster %s cannot be removed.", draft).WithCause(err)
	}
	c.log.Info("creating the database cluster", "dir", c.data)
	if out, err := c.initdb(ctx, draft, lock).CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.New(fault.Unavailable, "The database cluster in %s cannot be made: %s", c.root, lastLines(string(out))).
			WithCause(err)
	}
	if err := os.Rename(draft, c.data); err != nil {
		return unusable("The new cluster cannot be moved to %s.", c.data).WithCause(err)
	}
	return nil
}

// initdb answers the command that makes a cluster. It and the programs it starts hold the lock as well: they outlive a
// supervisor that is killed, go on writing, and remove in the end what stands in the draft's place, whoever made that.
func (c *cluster) initdb(ctx context.Context, draft string, lock *os.File) *exec.Cmd {
	ctype := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		ctype = "en_US.UTF-8"
	}
	args := []string{
		"--pgdata", draft, "--username", superuser, "--encoding", "UTF8",
		"--locale", "C", "--lc-ctype", ctype, "--auth-local", "trust", "--auth-host", "reject",
	}
	if c.throwaway {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, c.binaries.initdb(), args...)
	c.prepare(cmd)
	cmd.ExtraFiles = []*os.File{lock}
	return cmd
}

// lockDraft waits until nobody works on a draft any more, and takes its lock.
func (c *cluster) lockDraft(ctx context.Context) (*os.File, error) {
	path := filepath.Join(c.root, draftLockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable("The lock file %s cannot be opened.", path).WithCause(err)
	}
	ticker := time.NewTicker(2 * pollEvery)
	defer ticker.Stop()
	deadline := time.NewTimer(draftWait)
	defer deadline.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(unusable("The lock file %s cannot be locked.", path).WithCause(err), file.Close())
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return nil, errors.Join(fault.New(fault.Unavailable, "An initdb that an earlier process left behind still works in %s. "+
				"End it by hand and start again.", c.root), file.Close())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		}
	}
}
