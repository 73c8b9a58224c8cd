// Package pg opens Postgres the way every service here uses it: one schema per service, found through the connection's
// search path and never named in a statement.
//
// That one idea makes the rest simple. The same SQL and the same migrations serve a service with a database of its own,
// eight services in one database, and a test in a throwaway schema. [Open] sets the path, [EnsureSchemas] creates what
// it names, [Migrate] brings each schema to the version this build knows, [InTx] runs a transaction, and [Transient]
// says which failures are worth another try.
//
// Errors that leave this package on their own account are faults; errors of statements are pgx's, untouched, because
// only the caller knows what a violated constraint means.
//
// Package pgserver runs a database when none is given, and package pgtest hands one to tests.
package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// maxConns is the knee measured on two cores: with more connections throughput stays and latency grows.
	maxConns = 8
	// connectTimeout bounds one connection attempt, so that a dead address is a failure and not a hang.
	connectTimeout = 5 * time.Second
	// statementCacheCapacity is per connection; a service has fewer statements than that.
	statementCacheCapacity = 512
	// poolSizeParam is the setting in a dsn that only pools understand; a server would refuse it.
	poolSizeParam = "pool_max_conns"
)

// Open opens a pool on one schema and proves that the database answers. The pool holds at most 8 connections unless the
// dsn says pool_max_conns, names itself "bullpen-<schema>" to the server unless the dsn says application_name, and
// prepares each statement once a connection.
//
// The schema need not exist yet. The caller closes the pool. Faults: invalid when the dsn cannot be read, unavailable
// when the database cannot be reached; neither repeats the dsn, which may hold a password.
func Open(ctx context.Context, dsn, schema string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, invalidDSN(err)
	}
	if !hasPoolSize(dsn) {
		cfg.MaxConns = maxConns
	}
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	cfg.MaxConnIdleTime = 10 * time.Minute
	cfg.HealthCheckPeriod = 30 * time.Second
	onSchema(cfg.ConnConfig, schema)

	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, unreachable(err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreachable(err)
	}
	return pool, nil
}

// onSchema points a connection at a schema, with public behind it for extensions.
func onSchema(cfg *pgx.ConnConfig, schema string) {
	cfg.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize() + ",public"
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "bullpen-" + schema
	}
	cfg.ConnectTimeout = connectTimeout
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	cfg.StatementCacheCapacity = statementCacheCapacity
}

// connect opens one connection outside any pool, on the dsn's own search path.
func connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, invalidDSN(err)
	}
	delete(cfg.RuntimeParams, poolSizeParam)
	cfg.ConnectTimeout = connectTimeout
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, unreachable(err)
	}
	return conn, nil
}

func invalidDSN(err error) error {
	return fault.New(fault.Invalid, "The database address cannot be read. Write it as "+
		"postgres://user:password@host:port/database.").WithField("database_url").WithCause(err)
}

func unreachable(err error) error {
	return fault.New(fault.Unavailable, "The database cannot be reached.").WithCause(err)
}

// hasPoolSize reports whether the dsn decides the size of the pool itself. pgxpool does not tell a given value from its
// default, so the question is put to the settings that ParseConfig left unused.
func hasPoolSize(dsn string) bool {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return false
	}
	_, given := cfg.RuntimeParams[poolSizeParam]
	return given
}

// InTx runs fn in a transaction: commit when it answers nil, roll back when it answers an error or panics. It does not
// try again; see [Transient]. The tx is not safe for concurrent use and is dead after fn returns.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, fn)
}
