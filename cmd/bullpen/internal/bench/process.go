package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

const (
	readyPatience = 2 * time.Minute
	stopPatience  = time.Minute
	glance        = 2 * time.Millisecond
)

// process is the suite, as `bullpen up` starts it.
type process struct {
	command *exec.Cmd
	data    string
	url     string
	started time.Duration
}

// up starts the suite on a data directory and waits until it is ready. environment is all that the process gets, beside the
// places that programs need.
func up(ctx context.Context, executable, data string, environment map[string]string, arguments ...string) (*process, error) {
	p := &process{data: data}
	arguments = append([]string{"up", "--data", data, "--listen", "127.0.0.1:0", "--log-level", "error"}, arguments...)
	p.command = exec.CommandContext(ctx, executable, arguments...)
	p.command.Stderr = os.Stderr
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = stopPatience
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "USER"} {
		p.command.Env = append(p.command.Env, name+"="+os.Getenv(name))
	}
	for name, value := range environment {
		p.command.Env = append(p.command.Env, name+"="+value)
	}
	_ = os.Remove(p.endpoint())
	began := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if err := p.await(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.started = time.Since(began)
	return p, nil
}

func (p *process) endpoint() string { return filepath.Join(p.data, "endpoint.json") }

// await waits for the file by which a local installation says that it is ready.
func (p *process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for {
		if text, err := os.ReadFile(p.endpoint()); err == nil {
			var endpoint struct {
				URL string `json:"url"`
			}
			if err := json.Unmarshal(text, &endpoint); err == nil {
				p.url = endpoint.URL
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the suite was not ready within %s", readyPatience)
		case <-ticker.C:
		}
	}
}

func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.command.Wait()
}

// memory answers the process's own resident memory in MB.
func (p *process) memory() (float64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kilobytes / 1024, err
		}
	}
	return 0, io.ErrUnexpectedEOF
}

// keys are those that the installation signs with.
func (p *process) keys() (*rpc.Keys, error) {
	text, err := os.ReadFile(filepath.Join(p.data, "keys", "principal"))
	if err != nil {
		return nil, err
	}
	return rpc.NewKeys(config.Secret(strings.TrimSpace(string(text))))
}
