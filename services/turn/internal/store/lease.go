package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	beat = `
insert into nodes (node, expires_at) values ($1, clock_timestamp() + $2::interval)
on conflict (node) do update set expires_at = excluded.expires_at`

	buryNodes = `delete from nodes where expires_at < clock_timestamp() - interval '1 minute'`

	countNodes = `select count(*) from nodes where expires_at > clock_timestamp()`

	// renew takes nothing that has lapsed: somebody may have it already.
	renew = `
update seats set expires_at = clock_timestamp() + $2::interval
where holder = $1 and expires_at > clock_timestamp() returning seat, epoch`

	acquire = `
with free as (
    select wanted.seat from unnest($2::text[]) with ordinality as wanted (seat, place)
    left join seats on seats.seat = wanted.seat
    where seats.seat is null or seats.expires_at <= clock_timestamp()
    order by wanted.place limit $4)
insert into seats (seat, epoch, holder, expires_at)
select free.seat, 1, $1, clock_timestamp() + $3::interval from free
on conflict (seat) do update set epoch = seats.epoch + 1, holder = excluded.holder, expires_at = excluded.expires_at
where seats.expires_at <= clock_timestamp()
returning seat, epoch`

	release = `
update seats set holder = '', expires_at = clock_timestamp() where seat = $1 and epoch = $2 and holder = $3`

	leaveNode = `delete from nodes where node = $1`

	otherNodes = `
select node from nodes where node <> $1
union select holder from seats where holder not in ('', $1) and expires_at > clock_timestamp()`

	endLeases = `update seats set expires_at = clock_timestamp() where holder = any($1) and expires_at > clock_timestamp()`

	forgetNodes = `delete from nodes where node = any($1)`
)

// Beat says that the node is alive, renews the leases it still holds, and answers them with the number of live nodes.
func (s *Store) Beat(ctx context.Context, node string, ttl time.Duration) (held map[string]int64, live int, err error) {
	batch := &pgx.Batch{}
	held = map[string]int64{}
	batch.Queue(beat, node, ttl)
	batch.Queue(buryNodes)
	batch.Queue(countNodes).QueryRow(func(row pgx.Row) error { return row.Scan(&live) })
	batch.Queue(renew, node, ttl).Query(func(rows pgx.Rows) error { return collectLeases(rows, held) })
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, 0, fmt.Errorf("renew the leases: %w", err)
	}
	return held, max(live, 1), nil
}

// Acquire takes at most limit of the seats that nobody holds, those first that stand first, each with a new epoch.
func (s *Store) Acquire(ctx context.Context, node string, seats []string, ttl time.Duration, limit int) (map[string]int64, error) {
	taken := map[string]int64{}
	rows, err := s.pool.Query(ctx, acquire, node, seats, ttl, limit)
	if err == nil {
		err = collectLeases(rows, taken)
	}
	if err != nil {
		return nil, fmt.Errorf("acquire seats: %w", err)
	}
	return taken, nil
}

func collectLeases(rows pgx.Rows, into map[string]int64) error {
	var (
		seat  string
		epoch int64
	)
	_, err := pgx.ForEachRow(rows, []any{&seat, &epoch}, func() error {
		into[seat] = epoch
		return nil
	})
	return err
}

// Release frees a seat at once, if the node still holds it under that epoch.
func (s *Store) Release(ctx context.Context, node string, f Fence) error {
	if _, err := s.pool.Exec(ctx, release, f.Seat, f.Epoch, node); err != nil {
		return fmt.Errorf("release the seat: %w", err)
	}
	return nil
}

// Others answers every other worker that is counted as live or holds a seat.
func (s *Store) Others(ctx context.Context, node string) ([]string, error) {
	rows, err := s.pool.Query(ctx, otherNodes, node)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Bury ends the leases of workers that are gone, before their time. One that lives after all finds them lapsed: it renews
// none, and whoever acquires them has a newer epoch.
func (s *Store) Bury(ctx context.Context, nodes []string) error {
	batch := &pgx.Batch{}
	batch.Queue(endLeases, nodes)
	batch.Queue(forgetNodes, nodes)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("end the leases of workers that are gone: %w", err)
	}
	return nil
}

// Leave says that the node takes no more seats.
func (s *Store) Leave(ctx context.Context, node string) error {
	if _, err := s.pool.Exec(ctx, leaveNode, node); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}
