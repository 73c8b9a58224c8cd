//go:build unix

package pgserver

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// maxSocketPath is what the address of a Unix socket holds on Linux; other systems hold a little less.
	maxSocketPath = 103
	socketName    = ".s.PGSQL.5432"
)

// makeSocketDir answers a folder that only the server's account may enter and whose path is short enough for a socket.
// The second choice has a name that follows from the data directory, so that the address never changes.
func (c *cluster) makeSocketDir() (string, error) {
	dir := filepath.Join(c.root, "run")
	if len(filepath.Join(dir, socketName)) > maxSocketPath {
		sum := sha256.Sum256([]byte(c.root))
		dir = filepath.Join("/tmp", "bullpen-"+hex.EncodeToString(sum[:8]))
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return "", unusable("The folder %s for the database's socket cannot be made.", dir).WithCause(err)
	}
	uid := uint32(os.Geteuid())
	if c.account != nil {
		uid = c.account.uid
		if err := os.Lchown(dir, int(c.account.uid), int(c.account.gid)); err != nil {
			return "", unusable("The folder %s for the database's socket cannot be given to %s.", dir, c.account.name).
				WithCause(err)
		}
	}
	// Anybody may make a folder under /tmp first: use it only if it is a real one, ours, and closed.
	info, err := os.Lstat(dir)
	if err != nil {
		return "", unusable("The folder %s for the database's socket cannot be read.", dir).WithCause(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || owner.Uid != uid || info.Mode().Perm() != 0o700 {
		return "", unusable("The folder %s for the database's socket is open to others. Remove it and start again.", dir)
	}
	return dir, nil
}

// removeSocketDir cleans up what lies outside the data directory; it fails quietly when a server still uses it.
func (c *cluster) removeSocketDir() {
	if filepath.Dir(c.socketDir) != c.root {
		_ = os.Remove(c.socketDir)
	}
}
