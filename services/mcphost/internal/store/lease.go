package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Unsettled is how young a lease may be and yet be unknown to its own node: the answer to its acquisition is on the way.
const Unsettled = 3 * time.Second

const (
	// acquireLease takes a seat that is free, ended or this node's already, and answers its holder either way.
	acquireLease = `
with taken as (
    insert into seat_leases as l (seat, node, expires_at) values ($1, $2, now() + make_interval(secs => $3))
    on conflict (seat) do update set node = excluded.node, expires_at = excluded.expires_at
        where l.node = excluded.node or l.expires_at < now()
    returning node
), holder as (
    select node from taken
    union all
    select node from seat_leases where seat = $1 and not exists (select from taken)
)
select holder.node, coalesce(nodes.url, '') from holder left join nodes using (node)`

	holderOf = `
select l.node, coalesce(n.url, '') from seat_leases l left join nodes n using (node)
where l.seat = $1 and l.expires_at > now()`

	renewLeases = `
update seat_leases set expires_at = now() + make_interval(secs => $3)
where node = $1 and seat = any($2) and expires_at > now() returning seat`

	// giveBack deletes what was let go of, and what nobody works under: a release that failed must not be renewed for ever.
	giveBack = `
delete from seat_leases
where node = $1 and (seat = any($2) or seat <> all($3) and expires_at < now() + make_interval(secs => $4))`
)

// AcquireLease takes a seat for this node, or answers the node that holds it. The zero Node means that it was let go of between
// two looks: the next try finds it free.
func (s *Store) AcquireLease(ctx context.Context, seat string, ttl time.Duration) (holder Node, err error) {
	err = s.pool.QueryRow(ctx, acquireLease, seat, s.self.Name, ttl.Seconds()).Scan(&holder.Name, &holder.URL)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Node{}, nil
	case err != nil:
		return Node{}, fmt.Errorf("acquire the lease of a seat: %w", err)
	}
	return holder, nil
}

// Holder answers the node that holds a seat; the zero Node for none.
func (s *Store) Holder(ctx context.Context, seat string) (holder Node, err error) {
	err = s.pool.QueryRow(ctx, holderOf, seat).Scan(&holder.Name, &holder.URL)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Node{}, fmt.Errorf("look for the holder of a seat: %w", err)
	}
	return holder, nil
}

// RenewLeases renews the seats to keep and answers those that this node still held; one that ended meanwhile is not among them.
// The seats to drop are free afterwards, and so is any other of this node's that is older than [Unsettled].
func (s *Store) RenewLeases(ctx context.Context, keep, drop []string, ttl time.Duration) (kept []string, err error) {
	batch := &pgx.Batch{}
	batch.Queue(renewLeases, s.self.Name, keep, ttl.Seconds()).Query(func(rows pgx.Rows) error {
		kept, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	batch.Queue(giveBack, s.self.Name, drop, keep, (ttl - Unsettled).Seconds())
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("renew the leases of seats: %w", err)
	}
	return kept, nil
}
