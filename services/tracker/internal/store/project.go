package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

// Project is where work is filed.
type Project struct {
	org.Project
	DefaultAssignee            string
	Archived                   bool
	Todo, Active, Done, Closed int32
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

// ListProjects answers the projects by key. q narrows to those whose key, name or purpose holds it.
func (s *Store) ListProjects(ctx context.Context, q string, archived bool) ([]Project, error) {
	rows, err := s.pool.Query(ctx, `select key, name, purpose, unit, lead, default_assignee, archived, todo, active, done, closed
		from projects join project_facts on project = key where (archived = false or $1) and ($2 = '' or key ilike $3 or name ilike $3 or purpose ilike $3) order by key`,
		archived, q, "%"+likeLiteral(q)+"%")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Project, error) {
		var p Project
		return p, row.Scan(&p.Key, &p.Name, &p.Purpose, &p.Unit, &p.Lead, &p.DefaultAssignee, &p.Archived, &p.Todo, &p.Active, &p.Done, &p.Closed)
	})
}
