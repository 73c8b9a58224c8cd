package embedded_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/bustest"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
)

func BenchmarkEmbedded(b *testing.B) {
	broker := start(b, embedded.Options{DataDir: b.TempDir()})
	bustest.Bench(b, bustest.Broker{Addrs: broker.Brokers()})
}

// BenchmarkStart is what boot pays: an empty folder, and one that holds
// topics and messages.
func BenchmarkStart(b *testing.B) {
	for name, count := range map[string]int{"empty": 0, "100k messages": 100_000} {
		b.Run(name, func(b *testing.B) {
			opts := embedded.Options{DataDir: b.TempDir()}
			fill(b, opts, count)
			for b.Loop() {
				broker, err := embedded.Start(b.Context(), opts)
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, broker.Close())
				b.StartTimer()
			}
		})
	}
}

func fill(b *testing.B, opts embedded.Options, count int) {
	b.Helper()
	broker := start(b, opts)
	c := connect(b, broker)
	wide := bus.Topic{Name: "wide", Partitions: 8}
	require.NoError(b, c.EnsureTopics(b.Context(), wide))
	batch := make([]bus.Message, 1000)
	for i := range batch {
		batch[i] = bus.Message{Topic: wide.Name, Key: strconv.Itoa(i), Value: make([]byte, 1000)}
	}
	for range count / len(batch) {
		require.NoError(b, c.Publish(b.Context(), batch...))
	}
	require.NoError(b, c.Close())
	require.NoError(b, broker.Close())
}
