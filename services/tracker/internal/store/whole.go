package store

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Parts are what to read beside an item.
type Parts struct {
	Comments, History, Links, Fields, Subtasks bool
	// Comment, unless nil, is the one comment to read, whole, in the place of the newest.
	Comment *uuid.UUID
	// Before answers the oldest comment that was shown of the item; nil for the end of the thread.
	Before func(itemID uuid.UUID) (*ThreadCursor, error)
}

// Whole is an item and what was read beside it, all of one moment.
type Whole struct {
	*item.Item
	Standing item.Standing
	// Comments are the newest before the cursor, the oldest of them first, the bodies shortened; Next continues before them.
	Comments []*Comment
	Next     *ThreadCursor
	History  []Entry
	Subtasks []string
	Links    []Link
	// Keys name the items that the item and its history name, by id.
	Keys map[uuid.UUID]string
	// Catalogue is what work of its project is made of; read with the fields and with the history.
	Catalogue Catalogue
}

// WholeItem reads an item, in the trash or not, in two round trips.
func (s *Store) WholeItem(ctx context.Context, name string, p Parts) (*Whole, error) {
	w := &Whole{Keys: map[uuid.UUID]string{}}
	first := &pgx.Batch{}
	if err := w.queueItem(first, name); err != nil {
		return nil, err
	}
	moment, err := s.snapshot(ctx, first)
	defer moment.end()
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noItem(name)
	}
	if err != nil {
		return nil, err
	}
	rest := &pgx.Batch{}
	w.queueStanding(rest)
	if p.Comments || p.Comment != nil {
		if err := w.queueComments(rest, p); err != nil {
			return nil, err
		}
	}
	if p.History {
		w.queueHistory(rest)
	}
	if p.Links {
		queueRows(rest, &w.Links, scanLink, selectLinks, w.ID)
	}
	if p.Subtasks {
		queueRows(rest, &w.Subtasks, scanKey, `select project, number from items where parent = $1 and removed_at is null order by number limit $2`, w.ID, subtasksShown)
	}
	if p.Fields || p.History {
		rest.Queue(selectCatalogue+` where p.key = $1`, w.Project).Query(func(rows pgx.Rows) error {
			all, err := collectCatalogues(rows)
			w.Catalogue = all[w.Project]
			return err
		})
	}
	if err := moment.last(ctx, rest); err != nil {
		return nil, err
	}
	return w, w.settleThread(p)
}

const selectWhole = `select ` + columns + `, i.body, array(select key from former_keys f where f.item_id = i.id order by created_at desc limit 16)
	from items i where i.id = `

func (w *Whole) queueItem(batch *pgx.Batch, name string) error {
	var query *pgx.QueuedQuery
	if id, err := uuid.Parse(name); err == nil {
		query = batch.Queue(selectWhole+`$1`, id)
	} else if project, number, ok := splitKey(name); ok {
		query = batch.Queue(selectWhole+`(select id from items where project = $1 and number = $2 union all select item_id from former_keys where key = $3 limit 1)`,
			project, number, item.Key(project, number))
	} else {
		return noItem(name)
	}
	query.QueryRow(func(row pgx.Row) error {
		var body string
		var formerKeys []string
		i, err := scan(row, &body, &formerKeys)
		if err != nil {
			return err
		}
		i.Body, i.FormerKeys = body, formerKeys
		w.Item = i
		return nil
	})
	return nil
}

func (w *Whole) queueStanding(batch *pgx.Batch) {
	batch.Queue(selectStanding, []uuid.UUID{w.ID}, maxReach, item.MaxDependents, item.MaxDepth).Query(func(rows pgx.Rows) error {
		standing, err := collectStandings(rows)
		w.Standing = standing[w.ID]
		return err
	})
	var beside []uuid.UUID
	for _, id := range []*uuid.UUID{w.Parent, w.MergedInto, w.removedWith()} {
		if id != nil {
			beside = append(beside, *id)
		}
	}
	if len(beside) > 0 {
		batch.Queue(`select id, project, number from items where id = any($1)`, beside).Query(w.name)
	}
}

func (w *Whole) removedWith() *uuid.UUID {
	if w.Removal == nil || w.Removal.With == w.ID {
		return nil
	}
	return &w.Removal.With
}

func (w *Whole) queueComments(batch *pgx.Batch, p Parts) error {
	if p.Comment != nil {
		queueRows(batch, &w.Comments, scanComment, `select `+commentColumns("c.body")+` from comments c where id = $1 and item_id = $2`, *p.Comment, w.ID)
		return nil
	}
	cursor, err := p.Before(w.ID)
	if err != nil {
		return err
	}
	before := endOfThread()
	if cursor != nil {
		before = *cursor
	}
	queueRows(batch, &w.Comments, scanComment, `select `+commentColumns("left(c.body, 2048)")+` from comments c
		where item_id = $1 and (created_at, id) < ($2, $3) order by created_at desc, id desc limit $4`, w.ID, before.At, before.ID, CommentsShown+1)
	return nil
}

// settleThread turns the newest comments into the order in which they were said, or refuses a comment that is not there.
func (w *Whole) settleThread(p Parts) error {
	if p.Comment != nil && len(w.Comments) == 0 {
		return fault.New(fault.NotFound, "there is no comment %s on %s; get_work_item without comment shows the thread", p.Comment, w.Key()).WithField("comment")
	}
	w.Comments, w.Next = chronological(w.Comments)
	return nil
}

// uuidPattern finds the items that rows of history name.
const uuidPattern = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

func (w *Whole) queueHistory(batch *pgx.Batch) {
	const newest = `from history h where item_id = $1 order by position desc limit $2`
	queueRows(batch, &w.History, scanEntry, `select `+entryColumns+` `+newest, w.ID, HistoryShown)
	batch.Queue(`select i.id, i.project, i.number from items i where i.id in (
		select m.id[1]::uuid from (select h.fields `+newest+`) h, regexp_matches(h.fields::text, '`+uuidPattern+`', 'g') as m (id))`, w.ID, HistoryShown).Query(w.name)
}

// name takes the keys of items in.
func (w *Whole) name(rows pgx.Rows) error {
	var id uuid.UUID
	var project string
	var number int32
	_, err := pgx.ForEachRow(rows, []any{&id, &project, &number}, func() error {
		w.Keys[id] = item.Key(project, number)
		return nil
	})
	return err
}

// queueRows queues a query whose rows become a list.
func queueRows[T any](batch *pgx.Batch, into *[]T, scan pgx.RowToFunc[T], sql string, args ...any) {
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, scan)
		return err
	})
}

func scanKey(row pgx.CollectableRow) (string, error) {
	var project string
	var number int32
	err := row.Scan(&project, &number)
	return item.Key(project, number), err
}
