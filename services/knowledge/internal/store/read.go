package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/page"
)

const (
	// ChildrenShown is how many pages below one a read brings.
	ChildrenShown  = 50
	revisionsShown = 20
	linkedShown    = 50
	ancestorsShown = 64
	hitsShown      = 6
	// candidates bounds what is ranked: a word that stands everywhere must not cost a ranking of everything.
	candidates = 1000
)

const columns = `p.id, p.container, p.parent, p.title, p.status, p.labels, p.author, p.editor, p.version, p.revision, p.created_at, p.updated_at`

func fields(p *page.Page) []any {
	return []any{&p.ID, &p.Container, &p.Parent, &p.Title, &p.Status, &p.Labels, &p.Author, &p.Editor, &p.Version, &p.Revision, &p.CreatedAt, &p.UpdatedAt}
}

func scanPage(row pgx.CollectableRow) (*page.Page, error) {
	p := &page.Page{}
	return p, row.Scan(fields(p)...)
}

// Link names a page.
type Link struct {
	ID    uuid.UUID
	Title string
}

// Revision is one version of what a page said.
type Revision struct {
	Number    int32
	By        page.Author
	Message   string
	CreatedAt time.Time
}

// PageByName answers a page, whole, by its id or by `CONTAINER/Title`. A page in the trash still reads by its id.
func (s *Store) PageByName(ctx context.Context, name string) (*page.Page, error) {
	p := &page.Page{}
	id, err := uuid.Parse(name)
	where, args := `p.id = $1`, []any{id}
	if err != nil {
		container, title, _ := strings.Cut(name, "/")
		where, args = `p.container = $1 and p.address = $2 and p.status <> 'trashed'`, []any{strings.ToUpper(container), page.Address(title)}
	}
	err = s.pool.QueryRow(ctx, `select `+columns+`, p.body from pages p where `+where, args...).Scan(append(fields(p), &p.Body)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "there is no page %q; search_knowledge and list_pages find pages", name).WithField("page")
	}
	return p, err
}

// Surroundings is what stands around a page.
type Surroundings struct {
	Ancestors  []Link // the top first
	Children   []Link // one more than ChildrenShown when there are more
	LinkedFrom []Link
	Revisions  []Revision // newest first
}

// Surroundings answers what stands around a page, in one round trip.
func (s *Store) Surroundings(ctx context.Context, id uuid.UUID) (Surroundings, error) {
	var out Surroundings
	batch := &pgx.Batch{}
	links := func(into *[]Link) func(pgx.Rows) error {
		return func(rows pgx.Rows) (err error) {
			*into, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Link, error) {
				var l Link
				return l, row.Scan(&l.ID, &l.Title)
			})
			return err
		}
	}
	batch.Queue(`with recursive up as (
			select p.parent, 0 as height from pages p where p.id = $1
			union all select p.parent, up.height + 1 from pages p join up on p.id = up.parent where up.height < $2)
		select p.id, p.title from up join pages p on p.id = up.parent order by up.height desc`, id, ancestorsShown).Query(links(&out.Ancestors))
	batch.Queue(`select id, title from pages where parent = $1 and status = 'published' order by title, id limit $2`, id, ChildrenShown+1).Query(links(&out.Children))
	batch.Queue(`select p.id, p.title from links l join pages p on p.id = l.from_page where l.to_page = $1 and p.status = 'published'
		order by p.title, p.id limit $2`, id, linkedShown).Query(links(&out.LinkedFrom))
	batch.Queue(`select revision, author, author_kind, message, turn_id, created_at from revisions where page_id = $1 order by revision desc limit $2`,
		id, revisionsShown).Query(func(rows pgx.Rows) (err error) {
		out.Revisions, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Revision, error) {
			var r Revision
			return r, row.Scan(&r.Number, &r.By.Name, &r.By.Kind, &r.Message, &r.By.Turn, &r.CreatedAt)
		})
		return err
	})
	return out, s.pool.SendBatch(ctx, batch).Close()
}

// Filter narrows a list; every part that is set must hold.
type Filter struct {
	Container string
	Parent    *uuid.UUID
	Title     string
	Label     string
}

// Cursor is the last page that was shown.
type Cursor struct {
	Container string    `json:"container"`
	Title     string    `json:"title"`
	ID        uuid.UUID `json:"id"`
}

// ListPages answers published pages by container and title, and where the list goes on.
func (s *Store) ListPages(ctx context.Context, f Filter, after *Cursor, limit int32) ([]*page.Page, *Cursor, error) {
	var args []any
	where := []string{"p.status = 'published'"}
	add := func(sql string, values ...any) {
		numbers := make([]any, len(values))
		for n, value := range values {
			args = append(args, value)
			numbers[n] = len(args)
		}
		where = append(where, fmt.Sprintf(sql, numbers...))
	}
	if f.Container != "" {
		add("p.container = $%d", f.Container)
	}
	if f.Parent != nil {
		add("p.parent = $%d", *f.Parent)
	}
	if f.Title != "" {
		add("p.title ilike $%d", "%"+likeEscaper.Replace(f.Title)+"%")
	}
	if f.Label != "" {
		add("p.labels @> array[$%d]", f.Label)
	}
	if after != nil {
		add("(p.container, p.title, p.id) > ($%d, $%d, $%d)", after.Container, after.Title, after.ID)
	}
	rows, err := s.pool.Query(ctx, fmt.Sprintf(`select %s from pages p where %s order by p.container, p.title, p.id limit %d`,
		columns, strings.Join(where, " and "), limit+1), args...)
	if err != nil {
		return nil, nil, err
	}
	pages, err := pgx.CollectRows(rows, scanPage)
	if err != nil || int32(len(pages)) <= limit {
		return pages, nil, err
	}
	last := pages[limit-1]
	return pages[:limit], &Cursor{Container: last.Container, Title: last.Title, ID: last.ID}, nil
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Search answers the pages that hold any of the words, those that hold more of them and in better places first. Pages in the
// containers of except are left out.
func (s *Store) Search(ctx context.Context, words, except []string) ([]*page.Page, error) {
	if len(words) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, `with query as (select string_agg(quote_literal(word) || ':*', ' | ')::tsquery as any_of, array_agg(word) as words from unnest($1::text[]) word),
		found as materialized (
			select s.page_id, s.document from page_search s, query q where s.document @@ q.any_of limit $2)
		select `+columns+`, p.body from found f join pages p on p.id = f.page_id, query q
		where p.status = 'published' and p.container <> all($3)
		order by (select count(*) from unnest(q.words) word where f.document @@ (quote_literal(word) || ':*')::tsquery) desc,
			ts_rank_cd(f.document, q.any_of, 1) desc, p.updated_at desc, p.id
		limit $4`, words, candidates, except, hitsShown)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*page.Page, error) {
		p := &page.Page{}
		return p, row.Scan(append(fields(p), &p.Body)...)
	})
}
