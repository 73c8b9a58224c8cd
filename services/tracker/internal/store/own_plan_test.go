package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker/sample"
)

// What one colleague reads of their own, and what is read of one item, costs what it shows and not what there is.
func TestNothingThatIsReadForOneReadsTheWholeTable(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", Migrations())
	require.NoError(t, sample.Load(t.Context(), pool, sample.Size{Items: 20_000, History: 2, Projects: 20, Seats: 100, Until: asker.At}))
	_, err := pool.Exec(t.Context(), `insert into notices (person, position, item_id, item_key, title, reason, kind, actor, actor_kind, occurred_at)
		select 'seat-' || n % 50, n, gen_random_uuid(), 'P1-1', 'x', case when n % 97 = 0 then 'asked' else 'watcher' end, 'status', 'seat-1', 'agent', now()
		from generate_series(1, 30000) n`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `insert into persons (handle, seen_through, read_after, unread_before) values ('seat-3', 20000, '{25003}', '{3,53}')
		on conflict (handle) do update set seen_through = excluded.seen_through, read_after = excluded.read_after, unread_before = excluded.unread_before`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `insert into comments (id, item_id, author, author_kind, body, created_at)
		select gen_random_uuid(), id, 'seat-1', 'agent', 'Noted.', updated_at from items`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `analyze notices, persons, comments`)
	require.NoError(t, err)
	e := &explained{pool: pool}
	config := pool.Config().Copy()
	config.ConnConfig.Tracer, config.MaxConns = reads{e}, 1
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(traced.Close)
	s := &Store{pool: traced}
	inbox := func(f InboxFilter) func() error {
		f.Handle, f.Limit, f.Now = "seat-3", 50, time.Now()
		return func() error { _, err := s.Inbox(t.Context(), f); return err }
	}
	item, err := s.NamedItem(t.Context(), "P1-1")
	require.NoError(t, err)
	for name, read := range map[string]func() error{
		"my work":       func() error { _, err := s.Mine(t.Context(), "seat-3"); return err },
		"a person":      func() error { _, err := s.Person(t.Context(), "seat-3"); return err },
		"an inbox":      inbox(InboxFilter{}),
		"unread":        inbox(InboxFilter{Unread: true}),
		"primary":       inbox(InboxFilter{PrimaryOnly: true}),
		"rare, unread":  inbox(InboxFilter{Unread: true, Reasons: []string{"asked"}}),
		"deep in inbox": inbox(InboxFilter{Before: 100}),
		"put off":       inbox(InboxFilter{Snoozed: SnoozedOnly}),
		"an item": func() error {
			_, err := s.WholeItem(t.Context(), "P1-1", Parts{Comments: true, History: true, Links: true, Fields: true, Subtasks: true, Before: newest})
			return err
		},
		"an item's feed": func() error { return e.explain(t, ActivityFilter{Item: &item, Limit: 50}) },
		"a feed":         func() error { return e.explain(t, ActivityFilter{Project: "P1", Limit: 50}) },
		"a feed, on": func() error {
			return e.explain(t, ActivityFilter{Project: "P1", Limit: 50, Since: 100, OldestFirst: true, Through: 9000})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e.plans = map[string]string{}
			require.NoError(t, read())
			require.NotEmpty(t, e.plans)
			for sql, plan := range e.plans {
				for _, table := range []string{"items", "history", "notices", "comments"} {
					require.NotContains(t, plan, "Seq Scan on "+table+" ", sql+"\n"+plan)
				}
			}
		})
	}
}

// explain keeps the plan of a feed.
func (e *explained) explain(t *testing.T, f ActivityFilter) error {
	t.Helper()
	sql, args := f.query()
	e.TraceBatchQuery(t.Context(), nil, pgx.TraceBatchQueryData{SQL: sql, Args: args})
	return nil
}

// newest asks for the end of a thread.
func newest(uuid.UUID) (*ThreadCursor, error) { return nil, nil }

// reads explains what reads, and not what begins and ends a snapshot.
type reads struct{ *explained }

func (r reads) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	if strings.HasPrefix(data.SQL, "select") || strings.HasPrefix(data.SQL, "with") {
		r.explained.TraceBatchQuery(ctx, conn, data)
	}
}
