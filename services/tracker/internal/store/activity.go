package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// ActivityFilter narrows what happened; every part that is set must hold.
type ActivityFilter struct {
	// Item or Project, one of them.
	Item    *uuid.UUID
	Project string
	Kinds   []string
	// Actor is a handle or a token's name; a seat is found under every name that it acts by.
	Actor      string
	ActorKinds []string
	// Assignee has the item now.
	Assignee string
	Notified *bool
	// From belongs to the span, To does not.
	From, To *time.Time
	// Text stands in what changed or in what was said. ForAgent leaves out what custom fields changed to, as some may be hidden from agents.
	Text     string
	ForAgent bool
	// Since is the place after which rows are shown, Before the one before which: 0 for no bound. Through bounds rows that come oldest first.
	Since, Before, Through int64
	OldestFirst            bool
	Limit                  int32
}

// Activity is a page of what happened.
type Activity struct {
	Entries []Entry
	More    bool
	// Keys name the items that the rows are about or name, by id.
	Keys map[uuid.UUID]string
	// Catalogue is what work of the rows' projects is made of.
	Catalogues map[string]Catalogue
}

// Activity reads a page in two round trips.
func (s *Store) Activity(ctx context.Context, f ActivityFilter) (*Activity, error) {
	a := &Activity{Keys: map[uuid.UUID]string{}}
	sql, args := f.query()
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	if a.Entries, err = pgx.CollectRows(rows, scanEntry); err != nil {
		return nil, err
	}
	if a.More = len(a.Entries) > int(f.Limit); a.More {
		a.Entries = a.Entries[:f.Limit]
	}
	ids, projects := a.named()
	if len(ids) == 0 {
		return a, nil
	}
	rest := &pgx.Batch{}
	rest.Queue(`select id, project, number from items where id = any($1)`, ids).Query(func(rows pgx.Rows) error { return nameKeys(rows, a.Keys) })
	rest.Queue(selectCatalogue+` where p.key = any($1)`, projects).Query(func(rows pgx.Rows) (err error) {
		a.Catalogues, err = collectCatalogues(rows)
		return err
	})
	return a, s.pool.SendBatch(ctx, rest).Close()
}

func (f ActivityFilter) query() (string, []any) {
	var args []any
	where := "true"
	add := func(sql string, values ...any) {
		at := make([]any, 0, len(values))
		for _, v := range values {
			args = append(args, v)
			at = append(at, len(args))
		}
		where += " and " + fmt.Sprintf(sql, at...)
	}
	if f.Item != nil {
		add("h.item_id = $%d", *f.Item)
	} else {
		add("h.project = $%d", f.Project)
	}
	if f.Since > 0 {
		add("h.position > $%d", f.Since)
	}
	if f.Before > 0 {
		add("h.position < $%d", f.Before)
	}
	if f.OldestFirst {
		add("h.position <= $%d", f.Through)
	}
	if len(f.Kinds) > 0 {
		add("h.kind = any($%d)", f.Kinds)
	}
	if f.Actor != "" {
		add("(h.actor = $%d or h.actor_seat = $%d)", f.Actor, f.Actor)
	}
	if len(f.ActorKinds) > 0 {
		add("h.actor_kind = any($%d)", f.ActorKinds)
	}
	if f.Assignee != "" {
		add("exists (select from items i where i.id = h.item_id and i.assignee = $%d)", f.Assignee)
	}
	if f.Notified != nil {
		add("h.notified = $%d", *f.Notified)
	}
	if f.From != nil {
		add("h.created_at >= $%d", *f.From)
	}
	if f.To != nil {
		add("h.created_at < $%d", *f.To)
	}
	if f.Text != "" {
		pattern := "%" + likeLiteral(f.Text) + "%"
		told := "h.fields"
		if f.ForAgent {
			told += " - 'fields'"
		}
		add("(h.excerpt ilike $%d or exists (select from jsonb_path_query("+told+", '$.*.* ? (@.type() == \"string\")') v where v #>> '{}' ilike $%d))", pattern, pattern)
	}
	direction := "desc"
	if f.OldestFirst {
		direction = "asc"
	}
	return fmt.Sprintf(`select %s from history h where %s order by h.position %s limit %d`, entryColumns, where, direction, f.Limit+1), args
}

var uuids = regexp.MustCompile(uuidPattern)

// named answers the items that the rows are about or name, and the projects that they are of.
func (a *Activity) named() (ids []uuid.UUID, projects []string) {
	seen := map[uuid.UUID]bool{}
	add := func(id uuid.UUID) {
		if !seen[id] {
			seen[id], ids = true, append(ids, id)
		}
	}
	for _, e := range a.Entries {
		projects = append(projects, e.Project)
		if e.ItemID != nil {
			add(*e.ItemID)
		}
		for _, f := range e.Change.Fields {
			for _, found := range uuids.FindAllString(f.From+" "+f.To, -1) {
				if id, err := uuid.Parse(found); err == nil {
					add(id)
				}
			}
		}
	}
	return ids, projects
}

// SinceTime answers when the first change after a place was made, in one project; nil when there is none.
func (s *Store) SinceTime(ctx context.Context, project string, since int64) (*time.Time, error) {
	var at time.Time
	err := s.pool.QueryRow(ctx, `select created_at from history where project = $1 and position > $2 order by position limit 1`, project, since).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &at, err
}

// NamedItem answers the item that a key, a former key or an id names; `not_found` when nothing does. What was destroyed is found by its id
// and the key it had, as its last row of history stays.
func (s *Store) NamedItem(ctx context.Context, name string) (uuid.UUID, error) {
	id, err := uuid.Parse(name)
	project, number, isKey := splitKey(name)
	if err != nil && !isKey {
		return uuid.Nil, noItem(name)
	}
	err = s.pool.QueryRow(ctx, `select id from items where id = $1 or project = $2 and number = $3
		union all select item_id from former_keys where key = $4
		union all select id from purged_items where id = $1 or key = $4 limit 1`, id, project, number, item.Key(project, number)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, noItem(name)
	}
	return id, err
}
