package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/ops"
)

// Notice tells one person of one change.
type Notice struct {
	Person  string
	ItemID  uuid.UUID
	ItemKey string
	Title   string
	// Reason is the strongest of Reasons.
	Reason     string
	Reasons    []string
	Kind       string
	Actor      string
	ActorKind  string
	Excerpt    string
	CommentID  *uuid.UUID
	OccurredAt time.Time
}

// Told says that it is settled whom a change is told to, and which people are among them.
type Told struct {
	Position ops.Position
	Notices  []Notice
}

// TakeTold keeps whom a change was told to, in the transaction that takes the fact in. The same fact again changes nothing. Of an item that was
// destroyed since, nothing is kept but that it was.
func TakeTold(ctx context.Context, tx pgx.Tx, t Told) error {
	batch := &pgx.Batch{}
	batch.Queue(`insert into told (position) values ($1) on conflict do nothing`, t.Position.Sequence)
	for _, n := range t.Notices {
		batch.Queue(`insert into notices (person, position, item_id, item_key, title, reason, reasons, kind, actor, actor_kind, excerpt, comment_id, occurred_at)
			select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 where $8 = 'purged' or not exists (select from purged_items where id = $3)
			on conflict do nothing`,
			n.Person, t.Position.Sequence, n.ItemID, n.ItemKey, n.Title, n.Reason, set(n.Reasons), n.Kind, n.Actor, n.ActorKind, n.Excerpt, n.CommentID, n.OccurredAt)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// noticesPerSweep bounds a statement of SweepNotices.
const noticesPerSweep = 5000

// SweepNotices forgets notices from before a moment, with the marks of them, and answers how many.
func (s *Store) SweepNotices(ctx context.Context, before time.Time) (int64, error) {
	var total int64
	for {
		tag, err := s.pool.Exec(ctx, `delete from notices where (person, position) in (
			select person, position from notices where occurred_at < $1 order by occurred_at limit $2)`, before, noticesPerSweep)
		if err != nil {
			return total, err
		}
		if total += tag.RowsAffected(); tag.RowsAffected() < noticesPerSweep {
			break
		}
	}
	_, err := s.pool.Exec(ctx, `delete from told where settled_at < $1 and position <= (select through from told_through)`, before)
	if err != nil || total == 0 {
		return total, err
	}
	// A mark of what is gone only takes the place of another.
	_, err = s.pool.Exec(ctx, `update persons p set
			read_after = array(select r from unnest(read_after) r where exists (select from notices n where n.person = p.handle and n.position = r) order by r),
			unread_before = array(select r from unnest(unread_before) r where exists (select from notices n where n.person = p.handle and n.position = r) order by r),
			snoozed_until = array(select s.until from unnest(snoozed, snoozed_until) s (r, until)
				where exists (select from notices n where n.person = p.handle and n.position = s.r) order by s.r),
			snoozed = array(select r from unnest(snoozed) r where exists (select from notices n where n.person = p.handle and n.position = r) order by r)
		where exists (select from unnest(read_after || unread_before || snoozed) r where not exists (
			select from notices n where n.person = p.handle and n.position = r))`)
	return total, err
}

// AdvanceTold moves on up to where everybody has been told. Call it now and then; it writes only when there is something to say.
//
// A change is seen when it commits, and another with an earlier place may commit later. So the newest place that was drawn is kept as a
// barrier, with the transactions that ran then: once those are over, nothing up to the barrier is still to come.
func (s *Store) AdvanceTold(ctx context.Context) error {
	var newest int64
	// Before the next statement takes its snapshot: whatever drew a place up to here runs in it, or is over.
	if err := s.pool.QueryRow(ctx, `select last_value - (not is_called)::int from positions`).Scan(&newest); err != nil {
		return err
	}
	_, err := s.pool.Exec(ctx, `update told_through set settled = barrier, barrier = $1, barrier_xid = pg_snapshot_xmax(pg_current_snapshot())
		where pg_snapshot_xmin(pg_current_snapshot()) >= barrier_xid and (settled <> barrier or barrier <> $1)`, newest)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `update told_through t set through = n.through from (select coalesce((`+firstUntold+`
			and h.position <= t.settled) - 1, t.settled) as through from told_through t) n
		where n.through > t.through`)
	return err
}

// firstUntold is the earliest change of an item after told_through t of which it is not settled who is told.
const firstUntold = `select min(h.position) from history h where h.position > t.through and h.item_id is not null
	and not exists (select from told d where d.position = h.position)`

// Place answers a place in the order of writes as everybody names it; empty for none.
func Place(sequence int64) string {
	if sequence == 0 {
		return ""
	}
	return position(sequence).String()
}
