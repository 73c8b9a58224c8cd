package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// maxReach bounds how many items are looked at for circles of waiting.
const maxReach = 4096

// selectStanding follows what is open and waited for, from the items asked about to whatever those wait for, so that circles show. The
// limit ends the recursion itself, as it makes no more rows than are taken. How far it reaches nobody can estimate, so what it reaches is looked up
// one by one: a planner that expects thousands would read every item.
const selectStanding = `with recursive reach (id) as (
		select unnest($1::uuid[])
		union select r.to_id from reach join relations r on r.from_id = reach.id and r.kind = 'waiting_on' and r.cleared_at is null
			cross join lateral (select from items where id = r.to_id and status_group < 2 and removed_at is null limit 1) t),
	near as materialized (select id from reach limit $2)
select 'waiting_on', r.from_id, r.to_id, coalesce(t.project || '-' || t.number, p.key, ''), coalesce(t.status_group < 2 and t.removed_at is null, false),
	r.one_sided, t.id is null or t.removed_at is not null or r.one_sided and (select count(*) from relations d
		where d.to_id = r.to_id and d.kind = 'waiting_on' and d.cleared_at is null and not d.one_sided) >= $3, 0, r.created_at
from near join relations r on r.from_id = near.id and r.kind = 'waiting_on' and r.cleared_at is null
	left join lateral (select * from items where id = r.to_id limit 1) t on true left join purged_items p on p.id = r.to_id
union all
select 'duplicates', r.from_id, r.to_id, t.project || '-' || t.number, false, false, false, 0, r.created_at
from relations r join items t on t.id = r.to_id where r.from_id = any($1) and r.kind = 'duplicates' and r.cleared_at is null
union all
select 'part', i.id, i.parent, '', p.project <> i.project, i.depth > $4, false, 0, i.created_at
from items i join items p on p.id = i.parent where i.id = any($1) and (p.project <> i.project or i.depth > $4)
union all
select 'parts', parent, parent, '', false, false, false, count(*)::int, now() from items where parent = any($1) and removed_at is null group by parent
order by 9, 3`

// standings answers how each of some items stands among the others. An item that nothing is to be said of is not in the answer, and
// reads as the zero value.
func standings(ctx context.Context, q querier, ids []uuid.UUID) (map[uuid.UUID]item.Standing, error) {
	rows, err := q.Query(ctx, selectStanding, ids, maxReach, item.MaxDependents, item.MaxDepth)
	if err != nil {
		return nil, err
	}
	return collectStandings(rows)
}

func collectStandings(rows pgx.Rows) (map[uuid.UUID]item.Standing, error) {
	standing := map[uuid.UUID]item.Standing{}
	edges := map[uuid.UUID][]uuid.UUID{}
	var kind, key string
	var id, to uuid.UUID
	var is, one, final bool
	var parts int32
	var at time.Time
	_, err := pgx.ForEachRow(rows, []any{&kind, &id, &to, &key, &is, &one, &final, &parts, &at}, func() error {
		s := standing[id]
		switch kind {
		case "waiting_on":
			if is {
				edges[id] = append(edges[id], to)
			}
			s.Waiting = append(s.Waiting, item.Waiting{ID: to, Key: key, Open: is, OneSided: one && !final, OneSidedFinal: final})
			if one && !final {
				s.Flag(item.FlagOneSided)
			}
			if final {
				s.Flag(item.FlagOneSidedFinal)
			}
		case "duplicates":
			s.DuplicateOf = key
		case "part":
			if is {
				s.Flag(item.FlagInconsistentProject)
			}
			if one {
				s.Flag(item.FlagTooDeep)
			}
		case "parts":
			s.Subtasks = parts
		}
		standing[id] = s
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id := range item.Cyclic(edges) {
		s := standing[id]
		s.Flag(item.FlagCycle)
		standing[id] = s
	}
	return standing, nil
}

// Standings answers how each of some items stands among the others.
func (s *Store) Standings(ctx context.Context, ids ...uuid.UUID) (map[uuid.UUID]item.Standing, error) {
	return standings(ctx, s.pool, ids)
}

// Link is one edge of an item, seen from that item.
type Link struct {
	// Kind is waiting_on, blocking, linked, duplicates, duplicated_by or page.
	Kind string
	// To is the other item's key or the page's id.
	To string
	// Title and Status are the other item's; empty for a page, and for what was destroyed.
	Title, Status string
	Note          string
	Author        string
	CreatedAt     time.Time
}

const selectLinks = `select case when r.from_id = $1 then r.kind else case r.kind when 'waiting_on' then 'blocking' when 'duplicates' then 'duplicated_by' else r.kind end end,
	coalesce(o.project || '-' || o.number, p.key, r.to_id::text), coalesce(o.title, ''), coalesce(o.status, ''), r.note, r.author, r.created_at
from (select * from relations where from_id = $1 and cleared_at is null
	union all select * from relations where to_id = $1 and kind in ('waiting_on', 'linked', 'duplicates') and cleared_at is null) r
	left join items o on r.kind <> 'page' and o.id = case when r.from_id = $1 then r.to_id else r.from_id end
	left join purged_items p on r.kind <> 'page' and p.id = r.to_id
order by r.created_at, r.to_id, r.from_id`

// links answers everything that an item is connected with, in both directions, the oldest edge first.
func links(ctx context.Context, q querier, id uuid.UUID) ([]Link, error) {
	rows, err := q.Query(ctx, selectLinks, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanLink)
}

func scanLink(row pgx.CollectableRow) (Link, error) {
	var l Link
	return l, row.Scan(&l.Kind, &l.To, &l.Title, &l.Status, &l.Note, &l.Author, &l.CreatedAt)
}

// Links is [links] outside a write.
func (s *Store) Links(ctx context.Context, id uuid.UUID) ([]Link, error) {
	return links(ctx, s.pool, id)
}
