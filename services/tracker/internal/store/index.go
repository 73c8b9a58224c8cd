package store

import (
	"context"
	"math"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/search"
)

// maxIndexed is how many bytes of an item's comments are searched. Those over it are the oldest, and the item is marked.
const maxIndexed = 4 << 20

// Index is the tables as the search index reads them.
type Index struct{ pool *pgxpool.Pool }

var _ search.Source = Index{}

// Index answers what the search index follows.
func (s *Store) Index() Index { return Index{pool: s.pool} }

// Identity implements [search.Source]: the cluster, its timeline, the database and schema, and the history's epoch. Whatever restores
// an older state changes one of them.
func (x Index) Identity(ctx context.Context) (string, error) {
	var identity string
	err := x.pool.QueryRow(ctx, `select s.system_identifier || '/' || c.timeline_id || '/' || d.oid || '/' || 'history'::regclass::oid
		from pg_control_system() s, pg_control_checkpoint() c, pg_database d where d.datname = current_database()`).Scan(&identity)
	return identity + "/" + strconv.Itoa(epoch), err
}

// Now implements [search.Source]. No row has place 0.
func (x Index) Now(ctx context.Context) (search.Cursor, error) {
	var text string
	if err := x.pool.QueryRow(ctx, `select pg_snapshot_xmin(pg_current_snapshot())::text`).Scan(&text); err != nil {
		return search.Cursor{}, err
	}
	txid, err := strconv.ParseUint(text, 10, 64)
	return search.Cursor{TxID: txid}, err
}

// Knows implements [search.Source]. A place without a row is where following began, and cannot be later than now.
func (x Index) Knows(ctx context.Context, at search.Cursor) (known bool, err error) {
	err = x.pool.QueryRow(ctx, `select case when $2 = 0 then $1::xid8 <= pg_snapshot_xmax(pg_current_snapshot())
		else exists (select from history where txid = $1::xid8 and position = $2) end`, txid(at), at.Position).Scan(&known)
	return known, err
}

func txid(at search.Cursor) string { return strconv.FormatUint(at.TxID, 10) }

// Changes implements [search.Source].
func (x Index) Changes(ctx context.Context, after search.Cursor, limit int) ([]search.Change, error) {
	rows, err := x.pool.Query(ctx, `select txid::text, position, item_id, txid < pg_snapshot_xmin(pg_current_snapshot()) from history
		where (txid, position) > ($1::xid8, $2) order by txid, position limit $3`, txid(after), after.Position, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (search.Change, error) {
		var c search.Change
		var id *uuid.UUID
		var text string
		if err := row.Scan(&text, &c.Cursor.Position, &id, &c.Settled); err != nil {
			return c, err
		}
		if id != nil {
			c.Item = *id
		}
		c.Cursor.TxID, err = strconv.ParseUint(text, 10, 64)
		return c, err
	})
}

// Behind implements [search.Source].
func (x Index) Behind(ctx context.Context, after search.Cursor, limit int) (n int, err error) {
	err = x.pool.QueryRow(ctx, `select count(*) from (select from history where (txid, position) > ($1::xid8, $2) limit $3) h`,
		txid(after), after.Position, limit).Scan(&n)
	return n, err
}

// Count implements [search.Source].
func (x Index) Count(ctx context.Context) (n int, err error) {
	err = x.pool.QueryRow(ctx, `select greatest(0, reltuples)::int from pg_class where oid = 'items'::regclass`).Scan(&n)
	return n, err
}

const documentColumns = `id, project, status_group < 2, title, body, removed_at is not null`

// Documents implements [search.Source].
func (x Index) Documents(ctx context.Context, ids []uuid.UUID) ([]search.Document, error) {
	rows, err := x.pool.Query(ctx, `select `+documentColumns+` from items where id = any($1)`, ids)
	if err != nil {
		return nil, err
	}
	documents, _, err := x.documents(ctx, rows)
	return documents, err
}

// DocumentsAfter implements [search.Source].
func (x Index) DocumentsAfter(ctx context.Context, after uuid.UUID, limit int) (documents []search.Document, last uuid.UUID, read int, err error) {
	rows, err := x.pool.Query(ctx, `select `+documentColumns+` from items where id > $1 order by id limit $2`, after, limit)
	if err != nil {
		return nil, after, 0, err
	}
	documents, ids, err := x.documents(ctx, rows)
	if err != nil || len(ids) == 0 {
		return nil, after, 0, err
	}
	return documents, ids[len(ids)-1], len(ids), nil
}

