package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// MaxCounted is where counting stops: a total over it is said to be at least that.
const MaxCounted = 10_000

// Filter narrows a list; every part that is set must hold.
type Filter struct {
	Assignee   *string // empty for nobody's
	Project    string
	Statuses   []string
	OpenOnly   bool
	Text       string
	Types      []string
	Priorities []string
	Parent     string
	Reporter   string
}

// Order is how a list is sorted.
type Order struct {
	Created    bool // by creation, otherwise by the last change
	Descending bool
}

// Cursor is the last item that was shown.
type Cursor struct {
	At time.Time `json:"at"`
	ID uuid.UUID `json:"id"`
}

// Page is a page of a list.
type Page struct {
	Items []*item.Item
	// Next continues the list; nil at its end.
	Next *Cursor
	// Total counts over all pages and stops at MaxCounted.
	Total   int32
	AtLeast bool
}

// condition collects what a filter says in SQL, its values as arguments.
type condition struct {
	parts []string
	args  []any
}

func (c *condition) add(sql string, arg any) {
	c.args = append(c.args, arg)
	c.parts = append(c.parts, fmt.Sprintf(sql, len(c.args)))
}

func (c *condition) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " where " + strings.Join(c.parts, " and ")
}

// ListItems answers the page after cursor, which is nil for the first.
func (s *Store) ListItems(ctx context.Context, f Filter, o Order, cursor *Cursor, limit int32) (Page, error) {
	c, err := s.condition(ctx, f)
	if err != nil {
		return Page{}, err
	}
	count := fmt.Sprintf(`select count(*) from (select from items i%s limit %d) counted`, c.where(), MaxCounted+1)
	countArgs := c.args
	column, compare, direction := "i.updated_at", ">", "asc"
	if o.Created {
		column = "i.created_at"
	}
	if o.Descending {
		compare, direction = "<", "desc"
	}
	paged := condition{parts: c.parts, args: c.args}
	if cursor != nil {
		paged.args = append(paged.args[:len(paged.args):len(paged.args)], cursor.At, cursor.ID)
		at := len(paged.args)
		// The id breaks ties in rising order in both directions, as the indexes do.
		tie := fmt.Sprintf("(%[1]s %[2]s $%[3]d or %[1]s = $%[3]d and i.id > $%[4]d)", column, compare, at-1, at)
		bound := fmt.Sprintf("%s %s= $%d", column, compare, at-1)
		paged.parts = append(paged.parts[:len(paged.parts):len(paged.parts)], bound, tie)
	}
	list := fmt.Sprintf(`select %s from items i%s order by %s %s, i.id limit %d`, columns, paged.where(), column, direction, limit+1)

	batch := &pgx.Batch{}
	page := Page{}
	batch.Queue(list, paged.args...).Query(func(rows pgx.Rows) error {
		page.Items, err = pgx.CollectRows(rows, scanItem)
		return err
	})
	batch.Queue(count, countArgs...).QueryRow(func(row pgx.Row) error { return row.Scan(&page.Total) })
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return Page{}, err
	}
	if page.AtLeast = page.Total > MaxCounted; page.AtLeast {
		page.Total = MaxCounted
	}
	if int32(len(page.Items)) > limit {
		page.Items = page.Items[:limit]
		last := page.Items[limit-1]
		page.Next = &Cursor{At: last.UpdatedAt, ID: last.ID}
		if o.Created {
			page.Next.At = last.CreatedAt
		}
	}
	return page, nil
}

func scanItem(row pgx.CollectableRow) (*item.Item, error) { return scan(row) }

func (s *Store) condition(ctx context.Context, f Filter) (condition, error) {
	var c condition
	if f.Project != "" {
		c.add("i.project = $%d", strings.ToUpper(f.Project))
	}
	if f.Assignee != nil {
		c.add("i.assignee = $%d", *f.Assignee)
	}
	if f.OpenOnly {
		c.parts = append(c.parts, "i.status_group < 2")
	}
	if len(f.Statuses) > 0 {
		c.add("i.status = any($%d)", f.Statuses)
	}
	if len(f.Types) > 0 {
		c.add("i.type = any($%d)", f.Types)
	}
	if len(f.Priorities) > 0 {
		ranks := make([]int16, len(f.Priorities))
		for n, p := range f.Priorities {
			ranks[n] = item.Rank(p)
		}
		c.add("i.priority = any($%d)", ranks)
	}
	if f.Reporter != "" {
		c.add("i.reporter = $%d", f.Reporter)
	}
	if f.Parent != "" {
		id, err := resolve(ctx, s.pool, f.Parent)
		if fault.ClassOf(err) == fault.NotFound && err != nil {
			return c, fault.New(fault.Invalid, "parent names no work item: there is no %q", f.Parent).WithField("parent")
		}
		if err != nil {
			return c, err
		}
		c.add("i.parent = $%d", id)
	}
	if f.Text != "" {
		c.text(f.Text)
	}
	return c, nil
}

// text asks for a part of the title, or for the beginning of a key.
func (c *condition) text(text string) {
	c.args = append(c.args, "%"+likeLiteral(text)+"%")
	title := fmt.Sprintf("i.title ilike $%d", len(c.args))
	if project, number, ok := splitKey(text); ok {
		c.args = append(c.args, project, fmt.Sprint(number)+"%")
		title = fmt.Sprintf("(%s or i.project = $%d and i.number::text like $%d)", title, len(c.args)-1, len(c.args))
	}
	c.parts = append(c.parts, title)
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func likeLiteral(text string) string { return likeEscaper.Replace(text) }
