//go:build unix

package pgserver

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

const (
	// keptLines of the server's output explain a start that failed.
	keptLines = 20
	// maxLineBytes bounds what is kept of a line whose end has not come.
	maxLineBytes = 64 << 10
)

// output passes the server's messages on to the log, line by line, and keeps the last ones.
type output struct {
	log *slog.Logger

	mu      sync.Mutex
	partial []byte
	lines   []string
}

func newOutput(log *slog.Logger) *output { return &output{log: log} }

// Write never fails, so that the server never blocks on its output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = append(o.partial, p...)
	for {
		i := bytes.IndexByte(o.partial, '\n')
		if i < 0 {
			break
		}
		o.line(string(o.partial[:i]))
		o.partial = o.partial[i+1:]
	}
	if len(o.partial) > maxLineBytes {
		o.line(string(o.partial))
		o.partial = nil
	}
	return len(p), nil
}

func (o *output) line(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	o.lines = append(o.lines, text)
	o.lines = o.lines[max(0, len(o.lines)-keptLines):]
	// Everything milder concerns one session, and whoever is in that has been told.
	level := slog.LevelDebug
	if strings.HasPrefix(text, "PANIC:") {
		level = slog.LevelError
	}
	o.log.Log(context.Background(), level, "postgres says", "line", text)
}

// last answers the end of the output on one line.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return lastLines(strings.Join(o.lines, "\n"))
}

func (o *output) contains(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(strings.Join(o.lines, "\n"), text)
}
