package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
)

// queueLabels declares labels of a project. One that somebody declared meanwhile is no mistake; one that reads like another that somebody
// declared meanwhile fails the write, see [labelRace]. They go in the order of slugs, so that two writes that declare the same ones wait for
// each other one way only.
func queueLabels(batch *pgx.Batch, project string, labels []label.Label, by item.Actor, at time.Time) {
	for _, l := range slices.SortedFunc(slices.Values(labels), func(a, b label.Label) int { return strings.Compare(a.Slug, b.Slug) }) {
		batch.Queue(`insert into labels (project, slug, label, name, color, description, archived, author, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			on conflict (project, slug) do nothing`, project, l.Slug, l.Label, l.Name(), l.Color, l.Description, l.Archived, by.Name, at)
	}
}

// labelRace says in words that a label was declared by two callers at once, each under another slug.
func labelRace(err error) error {
	if pg.IsUnique(err, "labels_name_idx") {
		return fault.New(fault.Conflict, "somebody declared a label that reads the same at this very moment: repeat the call").WithCause(err)
	}
	return err
}

// LabelEdit changes the labels of a project.
type LabelEdit struct {
	Project string
	label.Edit
	Act
}

// UpdateLabels changes a project's labels once per operation. answer fills result; its position is zero when nothing had to change. version is
// the project's after the change.
func (s *Store) UpdateLabels(
	ctx context.Context, op ops.Operation, result proto.Message, e LabelEdit, answer func(out label.Edited, version int32, at ops.Position),
) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		p, err := lockProject(ctx, tx, e.Project)
		if err != nil {
			return nil, err
		}
		declared, err := labelsOf(ctx, tx, e.Project)
		if err != nil {
			return nil, err
		}
		out, err := e.Apply(declared)
		if err != nil {
			return nil, err
		}
		if len(out.Added)+len(out.Changed) == 0 {
			answer(out, p.Version, ops.Position{})
			return nil, nil
		}
		batch := &pgx.Batch{}
		queueLabels(batch, e.Project, out.Added, e.By, e.At)
		for _, l := range out.Changed {
			batch.Queue(`update labels set label = $3, name = $4, archived = $5 where project = $1 and slug = $2`, e.Project, l.Slug, l.Label, l.Name(), l.Archived)
		}
		batch.Queue(`update projects set version = version + 1, updated_at = $2 where key = $1`, e.Project, e.At)
		answer(out, p.Version+1, p.at)
		return batch, s.recordProject(ctx, batch, p.changed(e.Act, map[string]item.Field{"tags": describeLabels(declared, out)}))
	})
	return s.written(replayed, labelRace(err))
}

func labelsOf(ctx context.Context, q querier, project string) ([]label.Label, error) {
	rows, err := q.Query(ctx, `select slug, label, color, description, archived, author, created_at from labels where project = $1 order by slug`, project)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[label.Label])
}

// describeLabels tells of those that are there no more, or not as they were, and of those that are.
func describeLabels(before []label.Label, out label.Edited) item.Field {
	was := map[string]string{}
	for _, l := range before {
		was[l.Slug] = told(l)
	}
	var from, to []string
	for _, l := range out.Changed {
		from = append(from, was[l.Slug])
		if !l.Archived {
			to = append(to, told(l))
		}
	}
	for _, l := range out.Added {
		to = append(to, told(l))
	}
	return item.Field{From: item.Members(from), To: item.Members(to)}
}

func told(l label.Label) string {
	if l.Name() == l.Slug {
		return l.Slug
	}
	return l.Slug + "=" + l.Label
}
