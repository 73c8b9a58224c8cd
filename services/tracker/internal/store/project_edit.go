package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/worktype"
)

// ProjectEdit changes what a project keeps for itself beside its labels; nil leaves a part as it is.
type ProjectEdit struct {
	Project string
	// Fields are all that the project declares.
	Fields          *[]field.Declaration
	DefaultAssignee *string
	// TargetDate points to the new day as ListProjects answers it, nil for none.
	TargetDate **time.Time
	Archived   *bool
	Act
}

// settings is a project that a write holds locked.
type settings struct {
	Key             string
	Version         int32
	DefaultAssignee string
	TargetDate      *time.Time
	Archived        bool
	Own             field.Document
	// at is the write's place in the order of writes, drawn after the lock.
	at ops.Position
}

// lockProject locks a project's row for a change of its own settings.
func lockProject(ctx context.Context, tx pgx.Tx, key string) (*settings, error) {
	p := &settings{Key: key}
	var sequence int64
	err := tx.QueryRow(ctx, `with p as materialized (select * from projects where key = $1 for no key update)
		select version, default_assignee, target_date, archived, fields, nextval('positions') from p`, key).
		Scan(&p.Version, &p.DefaultAssignee, &p.TargetDate, &p.Archived, &p.Own, &sequence)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, missingProject(ctx, tx, key)
	}
	p.at = position(sequence)
	return p, err
}

// changed is what a change of the project's settings tells the world.
func (p *settings) changed(a Act, fields map[string]item.Field) Event {
	return Event{Project: p.Key, Position: p.at, Change: item.Change{Kind: "project_updated", By: a.By, Fields: fields, Version: p.Version + 1, At: a.At}}
}

// UpdateProject changes a project's settings once per operation. answer fills result with the version that stands; its position is zero when
// nothing had to change.
func (s *Store) UpdateProject(ctx context.Context, op ops.Operation, result proto.Message, e ProjectEdit, answer func(version int32, at ops.Position)) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		p, err := lockProject(ctx, tx, e.Project)
		if err != nil {
			return nil, err
		}
		fields := map[string]item.Field{}
		if e.Fields != nil {
			if err := p.declare(ctx, tx, e, fields); err != nil {
				return nil, err
			}
		}
		p.set(e, fields)
		if len(fields) == 0 {
			answer(p.Version, ops.Position{})
			return nil, nil
		}
		batch := &pgx.Batch{}
		batch.Queue(`update projects set version = version + 1, default_assignee = $2, target_date = $3, archived = $4, fields = $5, updated_at = $6
			where key = $1`, p.Key, p.DefaultAssignee, p.TargetDate, p.Archived, orEmptyList(p.Own), e.At)
		answer(p.Version+1, p.at)
		return batch, s.recordProject(ctx, batch, p.changed(e.Act, fields))
	})
	return s.written(replayed, err)
}

// declare replaces the fields that the project declares. The workspace's row is locked against a change of its fields meanwhile, which this
// change is checked against.
func (p *settings) declare(ctx context.Context, tx pgx.Tx, e ProjectEdit, told map[string]item.Field) error {
	var w Workspace
	if err := tx.QueryRow(ctx, selectWorkspace+` for share`).Scan(w.columns()...); err != nil {
		return err
	}
	next, changed, err := p.Own.Revise(*e.Fields, field.Terms{
		Types: worktype.Effective(w.Declared).Slugs(), Workspace: w.Fields, Agent: e.By.Kind == "agent", Author: e.By.Name, Now: e.At,
	})
	if err != nil || !changed {
		return err
	}
	told["fields"] = item.Field{From: counted(len(p.Own), "field"), To: counted(len(next), "field")}
	p.Own = next
	return nil
}

func (p *settings) set(e ProjectEdit, told map[string]item.Field) {
	if to := e.DefaultAssignee; to != nil && *to != p.DefaultAssignee {
		told["default_assignee"] = item.Field{From: p.DefaultAssignee, To: *to}
		p.DefaultAssignee = *to
	}
	if e.TargetDate != nil && dayOf(*e.TargetDate) != dayOf(p.TargetDate) {
		told["target_date"] = item.Field{From: dayOf(p.TargetDate), To: dayOf(*e.TargetDate)}
		p.TargetDate = *e.TargetDate
	}
	if to := e.Archived; to != nil && *to != p.Archived {
		told["archived"] = item.Field{From: strconv.FormatBool(p.Archived), To: strconv.FormatBool(*to)}
		p.Archived = *to
	}
}

func dayOf(day *time.Time) string {
	if day == nil {
		return ""
	}
	return day.Format(time.DateOnly)
}
