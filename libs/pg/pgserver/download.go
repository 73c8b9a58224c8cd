//go:build unix

package pgserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	downloadVersion = embeddedpostgres.V15
	downloadMajor   = "15"
)

// download answers the programs from the cache, which it fills from the network when they are not there yet.
func download(ctx context.Context, log *slog.Logger) (binaries, error) {
	cache, err := cacheDir()
	if err != nil {
		return binaries{}, notFound(err)
	}
	target := filepath.Join(cache, "postgres-"+string(downloadVersion))
	if b, ok := inspect(ctx, filepath.Join(target, "bin")); ok {
		return b, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return binaries{}, notFound(err)
	}
	log.Info("no postgres on this machine, downloading one", "version", downloadVersion, "to", target)
	if err := fetch(cache, target); err != nil {
		return binaries{}, notFound(err)
	}
	b, ok := inspect(ctx, filepath.Join(target, "bin"))
	if !ok {
		return b, notFound(errors.New("the downloaded programs do not run here"))
	}
	return b, nil
}

// fetch has the library unpack the programs. Its only way to do so is to run a server, which we let it do on throw-away
// data; run by root that part fails, after the unpacking, and only the unpacking matters.
func fetch(cache, target string) error {
	scratch, err := os.MkdirTemp(cache, "scratch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	port, err := freePort()
	if err != nil {
		return err
	}
	// Unpacked beside its place and then renamed: a download that breaks off must not look complete.
	draft := filepath.Join(scratch, "programs")
	db := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(downloadVersion).CachePath(cache).BinariesPath(draft).RuntimePath(filepath.Join(scratch, "run")).
		DataPath(filepath.Join(scratch, "data")).Port(port).Logger(io.Discard))
	err = db.Start()
	if err == nil {
		err = db.Stop()
	}
	if _, missing := os.Stat(filepath.Join(draft, "bin", "postgres")); missing != nil {
		return errors.Join(err, missing)
	}
	if err := os.Chmod(draft, 0o755); err != nil {
		return err
	}
	if err := os.Rename(draft, target); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// cacheDir is the user's, except for root, whose server runs as another user and could not enter it.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/bullpen", nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "bullpen"), err
}

func freePort() (uint32, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return uint32(l.Addr().(*net.TCPAddr).Port), nil
}

func notFound(cause error) error {
	return fault.New(fault.Unavailable, "No Postgres is at hand. Give the address of a running one (-database-url), or "+
		"install the package postgresql so that its programs are found on this machine, or allow the download of Postgres "+
		"%s from Maven Central, which has just failed.", downloadMajor).WithCause(cause)
}
