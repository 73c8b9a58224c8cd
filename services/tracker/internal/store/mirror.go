package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// selectUntold answers the items that have room for edges that they do not know of.
const selectUntold = `select r.to_id from (select distinct to_id from relations where one_sided and cleared_at is null) r
	join items i on i.id = r.to_id and i.removed_at is null
	where (select count(*) from relations d where d.to_id = r.to_id and d.kind = 'waiting_on' and d.cleared_at is null and not d.one_sided) < $1
	limit 100`

// selectRoom answers the oldest edges that the other side, which is locked, has room to know of.
const selectRoom = `select r.from_id from relations r where r.to_id = $1 and r.kind = 'waiting_on' and r.one_sided and r.cleared_at is null
	order by r.created_at, r.from_id
	limit greatest(0, $2 - (select count(*) from relations d where d.to_id = $1 and d.kind = 'waiting_on' and d.cleared_at is null and not d.one_sided))`

// Mirror tells items of edges that they had no room to know of and have now, and answers how many. It locks one item at a time, so it may
// run beside everything else and in several processes at once.
func (s *Store) Mirror(ctx context.Context, at time.Time) (int, error) {
	rows, err := s.pool.Query(ctx, selectUntold, item.MaxDependents)
	if err != nil {
		return 0, err
	}
	blockers, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return 0, err
	}
	told := 0
	for _, id := range blockers {
		n, err := s.mirror(ctx, id, at)
		if err != nil {
			return told, err
		}
		told += n
	}
	return told, nil
}

func (s *Store) mirror(ctx context.Context, id uuid.UUID, at time.Time) (told int, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		all, err := lockAll(ctx, tx, []uuid.UUID{id})
		if err != nil {
			return err
		}
		h := all[id]
		if h == nil || h.Removal != nil {
			return nil
		}
		rows, err := tx.Query(ctx, selectRoom, id, item.MaxDependents)
		if err != nil {
			return err
		}
		waiting, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil || len(waiting) == 0 {
			return err
		}
		texts := make([]string, len(waiting))
		for n, one := range waiting {
			texts[n] = one.String()
		}
		told = len(waiting)
		batch := &pgx.Batch{}
		batch.Queue(`update relations set one_sided = false where to_id = $1 and kind = 'waiting_on' and from_id = any($2)`, id, waiting)
		queueEntries(batch, []Entry{{Position: h.Position, ItemID: &id, Project: h.Project, Change: item.Change{
			Kind: "relations", By: item.Actor{Name: "tracker", Kind: "system"}, Fields: map[string]item.Field{"blocking": {To: item.Members(texts)}},
			Version: h.Version, Reassignments: h.Reassignments, At: at,
		}}})
		return tx.SendBatch(ctx, batch).Close()
	})
	return told, err
}
