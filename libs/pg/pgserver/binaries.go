//go:build unix

package pgserver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// binaries is one installation of Postgres' programs.
type binaries struct {
	dir   string
	major string
}

func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }
func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }

// findBinaries answers an installation of the wanted major version, or of any when that is empty: from the machine, in
// the order of [candidates], otherwise from the download cache.
func findBinaries(ctx context.Context, major string, log *slog.Logger) (binaries, error) {
	var seen []string
	for _, dir := range candidates(ctx) {
		b, ok := inspect(ctx, dir)
		if !ok {
			continue
		}
		if major == "" || b.major == major {
			return b, nil
		}
		seen = append(seen, b.major)
	}
	if ctx.Err() != nil {
		// Nothing was looked at properly.
		return binaries{}, ctx.Err()
	}
	if major != "" && major != downloadMajor {
		if len(seen) == 0 {
			seen = []string{"none"}
		}
		return binaries{}, versionMismatch("the data directory", major, seen)
	}
	return download(ctx, log)
}

// candidates answers the folders that may hold the programs, best first: what the path leads to, what pg_config says,
// then the usual places with the newest version first. Some may not exist.
func candidates(ctx context.Context) []string {
	var dirs []string
	for _, name := range []string{"postgres", "pg_ctl"} {
		if path, err := exec.LookPath(name); err == nil {
			// The link may stand alone in its folder, away from the programs beside its target.
			if path, err = filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return newestFirst(a, b) })
		dirs = append(dirs, found...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		known := seen[dir]
		seen[dir] = true
		return known
	})
}

// newestFirst orders paths by the numbers in them.
func newestFirst(a, b string) int {
	number := func(path string) (n int) {
		_, _ = fmt.Sscanf(strings.TrimLeft(path, "/abcdefghijklmnopqrstuvwxyz-@"), "%d", &n)
		return n
	}
	return number(b) - number(a)
}

// inspect answers the installation in a folder, if it holds all that is needed.
func inspect(ctx context.Context, dir string) (binaries, bool) {
	b := binaries{dir: dir}
	if _, err := os.Stat(b.initdb()); err != nil {
		return b, false
	}
	out, err := exec.CommandContext(ctx, b.postgres(), "--version").Output()
	if err != nil {
		return b, false
	}
	version := regexp.MustCompile(`\d+`).FindString(string(out))
	b.major = version
	return b, version != ""
}

// walCompression answers the best method that the programs were built with.
func (b binaries) walCompression() string {
	const symbol = "LZ4_compress_default"
	program, err := os.ReadFile(b.postgres())
	if err == nil && bytes.Contains(program, []byte(symbol)) {
		return "lz4"
	}
	return "on"
}
