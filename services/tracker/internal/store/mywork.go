package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// MineShown is how many entries each list of [Mine] has.
const MineShown = 20

// Mine is what one colleague has to do, all of one moment.
type Mine struct {
	// Priorities stand in the order that was set; open ones alone.
	Priorities []*item.Item
	// Assigned are open and theirs, the latest change first; Collaborating are open and helped with.
	Assigned, Collaborating []*item.Item
	// Asked are questions that wait for them, the oldest first.
	Asked []Question
	// Steps are theirs and not done.
	Steps []MyStep
	// Watching are watched, open or not, the latest change first.
	Watching []*item.Item
	// Unblocked are open and theirs, waited for something and wait for nothing any more; the one that was freed last first.
	Unblocked []*item.Item
	Standings map[uuid.UUID]item.Standing
}

// Question is a question that waits for an answer, with its item.
type Question struct {
	Key, Title string
	*Comment
}

// MyStep is a step of a checklist, with its item.
type MyStep struct {
	Key, Title, List string
	item.Step
}

const selectPriorities = `select ` + columns + ` from persons p cross join unnest(p.priorities) with ordinality o (id, place) join items i on i.id = o.id
	where p.handle = $1 and i.status_group < 2 and i.removed_at is null order by o.place limit $2`

// An index serves one group of statuses in the order of changes, so each group is asked for by itself.
const selectAssigned = `select ` + columns + ` from (values (0), (1)) g (n) cross join lateral (select * from items
		where assignee = $1 and status_group = g.n and removed_at is null order by updated_at desc, id desc limit $2) i
	order by i.updated_at desc, i.id desc limit $2`

const selectCollaborating = `select ` + columns + ` from items i where i.collaborators @> array[$1] and i.collaborators <> '{}' and i.status_group < 2
	and i.removed_at is null order by i.updated_at desc, i.id desc limit $2`

// Who watches little is found by the watchers, who watches much by the latest changes: the planner chooses, for each group by itself.
const selectWatching = `select ` + columns + ` from (values (0), (1), (2), (3)) g (n) cross join lateral (select * from items
		where status_group = g.n and removed_at is null and watchers @> array[$1] order by updated_at desc, id desc limit $2) i
	order by i.updated_at desc, i.id desc limit $2`

const selectUnblocked = `select ` + columns + ` from items i cross join lateral (
		select max(coalesce(r.cleared_at, t.removed_at, t.done_at, t.closed_at, r.created_at)) as at,
			coalesce(bool_or(r.cleared_at is null and t.status_group < 2 and t.removed_at is null), false) as blocked
		from relations r left join items t on t.id = r.to_id where r.from_id = i.id and r.kind = 'waiting_on') freed
	where i.assignee = $1 and i.status_group < 2 and i.removed_at is null and freed.at is not null and not freed.blocked
	order by freed.at desc, i.id limit $2`

func selectAsked() string {
	return `select ` + commentColumns("c.body") + `, i.project, i.number, i.title from comments c join items i on i.id = c.item_id
	where c.asked = $1 and c.asked <> '' and c.answered_at is null and i.removed_at is null order by c.created_at, c.id limit $2`
}

const selectSteps = `select i.project, i.number, i.title, l.list ->> 'name', s.step ->> 'id', s.step ->> 'name' from items i
	cross join jsonb_array_elements(i.checklists) with ordinality l (list, place)
	cross join jsonb_array_elements(l.list -> 'items') with ordinality s (step, place)
	where i.checklists @> jsonb_build_array(jsonb_build_object('items', jsonb_build_array(jsonb_build_object('assignee', $1::text)))) and i.checklists <> '[]'
		and i.status_group < 2 and i.removed_at is null and s.step ->> 'assignee' = $1 and not coalesce((s.step ->> 'done')::boolean, false)
	order by i.updated_at desc, i.id, l.place, s.place limit $2`

// Mine reads what a colleague has to do in two round trips.
func (s *Store) Mine(ctx context.Context, handle string) (*Mine, error) {
	m := &Mine{}
	first := &pgx.Batch{}
	lists := []struct {
		into *[]*item.Item
		sql  string
	}{
		{&m.Priorities, selectPriorities},
		{&m.Assigned, selectAssigned},
		{&m.Collaborating, selectCollaborating},
		{&m.Watching, selectWatching},
		{&m.Unblocked, selectUnblocked},
	}
	for _, l := range lists {
		queueRows(first, l.into, func(row pgx.CollectableRow) (*item.Item, error) { return scan(row) }, l.sql, handle, MineShown)
	}
	queueRows(first, &m.Asked, scanQuestion, selectAsked(), handle, MineShown)
	queueRows(first, &m.Steps, scanStep, selectSteps, handle, MineShown)
	moment, err := s.snapshot(ctx, first)
	defer moment.end()
	if err != nil {
		return nil, err
	}
	var ids []uuid.UUID
	for _, l := range lists {
		for _, i := range *l.into {
			ids = append(ids, i.ID)
		}
	}
	rest := &pgx.Batch{}
	rest.Queue(selectStanding, ids, maxReach, item.MaxDependents, item.MaxDepth).Query(func(rows pgx.Rows) (err error) {
		m.Standings, err = collectStandings(rows)
		return err
	})
	return m, moment.last(ctx, rest)
}

func scanQuestion(row pgx.CollectableRow) (Question, error) {
	var q Question
	var project string
	var number int32
	var err error
	q.Comment, err = scanCommentAnd(row, &project, &number, &q.Title)
	q.Key = item.Key(project, number)
	return q, err
}

func scanStep(row pgx.CollectableRow) (MyStep, error) {
	var s MyStep
	var project string
	var number int32
	err := row.Scan(&project, &number, &s.Title, &s.List, &s.ID, &s.Name)
	s.Key = item.Key(project, number)
	return s, err
}
