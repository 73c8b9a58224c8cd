package notification_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
)

// clients is where throughput stops to grow on a small machine.
const clients = 8

// BenchmarkEdge measures webhooks of 10 KB acknowledged, routed beside it, at
// eight clients, and in the same run its floor: single rows committed over as
// many connections.
//
// The throwaway server of the tests does not sync its disk: for figures that mean
// something name another in BULLPEN_TEST_DATABASE_URL.
//
//	go test -bench Edge -benchtime 5s -run '^$' ./services/notification
func BenchmarkEdge(b *testing.B) {
	w := setup(b)
	parallelism := max(1, clients/runtime.GOMAXPROCS(0))

	b.Run("floor=single-row", func(b *testing.B) {
		_, err := w.pool.Exec(b.Context(), `create table if not exists floor (id bigint generated always as identity primary key, body bytea)`)
		require.NoError(b, err)
		row := []byte(strings.Repeat("x", 100))
		b.SetParallelism(parallelism)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := w.pool.Exec(b.Context(), `insert into floor (body) values ($1)`, row); err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
	})

	b.Run("webhook=10KB", func(b *testing.B) {
		http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 2 * clients
		text := strings.Repeat("Checkout is slow for customers with many items in their basket. ", 150)
		var n atomic.Int64
		b.SetParallelism(parallelism)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				id := n.Add(1)
				hook := githubdouble.Webhook(githubdouble.Envelope{Secret: githubSecret, DeliveryID: fmt.Sprint(b.N, "-", id)},
					githubdouble.Happening{Body: text, ID: id})
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, w.url+githubPath, bytes.NewReader(hook.Body))
				if err != nil {
					b.Error(err)
					return
				}
				req.Header = hook.Header
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body) // or the connection is not used again
				_ = res.Body.Close()
				if res.StatusCode != http.StatusOK {
					b.Errorf("status %d", res.StatusCode)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "webhooks/s")
	})
}
