package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

func TestAOneSidedEdgeIsCompletedWhenItsBlockerHasRoom(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", store.Migrations())
	s, err := store.Open(t.Context(), pool, func(store.Event) (outbox.Message, error) { return outbox.Message{}, nil }, func() {})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `insert into projects (key, name, epoch) values ('OPS', 'Operations', 1)`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `insert into items (id, project, number, type, title, status, status_group, reporter, reporter_kind, created_at, updated_at, status_entered_at)
		select gen_random_uuid(), 'OPS', n, 'task', 't', 'todo', 0, 'x', 'human', now(), now(), now() from generate_series(1, $1) n`, item.MaxDependents+4)
	require.NoError(t, err)
	// All but the first wait for it: as many as may be, and three that came too late.
	_, err = pool.Exec(t.Context(), `insert into relations (from_id, kind, to_id, author, author_kind, created_at, one_sided)
		select w.id, 'waiting_on', b.id, 'x', 'human', now() + w.number * interval '1 second', w.number > $1 + 1 from items b, items w where b.number = 1 and w.number > 1`, item.MaxDependents)
	require.NoError(t, err)
	at := time.Now().Truncate(time.Microsecond)
	mirror := func() int {
		told, err := s.Mirror(t.Context(), at)
		require.NoError(t, err)
		return told
	}
	require.Zero(t, mirror(), "there is no room")
	_, err = pool.Exec(t.Context(), `update relations set cleared_at = now() from items i where i.id = from_id and i.number in (2, 3)`)
	require.NoError(t, err)
	require.Equal(t, 2, mirror(), "the oldest go first")
	var left []int
	require.NoError(t, pool.QueryRow(t.Context(), `select array_agg(i.number) from relations r join items i on i.id = r.from_id where r.one_sided`).Scan(&left))
	require.Equal(t, []int{item.MaxDependents + 4}, left)
	require.Zero(t, mirror())
	var blocker uuid.UUID
	var kind, actor string
	require.NoError(t, pool.QueryRow(t.Context(), `select item_id, kind, actor_kind from history`).Scan(&blocker, &kind, &actor))
	require.Equal(t, "relations", kind)
	require.Equal(t, "system", actor)
	_, err = pool.Exec(t.Context(), `update relations set cleared_at = now() from items i where i.id = from_id and i.number = 4;
		update items set removed_at = now(), removed_with = id where number = 1`)
	require.NoError(t, err)
	require.Zero(t, mirror(), "what is in the trash is told nothing")
	standings, err := s.Standings(t.Context(), blocker)
	require.NoError(t, err)
	require.Empty(t, standings[blocker].Waiting)
}
