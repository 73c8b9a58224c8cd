package child

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// maxDiagnostic is the longest line of standard error that is kept whole.
	maxDiagnostic = 16 << 10
	// tailLines and tailBytes bound what is kept.
	tailLines, tailBytes = 200, 64 << 10
	// logBurst lines are logged at once and logRate a second after that; the rest is counted.
	logBurst, logRate = 200, 50
)

// diagnostics is what a child writes to standard error.
type diagnostics struct {
	log    *slog.Logger
	redact func(string) string

	mu    sync.Mutex
	lines []string
	bytes int

	tokens     float64
	filled     time.Time
	suppressed int
}

func newDiagnostics(log *slog.Logger, redact func(string) string) *diagnostics {
	return &diagnostics{log: log, redact: redact, tokens: logBurst, filled: time.Now()}
}

// drain reads until the pipe ends or is closed. It never waits for anybody, so the child never waits for it.
func (d *diagnostics) drain(f *os.File) {
	reader := bufio.NewReaderSize(f, maxDiagnostic)
	for {
		part, err := reader.ReadSlice('\n')
		line := string(part)
		if errors.Is(err, bufio.ErrBufferFull) {
			var left int
			left, err = skipLine(reader)
			line += fmt.Sprintf(" … (%d bytes more)", left)
		}
		d.take(line)
		if err != nil {
			d.finish()
			return
		}
	}
}

// skipLine reads the rest of a line and answers its length.
func skipLine(r *bufio.Reader) (int, error) {
	total := 0
	for {
		part, err := r.ReadSlice('\n')
		total += len(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return total, err
		}
	}
}

func (d *diagnostics) take(raw string) {
	line := d.redact(printable(raw))
	if line == "" {
		return
	}
	d.mu.Lock()
	d.lines = append(d.lines, line)
	d.bytes += len(line)
	for len(d.lines) > tailLines || d.bytes > tailBytes && len(d.lines) > 1 {
		d.bytes -= len(d.lines[0])
		d.lines = d.lines[1:]
	}
	allowed := d.allow(time.Now())
	d.mu.Unlock()
	if allowed {
		d.log.Debug("server_stderr", "line", line)
	}
}

// allow spends a token; it is called under the lock.
func (d *diagnostics) allow(now time.Time) bool {
	d.tokens = min(logBurst, d.tokens+now.Sub(d.filled).Seconds()*logRate)
	d.filled = now
	if d.tokens < 1 {
		d.suppressed++
		return false
	}
	d.tokens--
	if d.suppressed > 0 {
		d.log.Debug("server_stderr_suppressed", "lines", d.suppressed)
		d.suppressed = 0
	}
	return true
}

func (d *diagnostics) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.suppressed > 0 {
		d.log.Debug("server_stderr_suppressed", "lines", d.suppressed)
		d.suppressed = 0
	}
}

func (d *diagnostics) tail() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.lines...)
}
