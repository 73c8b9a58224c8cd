package bustest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func makesManyTopics(t *testing.T, b Broker) {
	c := open(t, b)
	ctx := testContext(t)
	topics := make([]bus.Topic, 24)
	for i := range topics {
		topics[i] = bus.Topic{Name: fresh("many"), Partitions: 1 + i%8, Compacted: i%5 == 0}
	}
	// Several services start at once and each wants them all.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := c.EnsureTopics(ctx, topics...); err != nil {
				t.Errorf("ensure topics: %v", err)
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.EnsureTopics(ctx, topics...), "again")
	var msgs []bus.Message
	for _, topic := range topics {
		msgs = append(msgs, bus.Message{Topic: topic.Name, Key: "k", Value: []byte(topic.Name)})
	}
	require.NoError(t, c.Publish(ctx, msgs...), "every partition has a leader")
	for _, topic := range topics {
		got, err := c.ReadAll(ctx, topic.Name)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, topic.Name, string(got[0].Value))
	}
}

func refusesNarrowTopic(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 2)
	ctx := testContext(t)
	require.NoError(t, c.EnsureTopics(ctx, bus.Topic{Name: topic, Partitions: 1}), "more than wanted is enough")
	err := c.EnsureTopics(ctx, bus.Topic{Name: topic, Partitions: 4})
	require.Equal(t, fault.Conflict, fault.ClassOf(err))
	require.ErrorContains(t, err, "topic "+topic+" has 2 partitions and 4 are wanted")
}

func readsCompacted(t *testing.T, b Broker) {
	c := open(t, b)
	ctx := testContext(t)
	topic := fresh("compacted")
	require.NoError(t, c.EnsureTopics(ctx, bus.Topic{Name: topic, Partitions: 3, Compacted: true}))
	got, err := c.ReadAll(ctx, topic)
	require.NoError(t, err)
	require.Empty(t, got)
	empty, err := c.Empty(ctx, topic)
	require.NoError(t, err)
	require.True(t, empty)

	for round := range 3 {
		for k := range 10 {
			require.NoError(t, c.Publish(ctx, bus.Message{Topic: topic, Key: fmt.Sprint("k", k), Value: fmt.Append(nil, round)}))
		}
	}
	require.NoError(t, c.Publish(ctx, bus.Message{Topic: topic, Key: "k7"}))

	empty, err = c.Empty(ctx, topic)
	require.NoError(t, err)
	require.False(t, empty)

	got, err = c.ReadAll(ctx, topic)
	require.NoError(t, err)
	last := make(map[string]bus.Message)
	for _, m := range got {
		if before, seen := last[m.Key]; seen {
			require.Greater(t, m.Offset, before.Offset, "key %s goes backwards", m.Key)
		}
		last[m.Key] = m
	}
	require.Len(t, last, 10)
	for key, m := range last {
		if key == "k7" {
			require.Nil(t, m.Value, "a tombstone stays a tombstone")
			continue
		}
		require.Equal(t, "2", string(m.Value), "key %s", key)
	}
}
