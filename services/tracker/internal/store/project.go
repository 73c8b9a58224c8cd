package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

// Project is where work is filed.
type Project struct {
	org.Project
	DefaultAssignee string
	Archived        bool
	// TargetDate is midnight UTC of a day of the company's calendar; nil for none.
	TargetDate                 *time.Time
	Version                    int32
	Todo, Active, Done, Closed int32
	// LastChange is nil when nothing was ever filed.
	LastChange *LastChange
}

// LastChange is the last thing that happened in a project.
type LastChange struct {
	At     time.Time
	By     string
	ByKind string
}

// SyncProjects brings the org chart's part of the projects up to a revision. An older revision than the one written changes
// nothing; a project that the chart no longer names keeps its work and its last name.
func (s *Store) SyncProjects(ctx context.Context, o *org.Org) error {
	batch := &pgx.Batch{}
	for _, p := range o.Projects {
		batch.Queue(`insert into projects as p (key, name, purpose, unit, lead, epoch) values ($1, $2, $3, $4, $5, $6)
			on conflict (key) do update set name = excluded.name, purpose = excluded.purpose, unit = excluded.unit, lead = excluded.lead,
				epoch = excluded.epoch, updated_at = now()
			where p.epoch < excluded.epoch`, p.Key, p.Name, p.Purpose, p.Unit, p.Lead, o.Epoch)
	}
	return s.pool.SendBatch(ctx, batch).Close()
}

// ProjectFilter narrows a list of projects; every part that is set must hold.
type ProjectFilter struct {
	// Q is a part of the key, the name or the purpose.
	Q string
	// Unit is an id; nil for any.
	Unit *string
	// Archived lets archived projects in; ArchivedOnly leaves all others out.
	Archived, ArchivedOnly bool
	// Sort is one of key, name, unit, todo, active, done, closed, last_change and target; `-` before it reverses.
	Sort string
}

// projectSort answers what lists of projects are sorted by. What has no value comes last both ways.
func projectSort(sort string) (string, error) {
	name, reversed := strings.CutPrefix(sort, "-")
	column := name
	switch name {
	case "key", "todo", "active", "done", "closed":
	case "name", "unit":
		column = "nullif(" + name + ", '')"
	case "last_change":
		column = "last_change_at"
	case "target":
		column = "target_date"
	default:
		return "", fmt.Errorf("projects cannot be sorted by %q", sort)
	}
	if reversed {
		return column + " desc nulls last, key", nil
	}
	return column + " asc nulls last, key", nil
}

// Projects is a list of projects.
type Projects struct {
	Projects []Project
	// Total is how many there are that fit, shown or not.
	Total int32
	// Live and Archived are how many there are whatever was asked for.
	Live, Archived int32
}

const projectColumns = `key, name, purpose, unit, lead, default_assignee, archived, target_date, version, todo, active, done, closed,
	last_change_at, coalesce(last_change_by, ''), coalesce(last_change_kind, '')`

func scanProject(row pgx.CollectableRow) (Project, error) {
	var p Project
	var at *time.Time
	var last LastChange
	err := row.Scan(&p.Key, &p.Name, &p.Purpose, &p.Unit, &p.Lead, &p.DefaultAssignee, &p.Archived, &p.TargetDate, &p.Version, &p.Todo, &p.Active,
		&p.Done, &p.Closed, &at, &last.By, &last.ByKind)
	if at != nil {
		last.At = *at
		p.LastChange = &last
	}
	return p, err
}

// fittingProjects are those that a filter lets in: $1 is for ilike, empty for any, $2 a unit or null, $3 and $4 archived and archivedOnly.
const fittingProjects = ` where ($1 = '' or key ilike $1 or name ilike $1 or purpose ilike $1) and ($2::text is null or unit = $2)
	and (not archived or $3 or $4) and (archived or not $4)`

// ListProjects answers at most limit projects.
func (s *Store) ListProjects(ctx context.Context, f ProjectFilter, limit int) (Projects, error) {
	order, err := projectSort(f.Sort)
	if err != nil {
		return Projects{}, err
	}
	pattern := ""
	if f.Q != "" {
		pattern = "%" + likeLiteral(f.Q) + "%"
	}
	args := []any{pattern, f.Unit, f.Archived, f.ArchivedOnly}
	var out Projects
	batch := &pgx.Batch{}
	batch.Queue(fmt.Sprintf(`select %s from projects join project_facts on project = key%s order by %s limit %d`,
		projectColumns, fittingProjects, order, limit), args...).Query(func(rows pgx.Rows) (err error) {
		out.Projects, err = pgx.CollectRows(rows, scanProject)
		return err
	})
	batch.Queue(`select count(*) from projects`+fittingProjects, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&out.Total) })
	batch.Queue(`select count(*) filter (where not archived), count(*) filter (where archived) from projects`).
		QueryRow(func(row pgx.Row) error { return row.Scan(&out.Live, &out.Archived) })
	return out, s.pool.SendBatch(ctx, batch).Close()
}

// ProjectByKey answers a project and what its work is made of. `not_found` when there is none.
func (s *Store) ProjectByKey(ctx context.Context, key string) (Project, Catalogue, error) {
	var p Project
	var c Catalogue
	batch := &pgx.Batch{}
	batch.Queue(`select `+projectColumns+` from projects join project_facts on project = key where key = $1`, key).Query(func(rows pgx.Rows) (err error) {
		p, err = pgx.CollectExactlyOneRow(rows, scanProject)
		return err
	})
	batch.Queue(selectCatalogue+` where p.key = $1`, key).Query(func(rows pgx.Rows) error {
		all, err := collectCatalogues(rows)
		c = all[key]
		return err
	})
	err := s.pool.SendBatch(ctx, batch).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return p, c, missingProject(ctx, s.pool, key)
	}
	return p, c, err
}

// missingProject refuses the key of a project that is not there, with the nearest three.
func missingProject(ctx context.Context, q querier, key string) error {
	rows, err := q.Query(ctx, `select key from projects where not archived order by key`)
	if err != nil {
		return err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	hint := "there are none"
	if len(keys) > 0 {
		hint = "the nearest are " + strings.Join(nearest.Closest(key, keys, 3), ", ")
	}
	return fault.New(fault.NotFound, "there is no project %q; %s; list_projects shows all of them", key, hint).WithField("project")
}
