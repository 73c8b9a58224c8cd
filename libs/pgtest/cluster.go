package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
)

// masterVersion is part of the master's name; it goes up when package pgserver makes clusters differently.
const masterVersion = "v1"

// reap ends the server of a process that has ended, and removes its folder. It waits on a pipe whose other end only that
// process holds, so it learns of every kind of end.
const reap = `
cat >/dev/null
pid=$(head -n 1 "$1/data/cluster/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
tries=0
while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ $tries -lt 50 ]; do tries=$((tries+1)); sleep 0.1; done
rm -rf "$1"
`

// reapedDir answers a folder for a server that lives as long as this process. A shell in a session of its own cleans up
// once the lifeline closes, which is the kernel's doing; it must not be collected as garbage before.
func reapedDir() (dir string, lifeline io.Closer, err error) {
	parent, err := pgserver.TempDir("bullpen-pgtest-")
	if err != nil {
		return "", nil, err
	}
	shell := exec.Command("/bin/sh", "-c", reap, "sh", parent)
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if lifeline, err = shell.StdinPipe(); err != nil {
		return "", nil, err
	}
	if err := shell.Start(); err != nil {
		return "", nil, fmt.Errorf("start the shell that cleans up: %w", err)
	}
	return filepath.Join(parent, "data"), lifeline, nil
}

// copyCluster puts a copy of the machine's master cluster into dir, which is made.
func copyCluster(ctx context.Context, dir string) error {
	master, err := masterCluster(ctx)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	// cp keeps owners and modes, and shares blocks where the file system can.
	out, err := exec.CommandContext(ctx, "cp", "-Rp", filepath.Join(master, "cluster"), dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy the master cluster: %w: %s", err, out)
	}
	return nil
}

// masterCluster answers the data directory of a cluster that was initialised, stopped and never used. Processes that
// want it at the same time wait for the one that makes it.
func masterCluster(ctx context.Context) (string, error) {
	home, err := home()
	if err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(home, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	master := filepath.Join(home, "master-"+masterVersion)
	if _, err := os.Stat(master); err == nil || !errors.Is(err, os.ErrNotExist) {
		return master, err
	}
	draft := filepath.Join(home, "draft")
	if err := os.RemoveAll(draft); err != nil {
		return "", err
	}
	s, err := pgserver.Start(ctx, pgserver.Options{DataDir: draft, Throwaway: true})
	if err != nil {
		return "", err
	}
	if err := s.Stop(ctx); err != nil {
		return "", err
	}
	return master, os.Rename(draft, master)
}

// home answers this user's folder for the master cluster. Others may make a folder of that name first: it is used only
// if it is ours.
func home() (string, error) {
	dir := filepath.Join(os.TempDir(), "bullpen-pgtest-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is not a folder of our own; remove it", dir)
	}
	return dir, nil
}
