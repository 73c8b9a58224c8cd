package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/file"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

const fileColumns = `project, path, content_type, hash, size, object_id, version, created_by, created_at, updated_by, updated_at, removed_at`

func scanFile(row pgx.Row) (*file.File, error) {
	f := &file.File{}
	err := row.Scan(&f.Project, &f.Path, &f.ContentType, &f.Hash, &f.Size, &f.Object, &f.Version, &f.CreatedBy, &f.CreatedAt, &f.UpdatedBy, &f.UpdatedAt, &f.RemovedAt)
	return f, err
}

// HasProject refuses a project that does not exist: `not_found`.
func (s *Store) HasProject(ctx context.Context, key string) error {
	var there bool
	if err := s.pool.QueryRow(ctx, `select exists (select from projects where key = $1)`, key).Scan(&there); err != nil {
		return err
	}
	if !there {
		return noProject(key)
	}
	return nil
}

func noProject(key string) error {
	return fault.New(fault.NotFound, "there is no project %q; list_projects shows those there are", key).WithField("project")
}

// FileByPath answers a file that is there; `not_found` otherwise, also when its project does not exist.
func (s *Store) FileByPath(ctx context.Context, project, path string) (*file.File, error) {
	f, err := scanFile(s.pool.QueryRow(ctx, `select `+fileColumns+` from project_files where project = $1 and path = $2 and removed_at is null`, project, path))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noFile(project, path)
	}
	return f, err
}

func noFile(project, path string) error {
	return fault.New(fault.NotFound, "project %s has no file %q; list_project_files shows those there are", project, path).WithField("path")
}

// ListFiles answers the files of a project whose path begins with folder and comes after a path, by path, at most limit; and whether
// there are more.
func (s *Store) ListFiles(ctx context.Context, project, folder, after string, limit int) ([]*file.File, bool, error) {
	rows, err := s.pool.Query(ctx, `select `+fileColumns+` from project_files
		where project = $1 and path > $2 and starts_with(path, $3) and path >= $3 and removed_at is null order by path limit $4`, project, after, folder, limit+1)
	if err != nil {
		return nil, false, err
	}
	files, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*file.File, error) { return scanFile(row) })
	if err != nil || len(files) <= limit {
		return files, false, err
	}
	return files[:limit], true, nil
}

// BeginObject remembers an object that is about to be stored, so that it is found again whatever happens.
func (s *Store) BeginObject(ctx context.Context) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, err
	}
	_, err = s.pool.Exec(ctx, `insert into objects (id) values ($1)`, id)
	return id, err
}

// FileWrite is a file's new content, which is stored already.
type FileWrite struct {
	Project, Path, ContentType string
	Hash                       []byte
	Size                       int64
	Object                     uuid.UUID
	IfVersion                  *int32
	By                         Act
}

