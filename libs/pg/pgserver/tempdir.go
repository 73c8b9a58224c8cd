//go:build unix

package pgserver

import "os"

// TempDir makes a new folder for throw-away data that a server can be started in, whoever runs this process. The one
// that os.MkdirTemp makes is closed to everybody else, and so to the account that root drops to. The folder can be
// passed through but not listed by others; what a server puts in it is closed. The caller removes it.
func TempDir(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}
