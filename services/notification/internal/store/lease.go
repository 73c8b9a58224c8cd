package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// ErrLost says that a lease has gone to another worker, which knows better: the
// write was not done, and nothing more may be sent under it.
var ErrLost = errors.New("the lease is held by another worker")

// Lease is a worker's right to post with one seat's credential.
type Lease struct {
	Surface string
	Seat    string
	fence   int64
}

const (
	// A lane is taken if nobody holds it, its vendor does not want quiet, and
	// something in it can be worked on.
	claimLane = `
update outbound_lanes set owner = $1, fence = fence + 1, lease_until = now() + $2::interval
where (surface, seat) = (
    select l.surface, l.seat from outbound_lanes l
    where l.lease_until <= now() and l.available_at <= now() and exists (
        select 1 from outbound o
        where o.surface = l.surface and o.seat = l.seat and o.state in ('queued', 'sending', 'unknown')
          and o.available_at <= now())
    limit 1
    for update skip locked)
returning surface, seat, fence`

	renewLane = `
update outbound_lanes set lease_until = now() + $4::interval where surface = $1 and seat = $2 and fence = $3
returning available_at <= now()`

	// Messages of one conversation go out in order: the first that is not
	// settled holds back those behind it.
	nextOutbound = `
select ` + outboundColumns + ` from outbound o
where surface = $1 and seat = $2 and state in ('queued', 'sending', 'unknown') and available_at <= now()
  and not exists (
    select 1 from outbound e
    where e.surface = o.surface and e.seat = o.seat and e.conversation_key = o.conversation_key
      and e.sequence < o.sequence and e.state in ('queued', 'sending', 'unknown'))
order by sequence limit 1`

	releaseLane = `update outbound_lanes set lease_until = now() where surface = $1 and seat = $2 and fence = $3`

	quietLane = `
update outbound_lanes set available_at = greatest(available_at, now() + $4::interval)
where surface = $1 and seat = $2 and fence = $3`
)

// ClaimLane takes a lane with work in it for ttl; false when there is none.
func (s *Store) ClaimLane(ctx context.Context, owner string, ttl time.Duration) (Lease, bool, error) {
	var l Lease
	err := s.pool.QueryRow(ctx, claimLane, owner, ttl).Scan(&l.Surface, &l.Seat, &l.fence)
	if errors.Is(err, pgx.ErrNoRows) {
		return Lease{}, false, nil
	}
	if err != nil {
		return Lease{}, false, fmt.Errorf("claim a lane: %w", err)
	}
	return l, true, nil
}

// NextOutbound renews the lease for ttl and answers the message to work on now,
// nil when there is none. A message in state sending is one whose worker died.
func (s *Store) NextOutbound(ctx context.Context, l Lease, ttl time.Duration) (*Outbound, error) {
	var open bool
	err := s.pool.QueryRow(ctx, renewLane, l.Surface, l.Seat, l.fence, ttl).Scan(&open)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrLost
	}
	if err != nil {
		return nil, fmt.Errorf("renew a lane: %w", err)
	}
	if !open {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, nextOutbound, l.Surface, l.Seat)
	if err != nil {
		return nil, fmt.Errorf("read the next message: %w", err)
	}
	found, err := pgx.CollectRows(rows, scanOutbound)
	if err != nil {
		return nil, fmt.Errorf("read the next message: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

// ReleaseLane gives a lane back before its lease ends.
func (s *Store) ReleaseLane(ctx context.Context, l Lease) error {
	if _, err := s.pool.Exec(ctx, releaseLane, l.Surface, l.Seat, l.fence); err != nil {
		return fmt.Errorf("release a lane: %w", err)
	}
	return nil
}

// QuietLane keeps everybody from posting with this credential for a while.
func (s *Store) QuietLane(ctx context.Context, l Lease, wait time.Duration) error {
	return s.fenced(ctx, quietLane, l.Surface, l.Seat, l.fence, wait)
}

// Every write of a worker names its fence. Only sending also asks that the
// lease has not run out: what is known afterwards may be written as long as
// nobody else has begun.
const (
	held = `
from outbound_lanes l
where message_id = $1 and l.surface = outbound.surface and l.seat = outbound.seat and l.fence = $2`

	markSending = `
update outbound set state = 'sending', attempts = attempts + 1, sent_at = now(), detail = ''` + held + `
and l.lease_until > now()`

	markPosted = `
update outbound set state = 'posted', vendor_id = $3, url = $4, detail = '', posted_at = now()` + held

	markFailed = `
update outbound set state = 'failed', failure = $3, detail = $4` + held

	markWaiting = `
update outbound set state = $3, detail = $4, available_at = now() + $5::interval,
    lookups = case when $3 = 'unknown' then lookups + 1 else 0 end` + held
)

// MarkSending records, before it is done, that a message is sent now.
func (s *Store) MarkSending(ctx context.Context, l Lease, id uuid.UUID) error {
	return s.fenced(ctx, markSending, id, l.fence)
}

// MarkPosted records that a message stands at the vendor, as vendorID.
func (s *Store) MarkPosted(ctx context.Context, l Lease, id uuid.UUID, vendorID, url string) error {
	return s.fenced(ctx, markPosted, id, l.fence, vendorID, url)
}

// MarkFailed records that a message will not be posted.
func (s *Store) MarkFailed(ctx context.Context, l Lease, id uuid.UUID, class fault.Class, detail string) error {
	return s.fenced(ctx, markFailed, id, l.fence, string(class), detail)
}

// MarkWaiting puts a message into state queued or unknown, to be taken up again
// after wait.
func (s *Store) MarkWaiting(ctx context.Context, l Lease, id uuid.UUID, state, detail string, wait time.Duration) error {
	return s.fenced(ctx, markWaiting, id, l.fence, state, detail, wait)
}

func (s *Store) fenced(ctx context.Context, statement string, args ...any) error {
	tag, err := s.pool.Exec(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("write under a lease: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLost
	}
	return nil
}
