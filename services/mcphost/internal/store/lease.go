package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// acquireLease takes a seat that is free, ended or this node's already, and answers its holder either way.
	acquireLease = `
with taken as (
    insert into seat_leases as l (seat, node, expires_at) values ($1, $2, now() + make_interval(secs => $3))
    on conflict (seat) do update set node = excluded.node, expires_at = excluded.expires_at
        where l.node = excluded.node or l.expires_at < now()
    returning node
)
select node from taken
union all
select node from seat_leases where seat = $1 and not exists (select from taken)`

	renewLeases = `
update seat_leases set expires_at = now() + make_interval(secs => $2)
where node = $1 and expires_at > now() returning seat`

	releaseLease = `delete from seat_leases where seat = $1 and node = $2`
)

// AcquireLease takes a seat for this node, or answers the node that holds it.
func (s *Store) AcquireLease(ctx context.Context, seat string, ttl time.Duration) (holder string, err error) {
	err = s.pool.QueryRow(ctx, acquireLease, seat, s.node, ttl.Seconds()).Scan(&holder)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", nil // it was let go between the two looks; the next try finds it free
	case err != nil:
		return "", fmt.Errorf("acquire the lease of a seat: %w", err)
	}
	return holder, nil
}

// RenewLeases keeps what this node holds and answers those seats. One that ended meanwhile is not among them.
func (s *Store) RenewLeases(ctx context.Context, ttl time.Duration) ([]string, error) {
	rows, err := s.pool.Query(ctx, renewLeases, s.node, ttl.Seconds())
	if err != nil {
		return nil, fmt.Errorf("renew the leases of seats: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// ReleaseLease lets a seat go.
func (s *Store) ReleaseLease(ctx context.Context, seat string) error {
	if _, err := s.pool.Exec(ctx, releaseLease, seat, s.node); err != nil {
		return fmt.Errorf("release the lease of a seat: %w", err)
	}
	return nil
}
