package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Node is a process of this service.
type Node struct {
	// Name is unique to the process.
	Name string
	// URL is where the others reach it; empty for one that takes nothing from others.
	URL string
}

const (
	// upsertNode answers whether the node was unknown, or had been forgotten: with it, all that it had reported is gone.
	upsertNode = `
insert into nodes (node, url, reported_at) values ($1, $2, now())
on conflict (node) do update set url = excluded.url, reported_at = excluded.reported_at
returning xmax = 0`

	listPeers = `
select node, url from nodes
where node <> $1 and url <> '' and reported_at > now() - make_interval(secs => $2) order by node`

	listLive = `
select node, reported_at from nodes where reported_at > now() - make_interval(secs => $1) order by node`

	listOthers = `
select node from nodes where node <> $1
union select node from seat_leases where node <> $1`

	addressesOf = `select name, coalesce(url, '') from unnest($1::text[]) name left join nodes on node = name`

	sweepNodes = `delete from nodes where reported_at < now() - interval '10 minutes'`
)

// Withdraw says with the next report that this node takes nothing from others any more.
func (s *Store) Withdraw() { s.withdrawn.Store(true) }

// url is where the others reach this node.
func (s *Store) url() string {
	if s.withdrawn.Load() {
		return ""
	}
	return s.self.URL
}

// Peers answers the other nodes that reported within silence and can be reached.
func (s *Store) Peers(ctx context.Context, silence time.Duration) ([]Node, error) {
	rows, err := s.pool.Query(ctx, listPeers, s.self.Name, silence.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list the other nodes: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Node])
}

// Beat is when a node last said that it lives.
type Beat struct {
	Node string
	At   time.Time
}

// Live answers the nodes that reported within silence, this one among them, by name.
func (s *Store) Live(ctx context.Context, silence time.Duration) ([]Beat, error) {
	rows, err := s.pool.Query(ctx, listLive, silence.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list the live nodes: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Beat])
}

// Others answers the names of all other nodes that left anything here, dead ones among them.
func (s *Store) Others(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, listOthers, s.self.Name)
	if err != nil {
		return nil, fmt.Errorf("list the other nodes: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Addresses answers nodes by name; one that is not known any more has no address.
func (s *Store) Addresses(ctx context.Context, names []string) ([]Node, error) {
	rows, err := s.pool.Query(ctx, addressesOf, names)
	if err != nil {
		return nil, fmt.Errorf("look up the addresses of nodes: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Node])
}

// Bury forgets nodes that are gone, with their seats and all they reported. One that lives after all finds its leases lost, and
// reports again.
func (s *Store) Bury(ctx context.Context, nodes []string) error {
	batch := &pgx.Batch{}
	batch.Queue(`delete from seat_leases where node = any($1)`, nodes)
	batch.Queue(`delete from nodes where node = any($1)`, nodes)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("forget nodes that are gone: %w", err)
	}
	return nil
}

// Sweep forgets nodes that have been silent for ten minutes, with all they reported.
func (s *Store) Sweep(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, sweepNodes); err != nil {
		return fmt.Errorf("sweep silent nodes: %w", err)
	}
	return nil
}

// Leave forgets this node at once, when it ends in good order.
func (s *Store) Leave(ctx context.Context) error { return s.Bury(ctx, []string{s.self.Name}) }
