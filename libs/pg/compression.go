package pg

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// lz4Supported asks whether the server was built with lz4. Distributions build it in; some binaries for download lack it.
const lz4Supported = `
select exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals))`

// portable answers how to read migrations so that this server can run them. "compression lz4" on a column is advice
// about speed, and the one clause of ours that a sound server may refuse outright: there it is left out, and the column
// is compressed the old way.
func portable(ctx context.Context, conn *pgx.Conn) (func(fs.FS) fs.FS, error) {
	var supported bool
	if err := conn.QueryRow(ctx, lz4Supported).Scan(&supported); err != nil {
		return nil, fmt.Errorf("ask for the compression methods: %w", err)
	}
	if supported {
		return func(files fs.FS) fs.FS { return files }, nil
	}
	return func(files fs.FS) fs.FS { return withoutLZ4{files} }, nil
}

// withoutLZ4 is a file system whose SQL does not ask for lz4.
type withoutLZ4 struct{ fs.FS }

// Open reads a file whole, as migrations are read anyway.
func (w withoutLZ4) Open(name string) (fs.File, error) {
	file, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return file, err
	}
	defer file.Close()
	body, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	body = regexp.MustCompile(`(?i)\s+compression\s+lz4\b`).ReplaceAll(body, nil)
	return sqlFile{Reader: bytes.NewReader(body), info: info}, nil
}

// sqlFile is a file in memory.
type sqlFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f sqlFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f sqlFile) Close() error               { return nil }
