package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/events"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

// words make texts that compress and repeat about as answers of tools do.
var words = strings.Fields(`issue comment open closed author title body labels created updated repository pull request merged branch commit
	deploy certificate renew project status doing review done assignee priority search result page container revision`)

func prose(bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, `{"%s":"%s %s %x"},`, words[rand.IntN(len(words))], words[rand.IntN(len(words))], words[rand.IntN(len(words))], rand.Uint64())
	}
	return b.String()
}

// BenchmarkTrigrams is why the audit's texts have no trigram index: what writing a call costs with one and without.
func BenchmarkTrigrams(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10} {
		for _, indexed := range []bool{false, true} {
			b.Run(fmt.Sprintf("write/%dKB/index=%t", size>>10, indexed), func(b *testing.B) {
				pool := pgtest.Pool(b, "toolregistry", store.Migrations)
				if indexed {
					_, err := pool.Exec(b.Context(), `create index on calls using gin ((arguments || result) public.gin_trgm_ops)`)
					require.NoError(b, err)
				}
				s := store.New(pool, events.Encode, func() {})
				const batch = 100
				for b.Loop() {
					b.StopTimer()
					var records []*call.Record
					for range batch {
						r := record("ada", "t1", "c", noon)
						r.Result = prose(size)
						records = append(records, r)
					}
					b.StartTimer()
					require.NoError(b, s.InsertCalls(context.Background(), records))
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/batch, "µs/call")
			})
		}
	}
}

// BenchmarkSearch looks for a text that no call holds, in a window's worth of calls at a time.
func BenchmarkSearch(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			s := store.New(pgtest.Pool(b, "toolregistry", store.Migrations), events.Encode, func() {})
			const calls = 10_000
			for i := range calls / 500 {
				var records []*call.Record
				for j := range 500 {
					r := record("ada", "t1", "c", noon.Add(time.Duration(i*500+j)*time.Second))
					r.Result = prose(size)
					records = append(records, r)
				}
				require.NoError(b, s.InsertCalls(context.Background(), records))
			}
			for b.Loop() {
				_, _, err := s.SearchCalls(context.Background(), store.Filter{Text: "nowhere to be found"}, store.After{}, 50)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/calls, "µs/call")
		})
	}
}
