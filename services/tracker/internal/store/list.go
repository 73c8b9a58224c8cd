package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

const (
	// MaxCounted is where counting stops: a total over it is said to be at least that.
	MaxCounted = 10_000
	// maxSought is where counting stops when no index knows what is counted, but other rows or a custom field's value.
	maxSought = 1_000
	// maxSorted is how many items are sorted by a custom field, which no index knows.
	maxSorted = MaxCounted
)

// Cursor is the last item that was shown: its phase, and its place in it.
type Cursor struct {
	Phase int       `json:"p"`
	At    string    `json:"a"`
	ID    uuid.UUID `json:"i"`
}

// Row is an item as lists show it, without its body.
type Row struct {
	*item.Item
	BodyBytes int32
}

// Page is a page of a list.
type Page struct {
	Items []Row
	// Next continues the list; nil at its end.
	Next *Cursor
	// Total counts over all pages and stops at MaxCounted, or earlier where each item has to be looked at.
	Total   int32
	AtLeast bool
}

// ListItems answers the page of a query after cursor, which is nil for the first. The names in the query
// must be resolved, and its custom fields bound.
func (s *Store) ListItems(ctx context.Context, q *query.Query, a Act, cursor *Cursor) (Page, error) {
	c := conditions(q, a)
	if q.Group != nil {
		columnOfQuery(q).only(c, *q.Group)
	}
	page := Page{}
	l := &lister{statement: c, phases: phases(q), want: q.Limit + 1}
	if cursor != nil {
		if cursor.Phase < 0 || cursor.Phase >= len(l.phases) {
			return page, fault.New(fault.Invalid, "the cursor is not one that this list has answered: leave it out to start from the beginning").WithField("cursor")
		}
		l.phase, l.after = cursor.Phase, cursor
	}
	if q.Sort.Field != nil {
		c.ceiling = maxSorted
	} else if c.ceiling == maxSought {
		return s.seek(ctx, l, q.Limit)
	}
	count := func(batch *pgx.Batch) {
		batch.Queue(c.count(c.ceiling+1), c.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&page.Total) })
	}
	if q.Sort.Field != nil {
		if err := s.read(ctx, count); err != nil {
			return page, err
		}
		if page.Total > maxSorted {
			return page, fault.New(fault.Invalid, "more than %d items match, which are too many to sort by a custom field: narrow the list, or sort by something else",
				maxSorted).WithField("sort")
		}
		count = func(*pgx.Batch) {}
	}
	for first := true; first || l.more(); first = false {
		err := s.read(ctx, func(batch *pgx.Batch) {
			l.queue(batch)
			if first {
				count(batch)
			}
		})
		if err != nil {
			return page, err
		}
	}
	page.Items, page.Next = l.page(q.Limit)
	if page.AtLeast = page.Total > c.ceiling; page.AtLeast {
		page.Total = c.ceiling
	}
	return page, nil
}

// seek answers a page of a list whose conditions no order's index knows. It looks for what matches first: few are sorted, and of many the
// order is walked, as some turn up soon.
func (s *Store) seek(ctx context.Context, l *lister, limit int) (page Page, err error) {
	var found []uuid.UUID
	err = s.read(ctx, func(batch *pgx.Batch) {
		sql := fmt.Sprintf("select i.id from items i where %s limit %d", l.where(), maxSought+1)
		batch.Queue(sql, l.args...).Query(func(rows pgx.Rows) error {
			found, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			return err
		})
	})
	if err != nil {
		return page, err
	}
	if page.Total, page.AtLeast = int32(min(len(found), maxSought)), len(found) > maxSought; !page.AtLeast {
		l.few(found)
	}
	for first := true; first || l.more(); first = false {
		err := s.read(ctx, func(batch *pgx.Batch) {
			if page.AtLeast && l.unforeseen {
				batch.Queue(`select set_config('enable_bitmapscan', 'off', true)`) // it expects few, and would read all to sort them
			}
			l.queue(batch)
		})
		if err != nil {
			return page, err
		}
	}
	page.Items, page.Next = l.page(limit)
	return page, nil
}

// few makes a list one of some items that are known.
func (l *lister) few(ids []uuid.UUID) {
	known := *l.statement
	known.parts, known.args = nil, nil
	known.add("i.id = any(" + known.arg(ids) + ")")
	l.statement = &known
	for n := range l.phases {
		l.phases[n].grouped = false
	}
}

// lister walks along the phases of a list until it has what is wanted.
type lister struct {
	*statement
	phases []phase
	phase  int
	after  *Cursor
	want   int
	items  []Row
	places []Cursor
}

// more reports whether another phase has to be walked.
func (l *lister) more() bool { return len(l.items) < l.want && l.phase < len(l.phases) }

// queue asks for the next phase.
func (l *lister) queue(batch *pgx.Batch) {
	walk := l.fork()
	sql := walk.walk(l.phases[l.phase], l.after, l.want-len(l.items))
	batch.Queue(sql, walk.args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			place := Cursor{Phase: l.phase}
			var row Row
			var err error
			if row.Item, err = scan(rows, &row.BodyBytes, &place.At); err != nil {
				return err
			}
			place.ID = row.ID
			l.items, l.places = append(l.items, row), append(l.places, place)
		}
		l.phase, l.after = l.phase+1, nil
		return rows.Err()
	})
}

// page answers at most limit of the items, and where the list goes on.
func (l *lister) page(limit int) ([]Row, *Cursor) {
	if len(l.items) <= limit {
		return l.items, nil
	}
	return l.items[:limit], &l.places[limit-1]
}

// count counts what matches, up to limit.
func (s *statement) count(limit int32) string {
	return fmt.Sprintf("select count(*) from (select from items i where %s limit %d) counted", s.where(), limit)
}

// listSettings hold for one read. Lists are planned for the values that they are asked with: how many items a project or a colleague has
// decides by which index they are best read. Reading all items side by side would only keep other callers waiting.
const listSettings = `select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true),
	set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true),
	set_config('random_page_cost', '1.1', true)`

// read runs what ask queues in one round trip.
func (s *Store) read(ctx context.Context, ask func(*pgx.Batch)) error {
	batch := &pgx.Batch{}
	batch.Queue(listSettings)
	ask(batch)
	return s.pool.SendBatch(ctx, batch).Close()
}

// ItemID answers the id that a key, a former key or an id names. `not_found` when nothing has the key.
func (s *Store) ItemID(ctx context.Context, name string) (uuid.UUID, error) {
	return resolve(ctx, s.pool, name)
}

// HasReported reports whether anything was ever filed under a name.
func (s *Store) HasReported(ctx context.Context, name string) (bool, error) {
	var has bool
	err := s.pool.QueryRow(ctx, `select exists (select from items where reporter = $1 and removed_at is null)`, name).Scan(&has)
	return has, err
}
