package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock takes a data directory for this process, and makes it first when it is not there. The kernel gives it back when the process
// ends, however it ends. Postgres and the broker guard their own folders too; this one knows who is in the way.
func lock(data string) (unlock func(), err error) {
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		file.Close()
		return nil, fmt.Errorf("another `bullpen up` runs on %q: stop it first, or give this one another --data", data)
	case err != nil:
		file.Close()
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	return func() { file.Close() }, nil
}
