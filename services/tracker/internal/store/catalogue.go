package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
	"github.com/bullpenhq/bullpen/services/tracker/internal/worktype"
)

// Catalogue is what work of one project is made of.
type Catalogue struct {
	Types worktype.Set
	// Workspace and Own are the fields that every project has, and those that this one declares.
	Workspace, Own field.Document
	// Labels are the project's, archived ones too, by slug.
	Labels []label.Label
}

// Fields answers the custom fields that items of a scope have.
func (c Catalogue) Fields(scope field.Scope) field.Set {
	return field.Effective(c.Workspace, c.Own, scope)
}

// selectCatalogue answers one row a project. The labels come along: there are few, and a second question would cost more.
// selectDeclarations leaves them out.
const (
	selectCatalogue = `select p.key, c.types, c.fields, p.fields, coalesce((select jsonb_agg(to_jsonb(l) - 'project' - 'name' order by l.slug)
			from labels l where l.project = p.key), '[]')
		from catalogue c, projects p`
	selectDeclarations = `select p.key, c.types, c.fields, p.fields, '[]'::jsonb from catalogue c, projects p`
)

// queueCatalogue asks what work of a project is made of, as a transaction sees it; of its labels only when they are wanted. A project that is not
// there leaves c as it is. A write that changes no type, label or custom field, and files nothing, need not ask.
func queueCatalogue(batch *pgx.Batch, project string, labels bool, c *Catalogue) {
	sql := selectDeclarations
	if labels {
		sql = selectCatalogue
	}
	batch.Queue(sql+` where p.key = $1`, project).Query(func(rows pgx.Rows) error {
		all, err := collectCatalogues(rows)
		*c = all[project]
		return err
	})
}

// catalogue is queueCatalogue with the labels, asked at once. A project that does not exist is refused.
func catalogue(ctx context.Context, q querier, project string) (Catalogue, error) {
	rows, err := q.Query(ctx, selectCatalogue+` where p.key = $1`, project)
	if err != nil {
		return Catalogue{}, err
	}
	all, err := collectCatalogues(rows)
	if err != nil {
		return Catalogue{}, err
	}
	c, ok := all[project]
	if !ok {
		return Catalogue{}, fault.New(fault.Invalid, "there is no project %q", project).WithField("project")
	}
	return c, nil
}

func collectCatalogues(rows pgx.Rows) (map[string]Catalogue, error) {
	all := map[string]Catalogue{}
	var key string
	var declared []worktype.Type
	var c Catalogue
	_, err := pgx.ForEachRow(rows, []any{&key, &declared, &c.Workspace, &c.Own, &c.Labels}, func() error {
		c.Types = worktype.Effective(declared)
		all[key] = c
		declared, c = nil, Catalogue{}
		return nil
	})
	return all, err
}

// Catalogues answers what work of projects is made of, by key; a project that does not exist is left out. No keys stand for all projects.
func (s *Store) Catalogues(ctx context.Context, projects ...string) (map[string]Catalogue, error) {
	rows, err := s.pool.Query(ctx, selectCatalogue+` where cardinality($1::text[]) = 0 or p.key = any($1)`, set(projects))
	if err != nil {
		return nil, err
	}
	return collectCatalogues(rows)
}

// Workspace is what work of every project is made of.
type Workspace struct {
	Declared                    []worktype.Type
	Fields                      field.Document
	TypesVersion, FieldsVersion int32
}

// Version counts the changes of either list.
func (w Workspace) Version() int32 { return w.TypesVersion + w.FieldsVersion }

const selectWorkspace = `select types, fields, types_version, fields_version from catalogue`

func (w *Workspace) columns() []any {
	return []any{&w.Declared, &w.Fields, &w.TypesVersion, &w.FieldsVersion}
}

// Workspace reads what work of every project is made of.
func (s *Store) Workspace(ctx context.Context) (Workspace, error) {
	var w Workspace
	return w, s.pool.QueryRow(ctx, selectWorkspace).Scan(w.columns()...)
}

// CatalogueEdit replaces one list of the workspace or both; nil leaves a list as it is.
type CatalogueEdit struct {
	Types  *[]worktype.Type
	Fields *[]field.Declaration
	Act
}

// UpdateWorkspace writes the workspace's lists once per operation, each that changes with a row of history of its own. answer fills
// result with what stands now and the latest place; that is zero when nothing had to change.
func (s *Store) UpdateWorkspace(
	ctx context.Context, op ops.Operation, result proto.Message, e CatalogueEdit, answer func(Workspace, ops.Position),
) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		var w Workspace
		if err := tx.QueryRow(ctx, selectWorkspace+` for no key update`).Scan(w.columns()...); err != nil {
			return nil, err
		}
		before := w
		if err := w.revise(ctx, tx, e); err != nil {
			return nil, err
		}
		batch := &pgx.Batch{}
		batch.Queue(`update catalogue set types = $1, types_version = $2, fields = $3, fields_version = $4, updated_at = $5`,
			orEmptyList(w.Declared), w.TypesVersion, orEmptyList(w.Fields), w.FieldsVersion, e.At)
		var at ops.Position
		record := func(name, from, to string) error {
			sequence, err := drawPosition(ctx, tx)
			if err != nil {
				return err
			}
			at = position(sequence)
			return s.recordProject(ctx, batch, Event{Position: at, Change: item.Change{
				Kind: "catalogue_updated", By: e.By, Fields: map[string]item.Field{name: {From: from, To: to}}, Version: w.Version(), At: e.At,
			}})
		}
		var err error
		if w.TypesVersion != before.TypesVersion {
			err = record("types", counted(len(before.Declared), "type"), counted(len(w.Declared), "type"))
		}
		if err == nil && w.FieldsVersion != before.FieldsVersion {
			err = record("fields", counted(len(before.Fields), "field"), counted(len(w.Fields), "field"))
		}
		if err != nil {
			return nil, err
		}
		answer(w, at)
		if at == (ops.Position{}) {
			return nil, nil
		}
		return batch, nil
	})
	return s.written(replayed, err)
}

// revise checks both lists before either changes.
func (w *Workspace) revise(ctx context.Context, tx pgx.Tx, e CatalogueEdit) error {
	if e.Types != nil {
		next, err := worktype.Revise(w.Declared, *e.Types)
		if err != nil {
			return err
		}
		if !equalTypes(w.Declared, next) {
			w.Declared, w.TypesVersion = next, w.TypesVersion+1
		}
	}
	if e.Fields == nil {
		return nil
	}
	next, changed, err := w.Fields.Revise(*e.Fields, field.Terms{Types: worktype.Effective(w.Declared).Slugs(), Author: e.By.Name, Now: e.At})
	if err != nil || !changed {
		return err
	}
	rows, err := tx.Query(ctx, `select key, fields from projects where fields <> '[]' order by key`)
	if err != nil {
		return err
	}
	var key string
	var own field.Document
	_, err = pgx.ForEachRow(rows, []any{&key, &own}, func() error {
		err := next.Clash(key, own)
		own = nil
		return err
	})
	w.Fields, w.FieldsVersion = next, w.FieldsVersion+1
	return err
}

func equalTypes(a, b []worktype.Type) bool {
	if len(a) != len(b) {
		return false
	}
	for n := range a {
		if a[n] != b[n] {
			return false
		}
	}
	return true
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func orEmptyList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
