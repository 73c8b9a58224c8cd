// Package child runs one program as a child process and owns it to the end.
//
// The child leads a process group of its own and, on Linux, dies with this process. Its output is read from the first byte on:
// standard output as lines of protocol for whoever calls [Process.Next], standard error into the log and a bounded tail. However it
// ends, it is reaped, its group is killed, and no grandchild that kept a pipe open can hold anybody up.
//
//	Stop: close stdin ─► wait ─► TERM to the group ─► wait ─► KILL to the group ─► reap ─► close the pipes
//
// The package knows lines, not MCP.
package child

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// maxLine is the longest line of output that is read whole; images and big tables come in one line.
	maxLine = 64 << 20
	// maxNoiseLines and maxNoiseBytes are how much a child may write to its standard output that is no message.
	maxNoiseLines, maxNoiseBytes = 1000, 4 << 20
	// drain is how long what a dead child wrote is still read when a grandchild keeps its pipes open.
	drain = 500 * time.Millisecond
	// stall is how long a write to the child may take.
	stall = 30 * time.Second
)

// ErrStopped is the end of a child that was asked to end.
var ErrStopped = errors.New("it was stopped")

// ErrNotWritten marks a write of which the child got no byte.
var ErrNotWritten = errors.New("nothing was written")

// Options say what to run.
type Options struct {
	// Path and Args are the program as exec would take it. A name without a slash is looked up in the PATH of Env.
	Path string
	Args []string
	// Env is the whole environment; see [Environment].
	Env []string
	// Log gets each line of standard error as a debug record, bearing what it already bears.
	Log *slog.Logger
	// Redact cleans a line before anybody sees it; nil leaves it.
	Redact func(string) string
	// Grace is how long the child has after its input closed, and again after TERM; 0 means 2 s.
	Grace time.Duration
	// Launcher starts the process.
	Launcher *Launcher
}

// Process is a running child. All methods are safe for concurrent use, but Next has one caller.
type Process struct {
	options Options
	cmd     *exec.Cmd
	stdin   *os.File
	write   sync.Mutex
	out     *output
	errors  *diagnostics

	readers  sync.WaitGroup
	finished chan struct{} // closed once reaped and the pipes are closed
	exited   chan struct{} // closed once reaped
	stop     sync.Once
	deaf     sync.Once

	wrote atomic.Bool // something was written to its input

	mu    sync.Mutex
	cause error
}

// Start starts the program. The error says in a half sentence what is wrong with it.
func Start(o Options) (*Process, error) {
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	path, err := lookPath(o.Path, o.Env)
	if err != nil {
		return nil, err
	}
	p := &Process{options: o, finished: make(chan struct{}), exited: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: path, Args: append([]string{o.Path}, o.Args...), Env: o.Env, SysProcAttr: attributes()}
	pipes, err := openPipes(p.cmd)
	if err != nil {
		return nil, err
	}
	err = o.Launcher.start(p.cmd)
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeOurs()
		return nil, fmt.Errorf("%s cannot be started: %w", o.Path, errnoOf(err))
	}
	p.stdin = pipes.in
	p.out = newOutput(pipes.out)
	p.errors = newDiagnostics(o.Log, o.Redact)
	p.readers.Go(func() { p.errors.drain(pipes.err) })
	go p.reap(pipes)
	return p, nil
}

// reap waits for the child, then for its output, then lets go of everything.
func (p *Process) reap(pipes *pipes) {
	err := p.cmd.Wait()
	p.fail(exitOf(p.cmd.ProcessState, err))
	close(p.exited)
	// The group may hold the real server behind a launcher, or a helper that would hold our pipes.
	p.signal(syscall.SIGKILL)
	_ = p.stdin.Close()
	done := make(chan struct{})
	go func() { p.readers.Wait(); p.out.waitEnd(); close(done) }()
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	pipes.closeOurs()
	p.readers.Wait()
	p.out.close()
	close(p.finished)
}

