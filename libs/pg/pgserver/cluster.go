//go:build unix

package pgserver

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// lockName is the file whose lock a supervisor holds.
	lockName = "supervisor.lock"
	// draftName is a cluster that is being made, and draftLockName the file whose lock its makers hold.
	draftName     = "cluster.new"
	draftLockName = "cluster.new.lock"
)

// cluster is one data directory with the programs and the account that serve it.
type cluster struct {
	root      string // the data directory as the caller named it, links resolved
	data      string // Postgres' own directory
	socketDir string
	binaries  binaries
	account   *account
	throwaway bool
	log       *slog.Logger
}

func newCluster(ctx context.Context, opts Options) (*cluster, error) {
	if opts.DataDir == "" {
		return nil, unusable("The database needs a data directory.")
	}
	root, err := filepath.Abs(opts.DataDir)
	if err != nil {
		return nil, unusable("The data directory %s has no absolute path.", opts.DataDir).WithCause(err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, unusable("The data directory %s cannot be made.", root).WithCause(err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, unusable("The data directory %s cannot be read.", opts.DataDir).WithCause(err)
	}
	c := &cluster{root: root, data: filepath.Join(root, "cluster"), throwaway: opts.Throwaway, log: opts.Log}
	if c.account, err = unprivileged(); err != nil {
		return nil, err
	}
	if err := c.account.canEnter(root); err != nil {
		return nil, err
	}
	major, err := c.major()
	if err != nil {
		return nil, err
	}
	if major == "" {
		if err := c.nothingElse(); err != nil {
			return nil, err
		}
	}
	if c.binaries, err = findBinaries(ctx, major, opts.Log); err != nil {
		return nil, err
	}
	if err := c.account.own(root, c.data); err != nil {
		return nil, err
	}
	if c.socketDir, err = c.makeSocketDir(); err != nil {
		return nil, err
	}
	return c, nil
}

// major answers the major version that the cluster was made with, and the empty string for one that is to be made.
func (c *cluster) major() (string, error) {
	text, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", unusable("The version of the cluster in %s cannot be read.", c.data).WithCause(err)
	}
	return strings.TrimSpace(string(text)), nil
}

// nothingElse refuses a folder of somebody else's for a new cluster: it would be closed to its owner.
func (c *cluster) nothingElse() error {
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return unusable("The data directory %s cannot be read.", c.root).WithCause(err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case lockName, draftName, draftLockName, "run", "cluster", "lost+found":
		default:
			return unusable("The data directory %s is neither empty nor a database's: it holds %s. Choose a folder of its "+
				"own.", c.root, entry.Name())
		}
	}
	return nil
}

// acquire takes the lock that keeps a second supervisor out. The kernel gives it back when this process ends, however
// it ends; the server does not inherit it.
func (c *cluster) acquire() (*os.File, error) {
	path := filepath.Join(c.root, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable("The lock file %s cannot be opened.", path).WithCause(err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fault.New(fault.Conflict, "Another process already runs the database in %s. Stop it, or choose "+
			"another data directory.", c.root).WithField("data_dir").WithCause(err)
	}
	return file, nil
}

// prepare makes a command run as the account, in the data directory, with a small environment and apart from the
// terminal's signals.
func (c *cluster) prepare(cmd *exec.Cmd) {
	cmd.Dir = c.root
	cmd.Env = []string{"PATH=" + c.binaries.dir + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.account.credential()}
}

// settings are the arguments of the server. Durability stays at the defaults; what differs was measured.
func (c *cluster) settings() []string {
	pairs := []string{
		"listen_addresses=",
		"unix_socket_directories=" + quoteList(c.socketDir),
		"unix_socket_permissions=0700",
		"max_connections=120",
		"shared_buffers=256MB",
		"max_wal_size=4GB",
		"min_wal_size=512MB",
		"checkpoint_timeout=15min",
		"wal_compression=" + c.binaries.walCompression(),
		"jit=off",
		"timezone=UTC",
		"log_timezone=UTC",
		"lc_messages=C",
		"logging_collector=off",
		"log_destination=stderr",
		"log_line_prefix=",
		"log_min_messages=warning",
		// A failed statement's text and the values in its details may be a customer's: they stay out of the log.
		"log_min_error_statement=panic",
		"log_error_verbosity=terse",
	}
	if c.throwaway {
		// Commits still reach the kernel, so they outlive the server, though not the machine.
		pairs = append(pairs, "fsync=off", "full_page_writes=off", "shared_buffers=64MB", "min_wal_size=80MB",
			"max_wal_size=1GB")
	}
	args := []string{"-D", c.data}
	for _, pair := range pairs {
		args = append(args, "-c", pair)
	}
	return args
}

// quoteList writes a path as the one element of a list setting, where commas and spaces would separate.
func quoteList(path string) string {
	return `"` + strings.ReplaceAll(path, `"`, `""`) + `"`
}

func (c *cluster) dsn(database string) string {
	query := url.Values{"host": {c.socketDir}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: query.Encode()}
	return u.String()
}

// lastLines answers the end of a program's output on one line.
func lastLines(out string) string {
	const shown = 4
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-shown):], " / ")
}

func versionMismatch(root, have string, found []string) error {
	return fault.New(fault.Conflict, "The database in %s was made by Postgres %s, and this machine has %s. Install "+
		"Postgres %s, or move the data with pg_dump and choose an empty data directory.",
		root, have, strings.Join(found, ", "), have).WithField("data_dir")
}
