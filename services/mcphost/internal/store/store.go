// Package store is mcphost's Postgres: what every node runs, and which node runs a seat's children. It is the only package here
// that knows SQL.
//
// The rows are reports, not commands: losing them loses no server, and a node writes all of its own again at its next heartbeat.
// Only a seat's lease decides something, and it is judged by the clock of Postgres alone.
package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations are the schema's files.
func Migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// Report is what is known of one instance.
type Report struct {
	// Node is set in what is read; what is written bears the writer's.
	Node         string
	Server, Seat string
	State        server.State
	Reason       string
	Tools        int
	Starts       int
	Protocol     string
	At           time.Time
	// ReportedAt is when the node last said that it lives.
	ReportedAt time.Time
}

// Fact is what changed: an instance's state, a server's lists, resources that somebody follows, or several of them.
type Fact struct {
	Report Report
	// StateChanged says that the state or its reason is another than before.
	StateChanged bool
	// Digest is that of the tools when they are others than before, and empty otherwise.
	Digest string
	// Resources are the addresses of those that changed, each once.
	Resources []string
	// PromptsChanged and ResourcesChanged say that the server announced other prompts, or other resources or templates.
	PromptsChanged, ResourcesChanged bool
}

// EncodeFunc makes the events of a fact; next draws the place of each.
type EncodeFunc func(f Fact, next func() (int64, error)) ([]outbox.Message, error)

// Store reads and writes the tables. It is safe for concurrent use.
type Store struct {
	pool      *pgxpool.Pool
	self      Node
	withdrawn atomic.Bool
	changing  chan struct{} // taken while a token changes
	encode    EncodeFunc
	wake      func()
}

// Open proves that the schema fits this build. wake is called after each commit that left events behind.
func Open(ctx context.Context, pool *pgxpool.Pool, self Node, encode EncodeFunc, wake func()) (*Store, error) {
	if err := outbox.Check(ctx, pool); err != nil {
		return nil, err
	}
	return &Store{pool: pool, self: self, changing: make(chan struct{}, max(1, pool.Config().MaxConns/changeShare)), encode: encode, wake: wake}, nil
}

const (
	upsertInstance = `
insert into instances (node, server, seat, state, reason, tool_count, starts, protocol, state_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (node, server, seat) do update set state = excluded.state, reason = excluded.reason, tool_count = excluded.tool_count,
    starts = excluded.starts, protocol = excluded.protocol, state_at = excluded.state_at`

	deleteInstance = `delete from instances where node = $1 and server = $2 and seat = $3`
	nextFact       = `select nextval('facts')`

	// listReports answers what live nodes say; a node that was silent for longer than $1 seconds is not alive.
	listReports = `
select i.node, i.server, i.seat, i.state, i.reason, i.tool_count, i.starts, i.protocol, i.state_at, n.reported_at
from instances i join nodes n using (node)
where n.reported_at > now() - make_interval(secs => $1)
order by i.server, i.node, i.seat`
)

// Record writes what changed, with its events, in one transaction. An instance that was shut down leaves no row. It answers true
// when nothing of what this node reported before is there any more, so that it must say all of it again.
func (s *Store) Record(ctx context.Context, facts []Fact) (forgotten bool, err error) {
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, upsertNode, s.self.Name, s.url()).Scan(&forgotten); err != nil {
			return fmt.Errorf("report the node: %w", err)
		}
		for _, f := range facts {
			if err := s.record(ctx, tx, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(facts) > 0 {
		s.wake()
	}
	return forgotten, err
}

func (s *Store) record(ctx context.Context, tx pgx.Tx, f Fact) error {
	r := f.Report
	r.Node, f.Report.Node = s.self.Name, s.self.Name
	var err error
	if r.State == server.Shutdown {
		_, err = tx.Exec(ctx, deleteInstance, s.self.Name, r.Server, r.Seat)
	} else {
		_, err = tx.Exec(ctx, upsertInstance, s.self.Name, r.Server, r.Seat, string(r.State), r.Reason, r.Tools, r.Starts, r.Protocol, r.At)
	}
	if err != nil {
		return fmt.Errorf("report an instance: %w", err)
	}
	messages, err := s.encode(f, func() (n int64, err error) {
		err = tx.QueryRow(ctx, nextFact).Scan(&n)
		return n, err
	})
	if err != nil {
		return fmt.Errorf("encode a fact: %w", err)
	}
	for _, m := range messages {
		if _, err := outbox.Append(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}

// Reports answers what the nodes say that reported within silence, by server, node and seat.
func (s *Store) Reports(ctx context.Context, silence time.Duration) ([]Report, error) {
	rows, err := s.pool.Query(ctx, listReports, silence.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list reports: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Report, error) {
		var r Report
		return r, row.Scan(&r.Node, &r.Server, &r.Seat, &r.State, &r.Reason, &r.Tools, &r.Starts, &r.Protocol, &r.At, &r.ReportedAt)
	})
}
