// Package presence lets processes of one service see at once that another one has died.
//
// A lease frees itself when its time runs out, which has to be long enough for a slow holder: tens of seconds in which a killed
// process's work waits. Presence shortens that wait without shortening the lease. Each process holds an advisory lock under
// its own name on a connection of its own; the database lets go of it as soon as the connection ends, which for a killed
// process is at once. Whoever looks for work asks which holders are [Presence.Gone] and may take their leases early.
//
// The idea to hold: presence is a hint, never a fence. A process whose connection was cut is alive and may look gone for a
// moment; Grace covers a quick return, and the lease's own epoch must refuse its writes in any case. A machine that vanishes
// without closing its connections is noticed by keepalives, or by the lease's time.
package presence

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultGrace is longer than a process takes to come back after the database has restarted.
	defaultGrace = 2 * time.Second
	// retry is the pause before another try for a connection.
	retry = 100 * time.Millisecond
	// watch is how often the connection is asked whether it still stands.
	watch = 5 * time.Second

	// lockName is per schema, as the nodes of two services may share a name.
	lockName = `hashtextextended('bullpen.presence.' || current_schema() || '.' || $1, 0)`

	hold = `select pg_advisory_lock(` + lockName + `)`

	// absent finds names under which nobody holds a lock. pg_locks shows the two halves of a key apart.
	absent = `
select node from unnest($1::text[]) node where not exists (
    select from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
      and l.database = (select oid from pg_database where datname = current_database())
      and ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended('bullpen.presence.' || current_schema() || '.' || node, 0))`
)

// Options tune a presence; the zero value is sound.
type Options struct {
	// Grace is how long another process must be absent before it counts as gone; 0 means 2 s.
	Grace time.Duration
	// Log is told when the connection is lost. Nil discards.
	Log *slog.Logger
	// Now is the clock that Grace is measured with; nil means time.Now.
	Now func() time.Time
}

// Presence is one process's. It is safe for concurrent use.
type Presence struct {
	pool *pgxpool.Pool
	node string
	opts Options

	once  sync.Once
	shown chan struct{}

	mu   sync.Mutex
	seen map[string]time.Time // since when each absent process is
}

// New makes the presence of a process under a name that no other process ever has. Run shows it.
func New(pool *pgxpool.Pool, node string, o Options) *Presence {
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Presence{pool: pool, node: node, opts: o, shown: make(chan struct{}), seen: map[string]time.Time{}}
}

// Shown is closed once the others can see this process. One that takes work before may look dead to them.
func (p *Presence) Shown() <-chan struct{} { return p.shown }

// Run shows the process's presence until ctx ends, and answers nil then. A lost connection is replaced.
func (p *Presence) Run(ctx context.Context) error {
	for {
		err := p.show(ctx)
		if ctx.Err() != nil {
			return nil
		}
		p.opts.Log.Warn("presence was lost, showing it again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
}

// show holds the lock on one connection until that fails.
func (p *Presence) show(ctx context.Context) error {
	cfg := p.pool.Config().ConnConfig
	cfg.RuntimeParams["application_name"] += "-presence"
	// A machine that vanishes from the network must not look present for the hours that TCP would wait.
	cfg.RuntimeParams["tcp_keepalives_idle"] = "10"
	cfg.RuntimeParams["tcp_keepalives_interval"] = "5"
	cfg.RuntimeParams["tcp_keepalives_count"] = "3"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, hold, p.node); err != nil {
		return fmt.Errorf("hold the lock: %w", err)
	}
	p.once.Do(func() { close(p.shown) })
	for {
		// Nothing is ever sent to this connection: waiting for it notices its end at once, and asking it now and then
		// notices an end that nobody announced.
		waiting, cancel := context.WithTimeout(ctx, watch)
		err := conn.PgConn().WaitForNotification(waiting)
		expired := waiting.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !expired {
			return fmt.Errorf("watch the connection: %w", err)
		}
		if err := conn.Ping(ctx); err != nil {
			return fmt.Errorf("watch the connection: %w", err)
		}
	}
}

// Gone answers which of the processes have been absent for longer than Grace, as far as this one has seen. A process must be asked
// about at least twice, Grace apart.
func (p *Presence) Gone(ctx context.Context, nodes []string) ([]string, error) {
	rows, err := p.pool.Query(ctx, absent, nodes)
	if err != nil {
		return nil, fmt.Errorf("look for absent processes: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for absent processes: %w", err)
	}
	now := p.opts.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	since := make(map[string]time.Time, len(missing))
	var gone []string
	for _, node := range missing {
		first, known := p.seen[node]
		if !known {
			first = now
		}
		since[node] = first
		if node != p.node && now.Sub(first) >= p.opts.Grace {
			gone = append(gone, node)
		}
	}
	p.seen = since
	return gone, nil
}