// Next answers the next line of standard output that begins like a JSON message, without its end. The line is the caller's. The
// error is the reason why the child ended, or will in a moment.
func (p *Process) Next() ([]byte, error) {
	line, err := p.out.next()
	if err == nil {
		return line, nil
	}
	if !errors.Is(err, errEnd) {
		p.abandon(err)
		return nil, p.Cause()
	}
	// Nothing can come any more of a child that closed its output and yet lives on.
	timer := time.AfterFunc(p.options.Grace, func() { p.abandon(errors.New("it closed its output but did not exit")) })
	defer timer.Stop()
	<-p.exited
	return nil, p.Cause()
}

// Noise says that a line which Next answered was no message after all. A child that makes too much of it is killed.
func (p *Process) Noise(line []byte) {
	if err := p.out.noise(len(line)); err != nil {
		p.abandon(err)
	}
}

// Write writes to standard input, whole or not at all as far as other writers see. A child that does not read for half a minute
// is killed: what it was half given cannot be taken back. So is one that has closed its input and goes on: it hears nothing more.
func (p *Process) Write(data []byte) error {
	p.write.Lock()
	defer p.write.Unlock()
	_ = p.stdin.SetWriteDeadline(time.Now().Add(stall))
	defer p.wrote.Store(true)
	if n, err := p.stdin.Write(data); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.abandon(fmt.Errorf("it did not read its input for %s", stall))
		}
		why := p.Cause()
		if why == nil {
			why = fmt.Errorf("its input is closed: %w", errnoOf(err))
		}
		p.deaf.Do(p.deafened)
		if n == 0 {
			return fmt.Errorf("%w: %w", ErrNotWritten, why)
		}
		return why
	}
	return nil
}

// deafened ends a child that closed its input, unless that was the beginning of its end.
func (p *Process) deafened() {
	timer := time.AfterFunc(p.options.Grace, func() { p.abandon(errors.New("it closed its input but did not exit")) })
	go func() {
		<-p.exited
		timer.Stop()
	}()
}

// Reads reports whether the child took what was written to its input first: it is up then, and installs nothing any more. Where the
// system does not tell, it is taken to.
func (p *Process) Reads() bool {
	if !p.wrote.Load() {
		return false
	}
	connection, err := p.stdin.SyscallConn()
	if err != nil {
		return false
	}
	left, known := 0, false
	if connection.Control(func(fd uintptr) { left, known = unread(fd) }) != nil {
		return false
	}
	return left == 0 || !known
}

// Stop ends the child and answers when it is reaped and its pipes are closed. It is bounded whatever the child does.
func (p *Process) Stop() {
	p.stop.Do(func() {
		p.fail(ErrStopped)
		_ = p.stdin.Close()
		if p.waitExit() {
			return
		}
		p.signal(syscall.SIGTERM)
		if p.waitExit() {
			return
		}
		p.signal(syscall.SIGKILL)
	})
	<-p.finished
}

// Done is closed when the child is reaped and its pipes are closed.
func (p *Process) Done() <-chan struct{} { return p.finished }

// Cause answers why the child ended, or is being ended; nil while it runs.
func (p *Process) Cause() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// PID answers the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Tail answers the last lines of standard error, oldest first, cleaned.
func (p *Process) Tail() []string { return p.errors.tail() }

// NoiseLines answers how many lines of standard output were skipped.
func (p *Process) NoiseLines() int { return p.out.noiseLines() }

// abandon kills a child that broke the rules.
func (p *Process) abandon(why error) {
	p.fail(why)
	p.signal(syscall.SIGKILL)
}

// fail keeps the first cause: what comes after is its consequence.
func (p *Process) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		p.cause = err
	}
}

func (p *Process) waitExit() bool {
	timer := time.NewTimer(p.options.Grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// signal reaches the whole group, whose id is the child's: it is not given to another process while one member lives.
func (p *Process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }
