package bustest

import (
	"bytes"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
)

// benchValue is about the size of a delivery event.
var benchValue = bytes.Repeat([]byte("bullpen "), 150)

// Bench measures a broker through package bus: the time from publishing one
// message to having it, and how many pass when many are on their way.
func Bench(b *testing.B, broker Broker) {
	b.Helper()
	b.Run("latency", func(b *testing.B) { benchLatency(b, broker) })
	b.Run("throughput", func(b *testing.B) { benchThroughput(b, broker) })
}

func benchLatency(b *testing.B, broker Broker) {
	b.Helper()
	c := open(b, broker)
	topic := newTopic(b, c, 8)
	s := subscribe(b, c, topic, fresh("group"))
	ctx := b.Context()
	pass := func(key string) {
		require.NoError(b, c.Publish(ctx, bus.Message{Topic: topic, Key: key, Value: benchValue}))
		msgs, err := s.Fetch(ctx, 500)
		require.NoError(b, err)
		require.NoError(b, s.Commit(ctx, msgs...))
	}
	pass("warm")
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		pass(strconv.Itoa(i))
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
	b.ReportMetric(took[len(took)-1].Seconds()*1e3, "max-ms")
}

// benchBatch is what a relay publishes in one call.
const benchBatch = 500

func benchThroughput(b *testing.B, broker Broker) {
	b.Helper()
	c := open(b, broker)
	topic := newTopic(b, c, 8)
	s := subscribe(b, c, topic, fresh("group"))
	ctx := b.Context()
	msgs := make([]bus.Message, benchBatch)
	for i := range msgs {
		msgs[i] = bus.Message{Topic: topic, Key: strconv.Itoa(i), Value: benchValue}
	}
	require.NoError(b, c.Publish(ctx, msgs[0]))
	fetchN(b, s, 1)
	b.SetBytes(benchBatch * int64(len(benchValue)))
	arrived := 0
	done := make(chan error, 1)
	b.ResetTimer()
	go func() {
		for range b.N {
			if err := c.Publish(ctx, msgs...); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for arrived < b.N*benchBatch {
		got, err := s.Fetch(ctx, 500)
		require.NoError(b, err)
		require.NoError(b, s.Commit(ctx, got...))
		arrived += len(got)
	}
	require.NoError(b, <-done)
	b.ReportMetric(float64(arrived)/b.Elapsed().Seconds(), "messages/s")
}
