package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// View is a saved query and the shape to show it in.
type View struct {
	ID uuid.UUID
	// Container is workspace, project:OPS, unit:sales or person:ana, with names resolved.
	Container string
	Name      string
	Type      string
	Params    query.Params
	// Owner has the view alone; empty for everybody's.
	Owner     string
	Protected bool
	// First is shown first in its container, as one view of it is.
	First     bool
	Icon      string
	Version   int32
	Author    string
	UpdatedAt time.Time
}

// same reports whether a replacement says nothing new.
func (v View) same(other View) bool {
	return v.Container == other.Container && v.Name == other.Name && v.Type == other.Type && maps.Equal(v.Params, other.Params) && v.Owner == other.Owner &&
		v.Protected == other.Protected && v.First == other.First && v.Icon == other.Icon
}

const viewColumns = `id, container, name, type, params, owner, protected, first, icon, version, author, updated_at`

func scanView(row pgx.CollectableRow) (View, error) {
	var v View
	return v, row.Scan(&v.ID, &v.Container, &v.Name, &v.Type, &v.Params, &v.Owner, &v.Protected, &v.First, &v.Icon, &v.Version, &v.Author, &v.UpdatedAt)
}

// Views answers the views of a container that everybody has, and those of one colleague alone, by name.
func (s *Store) Views(ctx context.Context, container, viewer string) ([]View, error) {
	rows, err := s.pool.Query(ctx, `select `+viewColumns+` from views where container = $1 and (owner = '' or owner = $2) order by name, id`, container, viewer)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanView)
}

// ViewByID answers a view; `not_found` when there is none.
func (s *Store) ViewByID(ctx context.Context, id uuid.UUID) (View, error) {
	return viewByID(ctx, s.pool, id, "")
}

func viewByID(ctx context.Context, q querier, id uuid.UUID, lock string) (View, error) {
	rows, err := q.Query(ctx, `select `+viewColumns+` from views where id = $1`+lock, id)
	if err != nil {
		return View{}, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, scanView)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, fault.New(fault.NotFound, "there is no view %q; list_work_views shows those there are", id).WithField("id")
	}
	return v, err
}

// SaveView writes a view, whole, once per operation: a new one when v has no id. answer fills result with the view as it stands; its
// position is zero when nothing had to change.
func (s *Store) SaveView(ctx context.Context, op ops.Operation, result proto.Message, v View, a Act, answer func(View, ops.Position)) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		// Whoever settles which view is first does so alone in the container.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, "views of "+v.Container); err != nil {
			return nil, err
		}
		before, err := s.replaced(ctx, tx, &v, a)
		if err != nil {
			return nil, err
		}
		batch := &pgx.Batch{}
		if before.ID == v.ID && before.same(v) {
			answer(before, ops.Position{})
			return batch, nil
		}
		sequence, err := drawPosition(ctx, tx)
		if err != nil {
			return nil, err
		}
		v.Version, v.UpdatedAt = before.Version+1, a.At
		if v.First {
			batch.Queue(`update views set first = false, version = version + 1, updated_at = $3 where container = $1 and first and id <> $2`, v.Container, v.ID, a.At)
		}
		batch.Queue(`insert into views (id, container, name, type, params, owner, protected, first, icon, version, author, created_at, updated_at)
				values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
			on conflict (id) do update set container = $2, name = $3, type = $4, params = $5, owner = $6, protected = $7, first = $8, icon = $9, version = $10, updated_at = $12`,
			v.ID, v.Container, v.Name, v.Type, v.Params, v.Owner, v.Protected, v.First, v.Icon, v.Version, v.Author, a.At)
		project, _ := strings.CutPrefix(v.Container, "project:")
		if project == v.Container {
			project = ""
		}
		e := Event{Project: project, Position: position(sequence), Change: item.Change{
			Kind: "view_saved", By: a.By, At: a.At, Version: v.Version, Fields: map[string]item.Field{"view": {From: before.Name, To: v.Name}},
		}}
		answer(v, e.Position)
		return batch, s.recordProject(ctx, batch, e)
	})
	return s.written(replayed, err)
}

// replaced answers the view that v takes the place of, the zero one for a new view, which is given its id and author.
func (s *Store) replaced(ctx context.Context, tx pgx.Tx, v *View, a Act) (View, error) {
	if v.ID == uuid.Nil {
		id, err := uuid.NewV7()
		v.ID, v.Author = id, a.By.Name
		return View{}, err
	}
	before, err := viewByID(ctx, tx, v.ID, " for no key update")
	if err != nil {
		return before, err
	}
	v.Author = before.Author
	mine := func(name string) bool { return name != "" && (name == a.By.Name || name == a.By.Seat) }
	if (before.Protected || before.Owner != "") && !mine(before.Author) && !mine(before.Owner) {
		return before, fault.New(fault.Forbidden, "the view %q is %s's and only they change it: save one of your own without id", before.Name, ownerOf(before)).WithField("id")
	}
	return before, nil
}

func ownerOf(v View) string {
	if v.Owner != "" {
		return v.Owner
	}
	return v.Author
}

// NoContainer refuses a text that names no place for views.
func NoContainer(text string) error {
	return fault.New(fault.Invalid, "container is workspace, project: and a key, unit: and an id or name, or person: and a handle, not %s", fmt.Sprintf("%q", text)).
		WithField("container")
}
