package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/services/tracker/internal/object"
)

// chunkBytes is how much of an object one row holds: a read of a page touches one or two, and 1 GiB is 4,096 of them.
const chunkBytes = 256 << 10

// Chunks keeps the bytes of files beside the tracker's tables, in object_chunks. It is an [object.Store].
type Chunks struct{ pool *pgxpool.Pool }

var _ object.Store = (*Chunks)(nil)

// NewChunks answers a store on a migrated schema.
func NewChunks(pool *pgxpool.Pool) *Chunks { return &Chunks{pool: pool} }

// Put implements [object.Store]. Chunks are committed one by one, as a transaction over a gigabyte would hold back the whole database's
// clean-up.
func (p *Chunks) Put(ctx context.Context, id uuid.UUID, content io.Reader, size int64) error {
	chunk := make([]byte, chunkBytes)
	var written int64
	for number := 0; ; number++ {
		n, err := io.ReadFull(content, chunk)
		if n > 0 {
			if _, err := p.pool.Exec(ctx, `insert into object_chunks (object_id, number, data) values ($1, $2, $3)`, id, number, chunk[:n]); err != nil {
				return fmt.Errorf("store a chunk: %w", err)
			}
			written += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if size >= 0 && written != size {
				return fmt.Errorf("the content ended after %d bytes of %d", written, size)
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// Read implements [object.Store].
func (p *Chunks) Read(ctx context.Context, id uuid.UUID, offset int64, limit int) ([]byte, error) {
	first, last := offset/chunkBytes, (offset+int64(limit)-1)/chunkBytes
	rows, err := p.pool.Query(ctx, `select number, data from object_chunks where object_id = $1 and number between $2 and $3 order by number`, id, first, last)
	if err != nil {
		return nil, err
	}
	var out []byte
	var number int
	var data []byte
	expected := int(first)
	_, err = pgx.ForEachRow(rows, []any{&number, &data}, func() error {
		if number != expected {
			return object.Missing(id)
		}
		expected++
		out = append(out, data...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return p.nothing(ctx, id)
	}
	skip := min(int(offset-first*chunkBytes), len(out))
	out = out[skip:]
	return out[:min(limit, len(out))], nil
}

// nothing tells an offset past the end from an object that is not there.
func (p *Chunks) nothing(ctx context.Context, id uuid.UUID) ([]byte, error) {
	var there bool
	if err := p.pool.QueryRow(ctx, `select exists (select from object_chunks where object_id = $1)`, id).Scan(&there); err != nil {
		return nil, err
	}
	if !there {
		return nil, object.Missing(id)
	}
	return nil, nil
}

// Delete implements [object.Store].
func (p *Chunks) Delete(ctx context.Context, id uuid.UUID) error {
	_, err := p.pool.Exec(ctx, `delete from object_chunks where object_id = $1`, id)
	return err
}

// Ping implements [object.Store].
func (p *Chunks) Ping(ctx context.Context) error { return p.pool.Ping(ctx) }
