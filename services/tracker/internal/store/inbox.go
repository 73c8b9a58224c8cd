package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/person"
)

// MaxUnread is where counting unread notices stops, MaxUntold where counting changes does.
const (
	MaxUnread = 1000
	MaxUntold = 1000
)

// What an inbox shows of notices that were put off and whose time has not come.
const (
	SnoozedExcluded = "exclude"
	SnoozedIncluded = "include"
	SnoozedOnly     = "only"
)

// InboxFilter narrows an inbox; every part that is set must hold, so that a page is full as long as there is more.
type InboxFilter struct {
	Handle      string
	Unread      bool
	PrimaryOnly bool
	// Snoozed is one of the constants.
	Snoozed string
	Reasons []string
	// Since is the place after which notices are shown, Before the one before which: 0 for no bound.
	Since, Before int64
	Limit         int32
	Now           time.Time
}

// Inbox is a page of a person's notices, newest first, and what they keep.
type Inbox struct {
	Record  person.Record
	Notices []InboxNotice
	// More: older ones fit as well.
	More bool
	// Unread counts what is not read, up to MaxUnread.
	Unread int32
	// Through is the place up to which everybody has been told; Untold counts changes after it of which that is not settled.
	Through int64
	Untold  int32
}

// InboxNotice is a notice with the item's key and title as they are now.
type InboxNotice struct {
	Position int64
	Notice
}

// Inbox reads a page in two round trips, of one moment.
func (s *Store) Inbox(ctx context.Context, f InboxFilter) (*Inbox, error) {
	in := &Inbox{Record: person.Record{Handle: f.Handle}}
	first := &pgx.Batch{}
	first.Queue(`select `+personColumns+` from persons p where handle = $1`, f.Handle).QueryRow(func(row pgx.Row) error {
		if err := scanPerson(row, &in.Record); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	first.Queue(`select coalesce((`+firstUntold+` and h.position <= t.settled) - 1, t.settled), (select count(*) from (select from history h
			where h.position > t.through and h.item_id is not null and not exists (select from told d where d.position = h.position) limit $1) u)
		from told_through t`, MaxUntold).QueryRow(func(row pgx.Row) error { return row.Scan(&in.Through, &in.Untold) })
	moment, err := s.snapshot(ctx, first)
	defer moment.end()
	if err != nil {
		return nil, err
	}
	rest := &pgx.Batch{}
	sql, args := f.query(&in.Record)
	queueRows(rest, &in.Notices, scanNotice, sql, args...)
	rest.Queue(`select count(*) from (select from notices n where n.person = $1 and n.position > $2 and n.position <> all($3)
			union all select from notices n where n.person = $1 and n.position = any($4) limit $5) u`,
		f.Handle, in.Record.SeenThrough, orEmptySlice(in.Record.Read), orEmptySlice(in.Record.Unread), MaxUnread).
		QueryRow(func(row pgx.Row) error { return row.Scan(&in.Unread) })
	if err := moment.last(ctx, rest); err != nil {
		return nil, err
	}
	if in.More = len(in.Notices) > int(f.Limit); in.More {
		in.Notices = in.Notices[:f.Limit]
	}
	return in, nil
}

const selectNotices = `select n.position, n.person, n.item_id, coalesce(i.project || '-' || i.number, n.item_key), coalesce(i.title, n.title), n.reason, n.reasons, n.kind,
	n.actor, n.actor_kind, n.excerpt, n.comment_id, n.occurred_at
	from (%s order by position desc limit %d) n left join items i on i.id = n.item_id order by n.position desc`

func scanNotice(row pgx.CollectableRow) (InboxNotice, error) {
	var n InboxNotice
	return n, row.Scan(&n.Position, &n.Person, &n.ItemID, &n.ItemKey, &n.Title, &n.Reason, &n.Reasons, &n.Kind, &n.Actor, &n.ActorKind, &n.Excerpt,
		&n.CommentID, &n.OccurredAt)
}

// query asks for the notices that fit, and one more. What is read is known from the record, so unread ones are two ranges of the index:
// those after the place seen through, and the few exceptions before it.
func (f InboxFilter) query(r *person.Record) (string, []any) {
	before := f.Before
	if before == 0 {
		before = math.MaxInt64
	}
	args := []any{f.Handle, f.Since, before}
	where := "n.person = $1 and n.position > $2 and n.position < $3"
	add := func(sql string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(" and "+sql, len(args))
	}
	if reasons := f.reasons(r); reasons != nil {
		add("n.reason = any($%d)", reasons)
	}
	asleep := []int64{}
	for _, s := range r.Snoozed {
		if s.Until.After(f.Now) {
			asleep = append(asleep, s.Record)
		}
	}
	switch f.Snoozed {
	case SnoozedOnly:
		add("n.position = any($%d)", asleep)
	case SnoozedIncluded:
	default:
		add("n.position <> all($%d)", asleep)
	}
	from := "select * from notices n where " + where
	if f.Unread {
		args = append(args, r.SeenThrough, orEmptySlice(r.Read), orEmptySlice(r.Unread))
		at := len(args)
		from = fmt.Sprintf(`select * from (select * from notices n where %[1]s and n.position > $%[2]d and n.position <> all($%[3]d)
			union all select * from notices n where %[1]s and n.position = any($%[4]d)) n`, where, at-2, at-1, at)
	}
	return fmt.Sprintf(selectNotices, from, f.Limit+1), args
}

// reasons answers those to show; nil for all.
func (f InboxFilter) reasons(r *person.Record) []string {
	switch {
	case !f.PrimaryOnly && len(f.Reasons) == 0:
		return nil
	case !f.PrimaryOnly:
		return f.Reasons
	case len(f.Reasons) == 0:
		return r.PrimaryReasons()
	default:
		primary := r.PrimaryReasons()
		return slices.DeleteFunc(slices.Clone(f.Reasons), func(reason string) bool { return !slices.Contains(primary, reason) })
	}
}
