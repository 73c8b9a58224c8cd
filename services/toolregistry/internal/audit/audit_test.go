package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/audit"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// shelf is a store in memory that can be closed and can refuse single rows. The real one has tests of its own.
type shelf struct {
	mu      sync.Mutex
	failing error
	rows    map[uuid.UUID]*call.Record
	tried   chan struct{}
}

func newShelf() *shelf {
	return &shelf{rows: map[uuid.UUID]*call.Record{}, tried: make(chan struct{}, 1000)}
}

func (s *shelf) InsertCalls(ctx context.Context, records []*call.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.tried <- struct{}{} }()
	if s.failing != nil {
		return s.failing
	}
	for _, r := range records {
		if strings.Contains(r.Result, "\x00") {
			return fault.New(fault.Invalid, "no row can hold this")
		}
	}
	for _, r := range records {
		s.rows[r.ID] = r
	}
	return ctx.Err()
}

func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err
}

func (s *shelf) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}

func record(result string) *call.Record {
	return &call.Record{ID: uuid.New(), Tool: "reply", Result: result}
}

func start(t *testing.T, s *shelf, limit int64) (w *audit.Writer, stop func()) {
	t.Helper()
	w = audit.New(audit.Options{Store: s, Log: slog.New(slog.DiscardHandler), MaxPendingBytes: limit})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, w.Run(ctx)) })
	return w, func() { cancel(); running.Wait() }
}

func TestTheEndWritesWhatStillWaits(t *testing.T) {
	t.Parallel()
	s := newShelf()
	w, stop := start(t, s, 0)
	for i := range 2500 {
		require.NoError(t, w.Admit(t.Context()))
		w.Append(t.Context(), record(fmt.Sprint(i)))
	}
	stop()
	require.Equal(t, 2500, s.len())
	require.Zero(t, w.Pending())
	w.Append(t.Context(), record("a call that ended last"))
	require.Equal(t, 2501, s.len())
}

func TestCallsWaitWhileTheDatabaseIsBehind(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.fail(errors.New("connection lost"))
	w, stop := start(t, s, 1000)
	defer stop()
	w.Append(t.Context(), record(strings.Repeat("x", 1000)))
	<-s.tried
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	err := w.Admit(hurried)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.ErrorContains(t, err, "nothing was done")
	admitted := make(chan error, 1)
	go func() { admitted <- w.Admit(t.Context()) }()
	s.fail(nil)
	require.NoError(t, <-admitted, "the database is back")
	require.Equal(t, 1, s.len())
}

func TestARowThatCannotBeStoredHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newShelf()
	w, stop := start(t, s, 0)
	for _, result := range []string{"a", "b\x00", "c"} {
		w.Append(t.Context(), record(result))
	}
	stop()
	require.Equal(t, 2, s.len())
	require.Zero(t, w.Pending())
}

func TestACallWithoutAJournalIsWrittenBeforeItIsAnswered(t *testing.T) {
	t.Parallel()
	s := newShelf()
	w, stop := start(t, s, 0)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w.Write(gone, record("the caller has gone"))
	require.Equal(t, 1, s.len())
	s.fail(errors.New("connection lost"))
	w.Write(t.Context(), record("later"))
	require.Equal(t, 1, s.len())
	s.fail(nil)
	stop()
	require.Equal(t, 2, s.len(), "it joins those that wait")
}