// WriteFile makes a stored object the content of a file, once per operation. answer fills result with the file as it is now; its
// position is zero when the same content stood there under the same type. used reports whether the object is the file's content now,
// and dropped, unless nil, is the one that was before: what is not used any more is the caller's to delete.
func (s *Store) WriteFile(
	ctx context.Context, op ops.Operation, result proto.Message, w FileWrite, answer func(*file.File, ops.Position),
) (used bool, dropped *uuid.UUID, err error) {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		used, dropped = false, nil
		was, err := lockFile(ctx, tx, w.Project, w.Path)
		if err != nil {
			return nil, err
		}
		if err := file.Precondition(was, w.Path, w.IfVersion); err != nil {
			return nil, err
		}
		if was.There() && string(was.Hash) == string(w.Hash) && was.ContentType == w.ContentType {
			answer(was, ops.Position{})
			return nil, nil
		}
		now := &file.File{
			Project: w.Project, Path: w.Path, ContentType: w.ContentType, Hash: w.Hash, Size: w.Size, Object: &w.Object, Version: 1,
			CreatedBy: w.By.By.Name, CreatedAt: w.By.At, UpdatedBy: w.By.By.Name, UpdatedAt: w.By.At,
		}
		change := item.Change{Kind: "file_written", By: w.By.By, At: w.By.At, Fields: map[string]item.Field{
			"file": {To: described(now)},
		}}
		if was != nil {
			now.Version = was.Version + 1
		}
		if was.There() {
			now.CreatedBy, now.CreatedAt, dropped = was.CreatedBy, was.CreatedAt, was.Object
			change.Fields["file"] = item.Field{From: described(was), To: described(now)}
		}
		change.Version, used = now.Version, true
		batch, at, err := s.fileChanged(ctx, tx, change, w.Project)
		if err != nil {
			return nil, err
		}
		batch.Queue(`insert into project_files (`+fileColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, null)
			on conflict (project, path) do update set content_type = excluded.content_type, hash = excluded.hash, size = excluded.size,
				object_id = excluded.object_id, version = excluded.version, created_by = excluded.created_by, created_at = excluded.created_at,
				updated_by = excluded.updated_by, updated_at = excluded.updated_at, removed_at = null`,
			now.Project, now.Path, now.ContentType, now.Hash, now.Size, now.Object, now.Version, now.CreatedBy, now.CreatedAt, now.UpdatedBy, now.UpdatedAt)
		batch.Queue(`update objects set live = true where id = $1`, w.Object)
		queueDrop(batch, dropped)
		answer(now, at)
		return batch, nil
	})
	if replayed {
		used, dropped = false, nil
	}
	return used, dropped, s.written(replayed, err)
}

// RemoveFile removes a file once per operation and answers the object to delete.
func (s *Store) RemoveFile(
	ctx context.Context, op ops.Operation, result proto.Message, project, path string, ifVersion *int32, by Act, answer func(*file.File, ops.Position),
) (dropped *uuid.UUID, err error) {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		dropped = nil
		f, err := lockFile(ctx, tx, project, path)
		if err != nil {
			return nil, err
		}
		if !f.There() {
			return nil, noFile(project, path)
		}
		if err := file.Precondition(f, path, ifVersion); err != nil {
			return nil, err
		}
		change := item.Change{
			Kind: "file_removed", By: by.By, At: by.At, Version: f.Version + 1, Fields: map[string]item.Field{"file": {From: described(f)}},
		}
		batch, at, err := s.fileChanged(ctx, tx, change, project)
		if err != nil {
			return nil, err
		}
		dropped, f.Object, f.Version, f.RemovedAt = f.Object, nil, f.Version+1, &by.At
		batch.Queue(`update project_files set object_id = null, version = $3, updated_by = $4, updated_at = $5, removed_at = $5
			where project = $1 and path = $2`, project, path, f.Version, by.By.Name, by.At)
		queueDrop(batch, dropped)
		answer(f, at)
		return batch, nil
	})
	return dropped, s.written(replayed, err)
}

// lockFile locks a file's row, or its name when it has none yet, and answers nil then. A project that takes no new work takes no
// files either.
func lockFile(ctx context.Context, tx pgx.Tx, project, path string) (*file.File, error) {
	var archived bool
	err := tx.QueryRow(ctx, `select archived from projects where key = $1 for key share`, project).Scan(&archived)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, noProject(project)
	case err != nil:
		return nil, err
	case archived:
		return nil, fault.New(fault.Invalid, "project %s is archived and its files do not change", project).WithField("project")
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, "file "+project+"/"+path); err != nil {
		return nil, err
	}
	f, err := scanFile(tx.QueryRow(ctx, `select `+fileColumns+` from project_files where project = $1 and path = $2 for no key update`, project, path))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return f, err
}

// fileChanged draws the change's place in the order of writes and queues what it leaves behind.
func (s *Store) fileChanged(ctx context.Context, tx pgx.Tx, c item.Change, project string) (*pgx.Batch, ops.Position, error) {
	sequence, err := drawPosition(ctx, tx)
	if err != nil {
		return nil, ops.Position{}, err
	}
	batch := &pgx.Batch{}
	e := Event{Project: project, Change: c, Position: position(sequence)}
	return batch, e.Position, s.recordProject(ctx, batch, e)
}

// described is a file as history tells of it.
func described(f *file.File) string {
	return fmt.Sprintf("%s, %d bytes, sha256 %s", f.Path, f.Size, hex.EncodeToString(f.Hash))
}
