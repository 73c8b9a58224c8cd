package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

// stepsPerTurn is what a long turn takes.
const stepsPerTurn = 24

// quick is a registry that answers at once and keeps nothing.
type quick struct{ registry }

func (q *quick) CallTool(context.Context, *toolregistryv1.CallToolRequest) (*toolregistryv1.CallToolResponse, error) {
	return &toolregistryv1.CallToolResponse{Text: `{"ok":true}`, Source: "builtin"}, nil
}

// BenchmarkJournaledSteps measures steps (an answer, its call, the call's result) with model and tools answering at once, at
// 1 and 8 turns, and beside it the rate of single-row inserts at the same concurrency.
//
//	go test -run '^$' -bench JournaledSteps -benchtime 60s ./internal/engine
func BenchmarkJournaledSteps(b *testing.B) {
	for _, turns := range []int{1, 8} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			floor := insertRate(b, turns)
			steps, p50 := stepRate(b, turns)
			b.ReportMetric(steps, "steps/s")
			b.ReportMetric(floor, "inserts/s")
			b.ReportMetric(steps/floor, "ratio")
			b.ReportMetric(p50, "p50-ms/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func stepRate(b *testing.B, turns int) (rate, p50 float64) {
	b.Helper()
	c := newCompany()
	c.TurnEngine.MaxToolRounds, c.Seats = stepsPerTurn+1, nil
	for i := range turns {
		c.Seats = append(c.Seats, &companyv1.Seat{Handle: fmt.Sprintf("seat-%d", i), Name: "S", Kind: "agent"})
	}
	s := setup(b, c)
	var (
		mu    sync.Mutex
		last  = map[string]time.Time{}
		waits []float64
	)
	s.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
		now := time.Now()
		mu.Lock()
		if len(r.Rounds) > 0 {
			waits = append(waits, float64(now.Sub(last[r.Seat]))/float64(time.Millisecond))
		}
		last[r.Seat] = now
		mu.Unlock()
		if len(r.Rounds) == stepsPerTurn {
			return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
		}
		return calls("get_work_item", fmt.Sprintf(`{"title":"%d"}`, len(r.Rounds))), nil
	}}
	want := max(b.N/stepsPerTurn, turns)
	for i := range want {
		m := letter(fmt.Sprintf("seat-%d", i%turns), "slack:"+uuid.NewString(), "x")
		m.Obligation = "none"
		s.post(b, m)
	}
	s.options.LeaseTTL = time.Minute
	started := time.Now()
	b.ResetTimer()
	w := s.startWith(b, "bench", &quick{registry{tools: tools()}})
	for done := 0; done < want; {
		require.NoError(b, s.pool.QueryRow(b.Context(), `select count(*) from turns where state = 'done'`).Scan(&done))
		timer := time.NewTimer(5 * time.Millisecond)
		<-timer.C
	}
	took := time.Since(started)
	b.StopTimer()
	w.stop()
	slices.Sort(waits)
	return float64(want*stepsPerTurn) / took.Seconds(), waits[len(waits)/2]
}

func insertRate(b *testing.B, workers int) float64 {
	b.Helper()
	s := setup(b, newCompany())
	_, err := s.pool.Exec(b.Context(), `create table floor (id bigint generated always as identity primary key, body bytea)`)
	require.NoError(b, err)
	const inserts = 4000
	body := make([]byte, 512)
	started := time.Now()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range inserts / workers {
				if _, err := s.pool.Exec(b.Context(), `insert into floor (body) values ($1)`, body); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return inserts / time.Since(started).Seconds()
}
