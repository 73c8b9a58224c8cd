package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// columns of an item in the order that scan reads them. The body is read apart, as lists leave it out.
const columns = `i.id, i.project, i.number, i.type, i.title, i.status, i.priority, i.reporter, i.reporter_kind, i.assignee, i.parent, i.due,
	i.estimate_minutes, i.watchers, i.muted, i.reassignments, i.reopens, i.version, i.created_at, i.updated_at, i.status_entered_at, i.done_at, i.closed_at`

// fields answers where the columns go.
func fields(i *item.Item, priority *int16) []any {
	return []any{
		&i.ID, &i.Project, &i.Number, &i.Type, &i.Title, &i.Status, priority, &i.Reporter, &i.ReporterKind, &i.Assignee, &i.Parent, &i.Due,
		&i.EstimateMinutes, &i.Watchers, &i.Muted, &i.Reassignments, &i.Reopens, &i.Version, &i.CreatedAt, &i.UpdatedAt, &i.StatusEnteredAt, &i.DoneAt, &i.ClosedAt,
	}
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
	i := &item.Item{}
	var priority int16
	err = s.pool.QueryRow(ctx, `select `+columns+`, i.body,
			array(select key from former_keys f where f.item_id = i.id order by created_at desc limit 16)
		from items i where i.id = $1`, id).Scan(append(fields(i, &priority), &i.Body, &i.FormerKeys)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noItem(name)
	}
	i.Priority = item.Priority(priority)
	return i, err
}

func noItem(name string) error {
	return fault.New(fault.NotFound, "there is no work item %q; list_work_items shows those there are", name).WithField("item")
}

// lock locks an item for a change and draws the change's place in the order of writes, in that order.
func lock(ctx context.Context, tx pgx.Tx, name string) (*item.Item, int64, string, error) {
	id, err := resolve(ctx, tx, name)
	if err != nil {
		return nil, 0, "", err
	}
	i := &item.Item{}
	var priority int16
	var sequence int64
	var lead string
	err = tx.QueryRow(ctx, `with i as materialized (select * from items where id = $1 for no key update)
		select `+columns+`, i.body, p.lead, nextval('positions') from i join projects p on p.key = i.project`, id).
		Scan(append(fields(i, &priority), &i.Body, &lead, &sequence)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, "", noItem(name)
	}
	if err != nil {
		return nil, 0, "", fmt.Errorf("lock item: %w", err)
	}
	i.Priority = item.Priority(priority)
	return i, sequence, lead, nil
}

func queueInsert(batch *pgx.Batch, i *item.Item) {
	batch.Queue(`insert into items (id, project, number, type, title, body, status, status_group, priority, reporter, reporter_kind, assignee, parent, due,
			estimate_minutes, watchers, muted, reassignments, reopens, version, created_at, updated_at, status_entered_at, done_at, closed_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`,
		i.ID, i.Project, i.Number, i.Type, i.Title, i.Body, i.Status, int16(item.GroupOf(i.Status)), item.Rank(i.Priority), i.Reporter, i.ReporterKind,
		i.Assignee, i.Parent, i.Due, i.EstimateMinutes, set(i.Watchers), set(i.Muted), i.Reassignments, i.Reopens, i.Version, i.CreatedAt, i.UpdatedAt,
		i.StatusEnteredAt, i.DoneAt, i.ClosedAt)
}

func queueUpdate(batch *pgx.Batch, i *item.Item) {
	batch.Queue(`update items set type = $2, title = $3, body = $4, status = $5, status_group = $6, priority = $7, assignee = $8, parent = $9, due = $10,
			estimate_minutes = $11, watchers = $12, muted = $13, reassignments = $14, reopens = $15, version = $16, updated_at = $17, status_entered_at = $18,
			done_at = $19, closed_at = $20
		where id = $1`,
		i.ID, i.Type, i.Title, i.Body, i.Status, int16(item.GroupOf(i.Status)), item.Rank(i.Priority), i.Assignee, i.Parent, i.Due, i.EstimateMinutes,
		set(i.Watchers), set(i.Muted), i.Reassignments, i.Reopens, i.Version, i.UpdatedAt, i.StatusEnteredAt, i.DoneAt, i.ClosedAt)
}

// set is never null.
func set(members []string) []string {
	if members == nil {
		return []string{}
	}
	return members
}