// documents reads rows and the threads that belong to them, and answers every id that was read.
func (x Index) documents(ctx context.Context, rows pgx.Rows) (documents []search.Document, ids []uuid.UUID, err error) {
	place := map[uuid.UUID]int{}
	var d search.Document
	var removed bool
	_, err = pgx.ForEachRow(rows, []any{&d.ID, &d.Project, &d.Open, &d.Title, &d.Body, &removed}, func() error {
		ids = append(ids, d.ID)
		if !removed {
			place[d.ID] = len(documents)
			documents = append(documents, d)
		}
		return nil
	})
	if err != nil || len(documents) == 0 {
		return documents, ids, err
	}
	threads, err := x.pool.Query(ctx, `select item_id, body from comments where item_id = any($1) order by item_id, created_at desc, id desc`, ids)
	if err != nil {
		return nil, nil, err
	}
	size := map[uuid.UUID]int{}
	var id uuid.UUID
	var body string
	_, err = pgx.ForEachRow(threads, []any{&id, &body}, func() error {
		at, ok := place[id]
		if !ok {
			return nil
		}
		if size[id] += len(body); size[id] > maxIndexed {
			documents[at].Partial = true
			return nil
		}
		documents[at].Comments = append(documents[at].Comments, body)
		return nil
	})
	return documents, ids, err
}

// Match is an item as searches show it.
type Match struct {
	ID                            uuid.UUID
	Project                       string
	Number                        int32
	Title, Body, Status, Assignee string
	// Comments are the newest, as far as they are looked through for a snippet.
	Comments []string
}

// Key is what people call it by.
func (m Match) Key() string { return item.Key(m.Project, m.Number) }

// What a snippet is looked for in: so many of an item's newest comments, and so many characters of each.
const (
	snippetComments   = 40
	snippetCharacters = 8192
)

// Matches answers items by id, but those that are removed or not in project (unless it is empty), or finished where openOnly says so:
// what the index has not seen yet.
func (s *Store) Matches(ctx context.Context, ids []uuid.UUID, project string, openOnly bool) (map[uuid.UUID]Match, error) {
	rows, err := s.pool.Query(ctx, `select id, project, number, title, body, status, assignee,
			array(select left(c.body, $4) from comments c where c.item_id = i.id order by c.created_at desc, c.id desc limit $5)
		from items i where id = any($1) and removed_at is null and ($2 = '' or project = $2) and (not $3 or status_group < 2)`,
		ids, project, openOnly, snippetCharacters, snippetComments)
	if err != nil {
		return nil, err
	}
	found := map[uuid.UUID]Match{}
	var m Match
	_, err = pgx.ForEachRow(rows, []any{&m.ID, &m.Project, &m.Number, &m.Title, &m.Body, &m.Status, &m.Assignee, &m.Comments}, func() error {
		found[m.ID] = m
		m.Comments = nil
		return nil
	})
	return found, err
}

// Keyed answers items whose key is name or begins with it, or that had it as a key: the exact one first, then by number. A name that
// is no beginning of a key answers none.
func (s *Store) Keyed(ctx context.Context, name, project string, openOnly bool, limit int) ([]uuid.UUID, error) {
	in, number, ok := splitKey(name)
	if !ok {
		return nil, nil
	}
	// Numbers that begin with these figures, one range for each length.
	var from, to []int32
	for low, high := int64(number), int64(number); low <= math.MaxInt32; low, high = low*10, high*10+9 {
		from, to = append(from, int32(low)), append(to, int32(min(high, math.MaxInt32)))
	}
	rows, err := s.pool.Query(ctx, `select id from (
			select i.id, i.number, 0 as former, i.project, i.status_group, i.removed_at from unnest($2::int[], $3::int[]) as r (low, high),
				lateral (select * from items where items.project = $1 and items.number between r.low and r.high order by items.number limit $7) i
			union all
			select i.id, 0, 1, i.project, i.status_group, i.removed_at from former_keys f join items i on i.id = f.item_id where f.key = $4) found
		where removed_at is null and ($5 = '' or project = $5) and (not $6 or status_group < 2)
		order by number = $8 desc, former desc, number limit $7`,
		in, from, to, item.Key(in, number), project, openOnly, limit, number)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}
