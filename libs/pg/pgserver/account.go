//go:build unix

package pgserver

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// account is the user that the server runs as when this process is root; nil when it is not, and then it runs as us.
type account struct {
	name     string
	uid, gid uint32
}

// unprivileged answers the account to drop to.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil // an ordinary user has nothing to drop
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fault.New(fault.Unavailable, "Postgres refuses to run as root, and this machine has neither a user "+
		"postgres nor a user nobody to run it as. Run Bullpen as an ordinary user, or give it a database address.")
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// canEnter proves that the account can pass through every folder above dir.
func (a *account) canEnter(dir string) error {
	if a == nil {
		return nil
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return unusable("The folder %s cannot be read.", parent).WithCause(err)
		}
		if !a.mayPass(info) {
			return unusable("Postgres refuses to run as root, so it runs as the user %s, who may not enter %s. Choose a "+
				"data directory elsewhere, such as /var/lib/bullpen, or run Bullpen as an ordinary user.", a.name, parent)
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

func (a *account) mayPass(info fs.FileInfo) bool {
	bit := fs.FileMode(0o001)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case owner.Uid == a.uid:
			bit = 0o100
		case owner.Gid == a.gid:
			bit = 0o010
		}
	}
	return info.Mode().Perm()&bit != 0
}

// own gives the data directory and the cluster in it to the account, and closes it to others. It walks the cluster only
// when that changes hands, as after an upgrade from running as an ordinary user.
func (a *account) own(root, data string) error {
	if err := os.Chmod(root, 0o700); err != nil {
		return unusable("The data directory %s belongs to somebody else.", root).WithCause(err)
	}
	if a == nil {
		return nil
	}
	err := os.Lchown(root, int(a.uid), int(a.gid))
	if info, statErr := os.Stat(data); statErr == nil && !a.owns(info) {
		// The folder itself comes last, so that a walk that was interrupted is begun again.
		err = errors.Join(err, filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || path == data {
				return err
			}
			return os.Lchown(path, int(a.uid), int(a.gid))
		}), os.Lchown(data, int(a.uid), int(a.gid)))
	}
	if err != nil {
		return unusable("The data directory %s cannot be given to the user %s.", root, a.name).WithCause(err)
	}
	return nil
}

func (a *account) owns(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && owner.Uid == a.uid
}
