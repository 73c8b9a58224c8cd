//go:build unix

// Package pgserver runs a Postgres of its own, for the installation that was not given one.
//
// [Start] finds the programs, creates a cluster in the data directory the first time, starts the server on a Unix socket
// that only this user can reach, and keeps it running: a server that dies is started again. [Server.Stop] ends it
// cleanly.
//
// The idea to hold on to: one supervisor a data directory, and the directory is always usable afterwards. A lock that
// dies with the process keeps two supervisors apart. On Linux the kernel stops the server when its supervisor is killed;
// elsewhere, or in the moment between, the next Start finds the server that was left behind, stops it and takes over.
//
//	<data>/supervisor.lock   held while a supervisor lives
//	<data>/cluster           Postgres' own directory; appears whole or not at all
//	<data>/run               the socket, or a short directory under the temporary one when the path is too long
//
// Postgres refuses to run as root. Started by root, the server runs as the user postgres, or nobody, and the data
// directory is given to that user.
//
// It is not for production clusters: no replication, no backups, no network. Give those a database address instead.
package pgserver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// databaseName and superuser exist in every cluster made here.
	databaseName = "bullpen"
	superuser    = "bullpen"

	// restartMin and restartMax bound the wait before a server that died is started again. It doubles, and starts over
	// once the server has lived for steadyAfter.
	restartMin  = 50 * time.Millisecond
	restartMax  = 5 * time.Second
	steadyAfter = time.Minute
)

// Options say where the server lives.
type Options struct {
	// DataDir is created when it is missing. Its path may be of any length.
	DataDir string
	// Log takes the server's own warnings and errors and what the supervisor does. Nil discards.
	Log *slog.Logger
	// Throwaway trades durability for speed, for tests: what is committed survives the server's death, not the machine's.
	Throwaway bool
}

// Server is a running Postgres. Its methods are safe for concurrent use.
type Server struct {
	cluster *cluster
	log     *slog.Logger
	lock    *os.File

	quit     chan struct{}
	quitOnce sync.Once
	hurry    chan struct{}
	hurryOne sync.Once
	done     chan struct{}

	mu  sync.Mutex
	pid int
	err error
}

// Start brings the server up and answers when it takes connections: about 0.2 s, and 1 s more the first time. The end of
// ctx ends a start in progress but not a server that runs. The caller stops it.
//
// Faults: invalid for a data directory that cannot be used as it is, conflict for one that another process uses or that
// belongs to another major version, unavailable when no Postgres can be found or it does not start.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	c, err := newCluster(ctx, opts)
	if err != nil {
		return nil, err
	}
	lock, err := c.acquire()
	if err != nil {
		return nil, err
	}
	p, err := c.bringUp(ctx)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Server{
		cluster: c, log: opts.Log, lock: lock, pid: p.pid(),
		quit: make(chan struct{}), hurry: make(chan struct{}), done: make(chan struct{}),
	}
	go s.supervise(p)
	return s, nil
}

// DSN answers the address of the database "bullpen" in this server, as a superuser. It stays the same for the life of
// the data directory and holds no secret: the socket's directory is what keeps others out.
func (s *Server) DSN() string { return s.cluster.dsn(databaseName) }

// PID answers the process id of the server as it runs now; it changes when the server is started again.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pid
}

// Done is closed when the server has ended for good: after [Server.Stop].
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop disconnects everybody, writes what must be written and ends the server. When ctx ends first the server is told to
// end at once, which loses nothing but makes the next start recover, and Stop still waits for that. Later calls answer
// what the first did.
func (s *Server) Stop(ctx context.Context) error {
	s.quitOnce.Do(func() { close(s.quit) })
	select {
	case <-s.done:
	case <-ctx.Done():
		s.hurryOne.Do(func() { close(s.hurry) })
		<-s.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// supervise keeps a server running until Stop.
func (s *Server) supervise(p *postmaster) {
	defer close(s.done)
	defer s.lock.Close()
	backoff := restartMin
	for {
		started := time.Now()
		select {
		case <-s.quit:
			err := p.stop(s.hurry)
			s.cluster.removeSocketDir()
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			return
		case <-p.exited:
		}
		if time.Since(started) >= steadyAfter {
			backoff = restartMin
		}
		s.log.Error("postgres ended by itself, starting it again", "error", p.exitError(), "in", backoff)
		if p = s.restart(&backoff); p == nil {
			s.cluster.removeSocketDir()
			return
		}
		s.mu.Lock()
		s.pid = p.pid()
		s.mu.Unlock()
	}
}

// restart tries until the server is up, or answers nil when Stop was called.
func (s *Server) restart(backoff *time.Duration) *postmaster {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		timer := time.NewTimer(*backoff)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		*backoff = min(2**backoff, restartMax)
		p, err := s.cluster.bringUp(ctx)
		if err == nil {
			s.log.Info("postgres is up again")
			return p
		}
		if ctx.Err() != nil {
			return nil
		}
		s.log.Error("postgres does not start", "error", err, "in", *backoff)
	}
}

func unusable(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, format, args...).WithField("data_dir")
}
