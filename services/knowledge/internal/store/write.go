package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/page"
)

// Draft is a page that is being written.
type Draft struct {
	Page *page.Page
	// Parent, unless empty, names the page above.
	Parent string
	// Message is why, for the history.
	Message string
	// Mentions are the colleagues that the body names.
	Mentions []string
	By       page.Author
}

// InsertPage writes a new page once per operation. answer fills result when the page stands; on a replay result is the first answer.
func (s *Store) InsertPage(ctx context.Context, op ops.Operation, result proto.Message, d Draft, answer func(ops.Position)) error {
	p := d.Page
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		if err := s.above(ctx, tx, p, d.Parent); err != nil {
			return nil, err
		}
		var sequence int64
		var taken bool
		err := tx.QueryRow(ctx, `select nextval('positions'), exists (select from pages where container = $1 and address = $2 and status <> 'trashed')`,
			p.Container, page.Address(p.Title)).Scan(&sequence, &taken)
		if err != nil {
			return nil, err
		}
		if taken {
			return nil, page.TitleTaken(p.Container, p.Title)
		}
		batch := &pgx.Batch{}
		s.queuePage(batch, d)
		message, err := s.encode(Event{Page: p, By: d.By, Mentions: d.Mentions, Position: position(sequence)})
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		if _, err := outbox.Queue(ctx, batch, message); err != nil {
			return nil, err
		}
		batch.Queue(`insert into history (position, page_id, kind, actor, actor_kind, actor_seat, fields, turn_id, version, created_at)
			values ($1, $2, 'created', $3, $4, $5, $6, $7, $8, $9)`,
			sequence, p.ID, d.By.Name, d.By.Kind, d.By.Seat, map[string]any{"title": map[string]string{"to": p.Title}, "body": map[string]string{"to": fmt.Sprintf("%d bytes", len(p.Body))}},
			d.By.Turn, p.Version, p.CreatedAt)
		answer(position(sequence))
		return batch, nil
	})
	if pg.IsUnique(err, "pages_address") { // lost to another writer between the look and the commit
		return page.TitleTaken(p.Container, p.Title)
	}
	if err == nil && !replayed {
		s.wake()
	}
	return err
}

func (s *Store) queuePage(batch *pgx.Batch, d Draft) {
	p := d.Page
	var watchers []string
	if d.By.Seat != "" {
		watchers = []string{d.By.Seat}
	}
	batch.Queue(`insert into pages (id, container, parent, title, address, body, status, labels, watchers, author, author_kind, editor, version, revision, created_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9::text[], '{}'), $10, $11, $12, $13, $14, $15, $15)`,
		p.ID, p.Container, p.Parent, p.Title, page.Address(p.Title), p.Body, p.Status, p.Labels, watchers, p.Author, d.By.Kind, p.Editor, p.Version, p.Revision, p.CreatedAt)
	batch.Queue(`insert into revisions (page_id, revision, title, body, author, author_kind, message, turn_id, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, p.ID, p.Revision, p.Title, p.Body, d.By.Name, d.By.Kind, d.Message, d.By.Turn, p.CreatedAt)
	batch.Queue(`insert into page_search (page_id, document) values ($1, setweight(to_tsvector('simple', $2), 'A') || setweight(to_tsvector('simple', $3), 'B'))`,
		p.ID, p.Title, p.Body)
	for _, to := range page.Links(p.Body) {
		batch.Queue(`insert into links (from_page, to_page) values ($1, $2)`, p.ID, to)
	}
}

// above puts the page below another one of its container.
func (s *Store) above(ctx context.Context, tx pgx.Tx, p *page.Page, name string) error {
	if name == "" {
		return nil
	}
	var id uuid.UUID
	var container, status string
	err := tx.QueryRow(ctx, `select id, container, status from pages where id::text = lower($1) or container = $2 and address = $3 and status <> 'trashed' limit 1`,
		name, p.Container, page.Address(name)).Scan(&id, &container, &status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fault.New(fault.Invalid, "parent names no page of %s: there is no %q", p.Container, name).WithField("parent")
	case err != nil:
		return err
	case container != p.Container:
		return fault.New(fault.Invalid, "parent is in container %s and this page in %s: a page and the one above it are in one container", container, p.Container).WithField("parent")
	case status == page.Trashed:
		return fault.New(fault.Invalid, "parent is in the trash").WithField("parent")
	}
	p.Parent = &id
	return nil
}
