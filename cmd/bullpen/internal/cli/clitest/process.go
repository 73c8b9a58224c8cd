package clitest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyPatience is generous: initdb and seven services, with the race detector, on a busy machine.
	readyPatience = 2 * time.Minute
	stopPatience  = time.Minute
	readyLine     = "Bullpen is ready on "
)

// Process is a running `bullpen up`.
type Process struct {
	command *exec.Cmd
	// lifeline is closed when this process ends, however it does.
	lifeline io.Closer
	ready    chan struct{}
	exited   chan struct{}

	printed bytes.Buffer

	mu   sync.Mutex
	said strings.Builder
}

// Up starts `bullpen up` on a port of its own. environment is all that the process gets beside the places that programs need.
func Up(data string, environment map[string]string, args ...string) (*Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args = append([]string{"up", "--data", data, "--listen", "127.0.0.1:0", "--log-level", "warn"}, args...)
	p := &Process{command: exec.Command(executable, args...), ready: make(chan struct{}), exited: make(chan struct{})}
	// Its own group: an interrupt at the terminal ends the tests, which then end it.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.command.Env = append(p.command.Env, lifeline+"=1")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "USER"} {
		if value, set := os.LookupEnv(name); set {
			p.command.Env = append(p.command.Env, name+"="+value)
		}
	}
	for name, value := range environment {
		p.command.Env = append(p.command.Env, name+"="+value)
	}
	if p.lifeline, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	p.command.Stdout = &p.printed
	stderr, err := p.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go p.listen(stderr)
	return p, nil
}

// listen keeps what the process says, and notes when it says that it is ready.
func (p *Process) listen(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		fmt.Fprintln(&p.said, lines.Text())
		p.mu.Unlock()
		if strings.HasPrefix(lines.Text(), readyLine) {
			close(p.ready)
		}
	}
	_ = p.command.Wait() // how it ended is in ProcessState
	close(p.exited)
}

// Said answers everything that the process has written to standard error.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// Await waits until the process says that it is ready.
func (p *Process) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	select {
	case <-p.ready:
		return nil
	case <-p.exited:
		return fmt.Errorf("it ended before it was ready:\n%s", p.Said())
	case <-ctx.Done():
		return fmt.Errorf("it is not ready: %w\n%s", ctx.Err(), p.Said())
	}
}

// Stop asks the process to end as a service manager does, and answers its exit code.
func (p *Process) Stop(ctx context.Context) (int, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	return p.Wait(ctx)
}

// Printed answers what the process has written to standard output, once it has ended.
func (p *Process) Printed() string {
	<-p.exited
	return p.printed.String()
}

// Signal sends the process a signal, unless it has ended.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait waits until the process has ended, and answers its exit code.
func (p *Process) Wait(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	select {
	case <-p.exited:
		return p.command.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, errors.Join(fmt.Errorf("it did not end: %w\n%s", ctx.Err(), p.Said()), p.command.Process.Kill())
	}
}
