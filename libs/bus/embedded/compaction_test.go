package embedded

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
)

func TestCompactedTopicIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	b, err := Start(t.Context(), Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	defer b.Close()
	c, err := bus.Open(bus.Config{Brokers: b.Brokers()})
	require.NoError(t, err)
	defer c.Close()
	topic := bus.Topic{Name: "t", Partitions: 1, Compacted: true}
	require.NoError(t, c.EnsureTopics(t.Context(), topic))
	for i := range 30 {
		require.NoError(t, c.Publish(t.Context(),
			bus.Message{Topic: "t", Key: fmt.Sprint(i % 3), Value: fmt.Append(nil, i)}))
	}
	require.NoError(t, c.Publish(t.Context(), bus.Message{Topic: "t", Key: "gone"}))
	b.cluster.Compact()
	msgs, err := c.ReadAll(t.Context(), "t")
	require.NoError(t, err)
	require.Less(t, len(msgs), 31, "old values are gone")
	last := make(map[string]string)
	for _, m := range msgs {
		last[m.Key] = string(m.Value)
	}
	require.Subset(t, last, map[string]string{"0": "27", "1": "28", "2": "29"})
}
