package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
)

const (
	revisionColumns = `r.revision_id, r.parent_id, r.epoch, r.revision_id is not distinct from a.revision_id,
       r.created_by, r.summary, r.created_at, r.activated_at, r.digest`

	// activeRevision serves every read of the company.
	activeRevision = `select ` + revisionColumns + ` from active a join revisions r using (revision_id)`

	revisionByID = `select ` + revisionColumns + ` from active a, revisions r where r.revision_id = $1`

	documentByID = `select document from revisions where revision_id = $1`

	// listRevisions goes down from an id; ids are time-ordered.
	listRevisions = `
select ` + revisionColumns + ` from active a, revisions r
where $1::uuid is null or r.revision_id < $1 order by r.revision_id desc limit $2`

	// lockActivation makes activations wait for each other. The row is read after the lock is held, so it is the latest.
	lockActivation = `select revision_id from active for update`

	insertRevision = `
insert into revisions (revision_id, parent_id, document, digest, created_by, summary, created_at, epoch, activated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	activate = `update active set revision_id = $1`

	inertRevision = `select revision_id from revisions where parent_id is not distinct from $1 and digest = $2 and epoch = 0`

	foreignKeyViolation = "23503"
)

// Active answers the active revision, and false before the first.
func (s *Store) Active(ctx context.Context) (revision.Revision, bool, error) {
	return one(ctx, s.pool, activeRevision)
}

// Revision answers a revision by its id, and false when there is none.
func (s *Store) Revision(ctx context.Context, id uuid.UUID) (revision.Revision, bool, error) {
	return one(ctx, s.pool, revisionByID, id)
}

// Document answers a revision's text, exactly as it was put. The revision must exist.
func (s *Store) Document(ctx context.Context, id uuid.UUID) (string, error) {
	var text string
	if err := s.pool.QueryRow(ctx, documentByID, id).Scan(&text); err != nil {
		return "", fmt.Errorf("read the document of revision %s: %w", id, err)
	}
	return text, nil
}

// ListRevisions answers up to limit revisions, newest first, those older than before when it is not [uuid.Nil].
func (s *Store) ListRevisions(ctx context.Context, before uuid.UUID, limit int) ([]revision.Revision, error) {
	rows, err := s.pool.Query(ctx, listRevisions, orNull(before), limit)
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return pgx.CollectRows(rows, toRevision)
}

// Put stores a document and activates it, or answers the active revision when its document is the same. It refuses with
// stale_version as [revision.Put.Against] does; nothing is stored then, see [Store.KeepInert].
func (t *Tx) Put(ctx context.Context, p revision.Put) (r revision.Revision, unchanged bool, err error) {
	var id *uuid.UUID
	if err := t.tx.QueryRow(ctx, lockActivation).Scan(&id); err != nil {
		return r, false, fmt.Errorf("lock the activation: %w", err)
	}
	active, _, err := one(ctx, t.tx, activeRevision)
	if err != nil {
		return r, false, err
	}
	if unchanged, err = p.Against(active); err != nil || unchanged {
		return active, unchanged, err
	}
	r = p.Next(active)
	if _, err := t.tx.Exec(ctx, insertRevision, columnsOf(r, p.Document)...); err != nil {
		return r, false, fmt.Errorf("store the revision: %w", err)
	}
	if _, err := t.tx.Exec(ctx, activate, r.ID); err != nil {
		return r, false, fmt.Errorf("activate the revision: %w", err)
	}
	message, err := t.encode(r)
	if err != nil {
		return r, false, fmt.Errorf("encode the activation: %w", err)
	}
	_, err = outbox.Append(ctx, t.tx, message)
	return r, false, err
}

// LockActive answers the active revision and its text, which stay the active ones until the transaction ends; false before the
// first.
func (t *Tx) LockActive(ctx context.Context) (revision.Revision, string, bool, error) {
	var id *uuid.UUID
	if err := t.tx.QueryRow(ctx, lockActivation).Scan(&id); err != nil {
		return revision.Revision{}, "", false, fmt.Errorf("lock the activation: %w", err)
	}
	active, ok, err := one(ctx, t.tx, activeRevision)
	if err != nil || !ok {
		return active, "", false, err
	}
	var text string
	if err := t.tx.QueryRow(ctx, documentByID, active.ID).Scan(&text); err != nil {
		return active, "", false, fmt.Errorf("read the active document: %w", err)
	}
	return active, text, true, nil
}

// KeepInert stores a document that may not become active and answers its revision's id; the same document with the same
// parent is kept once. It refuses a parent that does not exist.
func (s *Store) KeepInert(ctx context.Context, p revision.Put) (uuid.UUID, error) {
	r := p.Inert()
	_, err := s.pool.Exec(ctx, insertRevision+` on conflict do nothing`, columnsOf(r, p.Document)...)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == foreignKeyViolation {
		return uuid.Nil, revision.Unknown("parent_revision_id").WithCause(err)
	}
	if err != nil {
		return uuid.Nil, fmt.Errorf("keep the losing revision: %w", err)
	}
	var id uuid.UUID
	if err := s.pool.QueryRow(ctx, inertRevision, orNull(p.Parent), r.Digest).Scan(&id); err != nil {
		return uuid.Nil, fmt.Errorf("find the losing revision: %w", err)
	}
	return id, nil
}

// queryer is a pool or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func one(ctx context.Context, q queryer, sql string, args ...any) (revision.Revision, bool, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return revision.Revision{}, false, fmt.Errorf("read a revision: %w", err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, toRevision)
	if errors.Is(err, pgx.ErrNoRows) {
		return revision.Revision{}, false, nil
	}
	if err != nil {
		return revision.Revision{}, false, fmt.Errorf("read a revision: %w", err)
	}
	return r, true, nil
}

func toRevision(row pgx.CollectableRow) (revision.Revision, error) {
	var (
		r         revision.Revision
		parent    *uuid.UUID
		activated *time.Time
	)
	err := row.Scan(&r.ID, &parent, &r.Epoch, &r.Active, &r.By, &r.Summary, &r.CreatedAt, &activated, &r.Digest)
	if parent != nil {
		r.ParentID = *parent
	}
	if activated != nil {
		r.ActivatedAt = *activated
	}
	return r, err
}

func columnsOf(r revision.Revision, document string) []any {
	var activated *time.Time
	if !r.ActivatedAt.IsZero() {
		activated = &r.ActivatedAt
	}
	return []any{r.ID, orNull(r.ParentID), document, r.Digest, r.By, r.Summary, r.CreatedAt, r.Epoch, activated}
}

func orNull(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
