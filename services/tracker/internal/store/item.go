package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// columns of an item in the order that scan reads them. The body is read apart, as lists leave it out.
const columns = `i.id, i.project, i.number, i.type, i.title, i.status, i.priority, i.reporter, i.reporter_kind, i.assignee, i.parent, i.depth,
	i.due_at, i.due_all_day, i.start_at, i.start_all_day, i.estimate_minutes, i.points, i.labels, i.fields, i.checklists, i.collaborators,
	i.filed_unit, i.routing_unit, i.rank, i.watchers, i.muted, i.reassignments, i.reopens, i.version, i.created_at, i.updated_at,
	i.status_entered_at, i.done_at, i.closed_at, i.body_version, i.body_author, i.body_at, i.claim_holder, i.claim_kind, i.claim_until, i.open_asks, i.merged_into,
	i.removed_at, i.removed_by, i.removed_kind, i.removed_with`

// scan reads the columns, and whatever the query answers after them into more.
func scan(row pgx.Row, more ...any) (*item.Item, error) {
	i := &item.Item{}
	var priority int16
	var dueAt, startAt, claimUntil, removedAt *time.Time
	var dueAllDay, startAllDay bool
	var claimHolder, claimKind, removedBy, removedKind string
	var removedWith *uuid.UUID
	err := row.Scan(append([]any{
		&i.ID, &i.Project, &i.Number, &i.Type, &i.Title, &i.Status, &priority, &i.Reporter, &i.ReporterKind, &i.Assignee, &i.Parent, &i.Depth,
		&dueAt, &dueAllDay, &startAt, &startAllDay, &i.EstimateMinutes, &i.Points, &i.Labels, &i.Fields, &i.Checklists, &i.Collaborators,
		&i.FiledUnit, &i.RoutingUnit, &i.Rank, &i.Watchers, &i.Muted, &i.Reassignments, &i.Reopens, &i.Version, &i.CreatedAt, &i.UpdatedAt,
		&i.StatusEnteredAt, &i.DoneAt, &i.ClosedAt, &i.BodyVersion, &i.BodyAuthor, &i.BodyAt, &claimHolder, &claimKind, &claimUntil, &i.OpenAsks, &i.MergedInto,
		&removedAt, &removedBy, &removedKind, &removedWith,
	}, more...)...)
	if err != nil {
		return nil, err
	}
	i.Priority = item.Priority(priority)
	i.Due, i.Start = momentOf(dueAt, dueAllDay), momentOf(startAt, startAllDay)
	if claimUntil != nil {
		i.Claim = &item.Claim{Holder: claimHolder, Kind: claimKind, Until: *claimUntil}
	}
	if removedAt != nil && removedWith != nil {
		i.Removal = &item.Removal{By: removedBy, Kind: removedKind, At: *removedAt, With: *removedWith}
	}
	return i, nil
}

func momentOf(at *time.Time, allDay bool) *item.Moment {
	if at == nil {
		return nil
	}
	return &item.Moment{At: at.UTC(), AllDay: allDay}
}

// columnsOf answers what every write of an item stores, by column: the inverse of scan, with the body.
func columnsOf(i *item.Item) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"id": i.ID, "project": i.Project, "number": i.Number, "type": i.Type, "title": i.Title, "body": i.Body, "status": i.Status,
		"status_group": int16(item.GroupOf(i.Status)), "priority": item.Rank(i.Priority), "reporter": i.Reporter, "reporter_kind": i.ReporterKind,
		"assignee": i.Assignee, "parent": i.Parent, "depth": max(1, i.Depth), "due_at": nil, "due_all_day": false, "start_at": nil, "start_all_day": false,
		"estimate_minutes": i.EstimateMinutes, "points": i.Points, "labels": set(i.Labels), "fields": orEmpty(i.Fields), "checklists": list(i.Checklists),
		"collaborators": set(i.Collaborators), "filed_unit": i.FiledUnit, "routing_unit": i.RoutingUnit, "rank": i.Rank, "watchers": set(i.Watchers),
		"muted": set(i.Muted), "reassignments": i.Reassignments, "reopens": i.Reopens, "version": i.Version, "created_at": i.CreatedAt,
		"updated_at": i.UpdatedAt, "status_entered_at": i.StatusEnteredAt, "done_at": i.DoneAt, "closed_at": i.ClosedAt,
		"body_version": i.BodyVersion, "body_author": i.BodyAuthor, "body_at": i.BodyAt, "claim_holder": "", "claim_kind": "", "claim_until": nil,
		"open_asks": i.OpenAsks, "merged_into": i.MergedInto, "removed_at": nil, "removed_by": "", "removed_kind": "", "removed_with": nil,
	}
	if i.Due != nil {
		args["due_at"], args["due_all_day"] = i.Due.At, i.Due.AllDay
	}
	if i.Start != nil {
		args["start_at"], args["start_all_day"] = i.Start.At, i.Start.AllDay
	}
	if i.Claim != nil {
		args["claim_holder"], args["claim_kind"], args["claim_until"] = i.Claim.Holder, i.Claim.Kind, i.Claim.Until
	}
	if i.Removal != nil {
		args["removed_at"], args["removed_by"], args["removed_kind"], args["removed_with"] = i.Removal.At, i.Removal.By, i.Removal.Kind, i.Removal.With
	}
	return args
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// resolve answers the id that a key, a former key or an id names. `not_found` when nothing has it.
func resolve(ctx context.Context, q querier, name string) (uuid.UUID, error) {
	if id, err := uuid.Parse(name); err == nil {
		return id, nil
	}
	missing := fault.New(fault.NotFound, "there is no work item %q; list_work_items shows those there are", name).WithField("item")
	project, number, ok := splitKey(name)
	if !ok {
		return uuid.Nil, missing
	}
	var id uuid.UUID
	err := q.QueryRow(ctx, `select id from items where project = $1 and number = $2
		union all select item_id from former_keys where key = $3 limit 1`, project, number, item.Key(project, number)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, missing
	}
	return id, err
}

