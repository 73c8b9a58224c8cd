package bustest

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
)

// survivesRestart restarts the broker twice in the middle of a stream that
// several publishers write and one member reads.
func survivesRestart(t *testing.T, b Broker) {
	const keys, each = 4, 150
	c := open(t, b)
	topic := newTopic(t, c, 4)
	ctx := testContext(t)
	reader := take(t, subscribe(t, c, topic, fresh("group")))
	var acknowledged atomic.Int64
	third := make(chan struct{}, 2)
	published := make(chan error, keys)
	for k := range keys {
		go func() {
			for i := range each {
				m := bus.Message{Topic: topic, Key: fmt.Sprint(k), Value: fmt.Append(nil, i)}
				// What relays do: the same again until it is durable.
				for c.Publish(ctx, m) != nil {
					if ctx.Err() != nil {
						published <- ctx.Err()
						return
					}
				}
				if n := acknowledged.Add(1); n == keys*each/3 || n == 2*keys*each/3 {
					third <- struct{}{}
				}
			}
			published <- nil
		}()
	}
	for range 2 {
		<-third
		b.Restart(t)
	}
	for range keys {
		require.NoError(t, <-published)
	}
	// At least once and in order: what is new for a key is always the next
	// one, and repetitions lie behind.
	next := make(map[string]int)
	for seen := 0; seen < keys*each; {
		select {
		case m := <-reader.got:
			n := number(t, m)
			require.LessOrEqual(t, n, next[m.Key], "key %s skipped", m.Key)
			if n == next[m.Key] {
				next[m.Key]++
				seen++
			}
		case <-ctx.Done():
			require.Fail(t, "messages are missing", "%v of %d each", next, each)
		}
	}
}

func keepsOffsets(t *testing.T, b Broker) {
	c := open(t, b)
	topic, group := newTopic(t, c, 2), fresh("group")
	require.NoError(t, c.Publish(testContext(t), numbered(topic, "k", 0, 20)...))
	s := subscribe(t, c, topic, group)
	fetchN(t, s, 20)
	require.NoError(t, s.Close())
	b.Restart(t)
	require.NoError(t, c.Publish(testContext(t), numbered(topic, "k", 20, 5)...))
	for i, m := range fetchN(t, subscribe(t, c, topic, group), 5) {
		require.Equal(t, 20+i, number(t, m))
	}
}

// reconnects restarts the broker under a client that is doing nothing, and
// then expects single calls to succeed.
func reconnects(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 2)
	ctx := testContext(t)
	s := subscribe(t, c, topic, fresh("group"))
	require.NoError(t, c.Publish(ctx, numbered(topic, "k", 0, 1)...))
	fetchN(t, s, 1)
	b.Restart(t)
	require.NoError(t, c.Publish(ctx, numbered(topic, "k", 1, 1)...))
	all, err := c.ReadAll(ctx, topic)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 2)
	require.NoError(t, c.EnsureTopics(ctx, bus.Topic{Name: topic, Partitions: 2}, bus.Topic{Name: fresh("after")}))
	require.NoError(t, c.Ping(ctx))
	for n := 0; n < 1; {
		msgs, err := s.Fetch(ctx, 10)
		require.NoError(t, err)
		n = number(t, msgs[len(msgs)-1])
	}
}
