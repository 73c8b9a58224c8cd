package tracker_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/ops"
)

// A change of relations leaves a row with the other item too, whose version stays: it is told, and was not changed.
const withoutMirrors = `with told as (select h.*, lag(version) over (partition by item_id order by position) as before from history h where item_id is not null),
	own as (select * from told where not (kind = 'relations' and version = before)) `

// audit proves that the database holds what was acknowledged, once, and nothing else.
func (l *load) audit(ctx context.Context, t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	kept := map[string]string{}
	rows, err := pool.Query(ctx, `select operation_id, position from operations`)
	require.NoError(t, err)
	var id, position string
	_, err = pgx.ForEachRow(rows, []any{&id, &position}, func() error {
		kept[id] = position
		return nil
	})
	require.NoError(t, err)
	changes, comments, items := 0, []string{}, 0
	for op, d := range l.acknowledged {
		at, there := kept[op]
		require.True(t, there, "%s was acknowledged and is lost", op)
		require.Equal(t, d.GetPosition(), at, op)
		changes += d.rows
		switch d.receipt.(type) {
		case *trackerv1.CommentOnWorkItemResponse:
			comments = append(comments, d.text)
		case *trackerv1.CreateWorkItemResponse:
			items++
		}
	}
	for _, op := range l.refused {
		_, there := kept[op]
		require.False(t, there, "%s was said to have done nothing", op)
	}
	require.Len(t, kept, len(l.acknowledged), "nothing was done that was not acknowledged in the end")

	var said []string
	var filed, recorded, missing int
	require.NoError(t, pool.QueryRow(ctx, `select array_agg(body), (select count(*) from items) from comments`).Scan(&said, &filed))
	slices.Sort(comments)
	slices.Sort(said)
	require.True(t, slices.Equal(comments, said), "every comment stands once")
	require.Equal(t, items, filed)
	require.NoError(t, pool.QueryRow(ctx, withoutMirrors+`select count(*) from own`).Scan(&recorded))
	require.Equal(t, changes, recorded, "each change has its rows of history")
	t.Logf("%d operations, %d rows of history beside mirrors, %d items, %d comments", len(kept), recorded, filed, len(said))
	require.NoError(t, pool.QueryRow(ctx, `select count(*) from operations o where position <> '' and not exists (
		select from history h where h.position = split_part(o.position, ':', 2)::bigint)`).Scan(&missing))
	require.Zero(t, missing, "every receipt's place is in history")
	l.recount(ctx, t, pool)
}

// recount proves that history, told from the beginning, ends in the state that stands.
func (l *load) recount(ctx context.Context, t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for name, query := range map[string]string{
		"every change begins where the one before it ended": `select count(*) from (
			select f.value ->> 'from' as from, lag(f.value ->> 'to') over (partition by item_id, f.key order by position) as before
			from history, jsonb_each(fields) f where item_id is not null and f.key in ('title', 'status', 'assignee', 'project', 'parent', 'removed_with')
		) chain where before <> chain.from`,
		"the last change ends in the state that stands": `select count(*) from (
			select distinct on (item_id, f.key) item_id, f.key, f.value ->> 'to' as last
			from history, jsonb_each(fields) f where item_id is not null order by item_id, f.key, position desc
		) ends join items i on i.id = item_id where last is distinct from case ends.key when 'title' then i.title when 'status' then i.status
			when 'assignee' then i.assignee when 'project' then i.project when 'parent' then coalesce(i.parent::text, '')
			when 'removed_with' then coalesce(i.removed_with::text, '') else last end`,
		"an item's version is the number of its changes": `with changes as (select item_id, count(*) as n from history
				where item_id is not null and kind not in ('comment', 'claimed', 'released', 'placed') and not (kind = 'relations' and position in (
					select position from (select position, kind, version, lag(version) over (partition by item_id order by position) as before from history) h
					where kind = 'relations' and version = before)) group by 1)
			select count(*) from items i join changes c on c.item_id = i.id where c.n <> i.version`,
		"whoever waits is in the relations, once": `select count(*) from (select from_id, to_id, kind from relations group by 1, 2, 3 having count(*) > 1) twice`,
	} {
		var wrong int
		require.NoError(t, pool.QueryRow(ctx, query).Scan(&wrong), name)
		require.Zero(t, wrong, name)
	}
}

// left proves that every change left as an event, at least once, and those of an item in the order that they happened in.
func left(ctx context.Context, t *testing.T, pool *pgxpool.Pool, b bus.Bus) {
	t.Helper()
	rows, err := pool.Query(ctx, withoutMirrors+`select position from own`)
	require.NoError(t, err)
	positions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	waiting := map[int64]bool{}
	for _, p := range positions {
		waiting[p] = true
	}
	subscription, err := b.Subscribe("bullpen.tracker.item.v1", "audit")
	require.NoError(t, err)
	defer func() { require.NoError(t, subscription.Close()) }()
	last, seen := map[string]int64{}, map[int64]bool{}
	for len(waiting) > 0 {
		messages, err := subscription.Fetch(ctx, 500)
		require.NoError(t, err, "%d changes never left", len(waiting))
		for _, m := range messages {
			e := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, e))
			if at := e.GetSequence(); !seen[at] {
				require.Less(t, last[m.Key], at, "the events of %s come in order", m.Key)
				last[m.Key], seen[at] = at, true
				delete(waiting, at)
			}
		}
	}
	happened := map[int64]bool{}
	for _, at := range positions {
		happened[at] = true
	}
	for at := range seen {
		require.True(t, happened[at], "%s was told and never happened", ops.Position{Service: "tracker", Epoch: 1, Sequence: at})
	}
}