// splitKey reads a key such as OPS-12, in any case.
func splitKey(key string) (project string, number int32, ok bool) {
	at := strings.LastIndexByte(key, '-')
	if at <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(key[at+1:], 10, 32)
	return strings.ToUpper(key[:at]), int32(n), err == nil && n > 0
}

// ItemByName answers an item with its body and former keys.
func (s *Store) ItemByName(ctx context.Context, name string) (*item.Item, error) {
	id, err := resolve(ctx, s.pool, name)
	if err != nil {
		return nil, err
	}
	var body string
	var formerKeys []string
	i, err := scan(s.pool.QueryRow(ctx, `select `+columns+`, i.body,
			array(select key from former_keys f where f.item_id = i.id order by created_at desc limit 16)
		from items i where i.id = $1`, id), &body, &formerKeys)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noItem(name)
	}
	if err != nil {
		return nil, err
	}
	i.Body, i.FormerKeys = body, formerKeys
	return i, nil
}

func noItem(name string) error {
	return fault.New(fault.NotFound, "there is no work item %q; list_work_items shows those there are", name).WithField("item")
}

const insertItem = `insert into items (id, project, number, type, title, body, status, status_group, priority, reporter, reporter_kind, assignee, parent,
		depth, due_at, due_all_day, start_at, start_all_day, estimate_minutes, points, labels, fields, checklists, collaborators, filed_unit, routing_unit,
		rank, watchers, muted, reassignments, reopens, version, created_at, updated_at, status_entered_at, done_at, closed_at, body_version, body_author,
		body_at, open_asks)
	values (@id, @project, @number, @type, @title, @body, @status, @status_group, @priority, @reporter, @reporter_kind, @assignee, @parent,
		@depth, @due_at, @due_all_day, @start_at, @start_all_day, @estimate_minutes, @points, @labels, @fields, @checklists, @collaborators, @filed_unit,
		@routing_unit, @rank, @watchers, @muted, @reassignments, @reopens, @version, @created_at, @updated_at, @status_entered_at, @done_at, @closed_at,
		@body_version, @body_author, @body_at, @open_asks)`

func queueInsert(batch *pgx.Batch, i *item.Item) { batch.Queue(insertItem, columnsOf(i)) }

const updateItem = `update items set project = @project, number = @number, type = @type, title = @title, status = @status,
		status_group = @status_group, priority = @priority, assignee = @assignee, parent = @parent, depth = @depth, due_at = @due_at, due_all_day = @due_all_day,
		start_at = @start_at, start_all_day = @start_all_day, estimate_minutes = @estimate_minutes, points = @points, labels = @labels, fields = @fields,
		checklists = @checklists, collaborators = @collaborators, routing_unit = @routing_unit, rank = @rank, watchers = @watchers, muted = @muted,
		reassignments = @reassignments, reopens = @reopens, version = @version, updated_at = @updated_at, status_entered_at = @status_entered_at,
		done_at = @done_at, closed_at = @closed_at, body_version = @body_version, body_author = @body_author, body_at = @body_at,
		claim_holder = @claim_holder, claim_kind = @claim_kind, claim_until = @claim_until, open_asks = @open_asks, merged_into = @merged_into, removed_at = @removed_at,
		removed_by = @removed_by, removed_kind = @removed_kind, removed_with = @removed_with
	where id = @id`

// queueUpdate writes everything of an item but its body: see queueBody.
func queueUpdate(batch *pgx.Batch, i *item.Item) { batch.Queue(updateItem, columnsOf(i)) }

// set is never null.
func set(members []string) []string {
	if members == nil {
		return []string{}
	}
	return members
}

func orEmpty(values map[string]any) map[string]any {
	if values == nil {
		return map[string]any{}
	}
	return values
}

func list(checklists []item.Checklist) []item.Checklist {
	if checklists == nil {
		return []item.Checklist{}
	}
	return checklists
}
