package topology

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyPatience is generous: seven processes start at once, perhaps with the race detector on a busy machine.
	readyPatience = 2 * time.Minute
	// stopPatience is more than a process gives itself to drain.
	stopPatience = 45 * time.Second
	glance       = 20 * time.Millisecond
)

// process is one service's process, over its runs.
type process struct {
	name, binary, address, log string
	environment                map[string]string

	mu      sync.Mutex
	command *exec.Cmd
	// exited is closed when the running process is gone; nil before the first.
	exited chan struct{}
}

// launch starts the process. Its output is added to its log.
func (p *process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone() {
		return fmt.Errorf("%s runs already", p.name)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(p.binary)
	command.Stdout, command.Stderr = log, log
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "USER"} {
		if value, set := os.LookupEnv(name); set {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	for name, value := range p.environment {
		command.Env = append(command.Env, name+"="+value)
	}
	// Its own group: an interrupt at the terminal ends the tests, which then end it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(command.SysProcAttr)
	exited := make(chan struct{})
	started := make(chan error)
	go func() {
		// The kernel's signal at the death of the parent goes by the thread that started the child.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // how it ended is in ProcessState
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.command, p.exited = command, exited
	return nil
}

// gone reports whether no process runs. The caller holds mu.
func (p *process) gone() bool {
	if p.exited == nil {
		return true
	}
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) running() (*exec.Cmd, chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.command, p.exited, !p.gone()
}

// await waits until the process answers that it is ready.
func (p *process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	_, exited, _ := p.running()
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for {
		status, err := p.probe(ctx)
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%s ended before it was ready:\n%s", p.name, p.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (status %d, %w):\n%s", p.name, status, errors.Join(err, ctx.Err()), p.lastWords())
		case <-ticker.C:
		}
	}
}

func (p *process) probe(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/readyz", nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func (p *process) kill() error {
	command, exited, runs := p.running()
	if !runs {
		return nil
	}
	if err := command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-exited
	return nil
}

// stop asks the process to end and answers its exit code. One that does not end in time, or before ctx does, is killed.
func (p *process) stop(ctx context.Context) (int, error) {
	command, exited, runs := p.running()
	if !runs {
		return 0, nil
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	select {
	case <-exited:
		return command.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return -1, errors.Join(fmt.Errorf("it did not end: %w", ctx.Err()), p.kill())
	}
}

// lastWords is the end of the log, in whole lines.
func (p *process) lastWords() string {
	const enough = 32 << 10
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(text) > enough {
		text = text[len(text)-enough:]
		if _, rest, found := strings.Cut(string(text), "\n"); found {
			return rest
		}
	}
	return string(text)
}
