package bustest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func arrivesWhole(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 1)
	at := time.Date(2026, 11, 30, 9, 0, 0, 123e6, time.UTC)
	sent := []bus.Message{
		{Topic: topic, Key: "clé-键-🗝", Value: []byte("valeur 值 🐂 \x00\xff"), Time: at, Headers: map[string]string{
			"ce_id": "0198", "ce_type": "bullpen.example.v1", "traceparent": "00-11-22-01", "naïve": "ünï", "empty": "",
		}},
		{Topic: topic, Key: "empty", Value: []byte{}, Time: at},
		{Topic: topic, Key: "tombstone", Time: at},
		{Topic: topic, Value: []byte("no key"), Time: at},
	}
	require.NoError(t, c.Publish(testContext(t), sent...))
	got := fetchN(t, subscribe(t, c, topic, fresh("group")), len(sent))
	for i, m := range got {
		require.Equal(t, int64(i), m.Offset)
		require.True(t, m.Time.Equal(at), "time %s", m.Time)
		want := sent[i]
		want.Offset, want.Time = m.Offset, m.Time
		require.Equal(t, want, m)
	}
}

func keepsKeyOrder(t *testing.T, b Broker) {
	const keys, rounds, perRound = 12, 20, 5
	c := open(t, b)
	topic := newTopic(t, c, 8)
	ctx := testContext(t)
	var wg sync.WaitGroup
	for k := range keys {
		wg.Go(func() {
			for r := range rounds {
				// Each call also carries another topic's worth of partitions:
				// keys of its own that no one else writes.
				msgs := numbered(topic, fmt.Sprint("key-", k), r*perRound, perRound)
				msgs = append(msgs, numbered(topic, fmt.Sprint("other-", k), r*perRound, perRound)...)
				if err := c.Publish(ctx, msgs...); err != nil {
					t.Errorf("publish: %v", err)
				}
			}
		})
	}
	next := make(map[string]int)
	partition := make(map[string]int)
	for _, m := range fetchN(t, subscribe(t, c, topic, fresh("group")), 2*keys*rounds*perRound) {
		require.Equal(t, next[m.Key], number(t, m), "key %s", m.Key)
		next[m.Key]++
		if p, seen := partition[m.Key]; seen {
			require.Equal(t, p, m.Partition, "key %s moved", m.Key)
		}
		partition[m.Key] = m.Partition
	}
	wg.Wait()
	used := make(map[int]bool)
	for _, p := range partition {
		used[p] = true
	}
	require.Greater(t, len(used), 3, "keys are spread over the partitions")
}

func passesLargest(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 1)
	value := bytes.Repeat([]byte("0123456789abcdef"), bus.MaxValueBytes/16)
	head := string(bytes.Repeat([]byte("h"), bus.MaxHeadBytes-len("kk")))
	require.NoError(t, c.Publish(testContext(t),
		bus.Message{Topic: topic, Key: "k", Value: value, Headers: map[string]string{"k": head}},
		bus.Message{Topic: topic, Key: "k", Value: []byte("small")}))
	got := fetchN(t, subscribe(t, c, topic, fresh("group")), 2)
	require.True(t, bytes.Equal(value, got[0].Value))
	require.Equal(t, head, got[0].Headers["k"])
	require.Equal(t, "small", string(got[1].Value))
}

func refusesTooLarge(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 1)
	err := c.Publish(testContext(t),
		bus.Message{Topic: topic, Key: "k", Value: []byte("before")},
		bus.Message{Topic: topic, Key: "k", Value: make([]byte, bus.MaxValueBytes+1)},
		bus.Message{Topic: topic, Key: "k", Value: []byte("after")})
	var refused *bus.PublishError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 3, refused.Total)
	require.Len(t, refused.Failures, 1)
	require.Equal(t, 1, refused.Failures[0].Index)
	require.Equal(t, fault.Invalid, fault.ClassOf(refused.Failures[0].Err))
	require.ErrorContains(t, err, "value of 1048577 bytes for topic "+topic+" is over the limit of 1048576 bytes")
	got := fetchN(t, subscribe(t, c, topic, fresh("group")), 2)
	require.Equal(t, "before", string(got[0].Value))
	require.Equal(t, "after", string(got[1].Value))
}

func splitsBatches(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 1)
	msgs := make([]bus.Message, 100)
	for i := range msgs {
		msgs[i] = bus.Message{Topic: topic, Key: "k", Value: bytes.Repeat([]byte{byte(i)}, 50_000)}
	}
	require.NoError(t, c.Publish(testContext(t), msgs...))
	for i, m := range fetchN(t, subscribe(t, c, topic, fresh("group")), len(msgs)) {
		require.True(t, bytes.Equal(msgs[i].Value, m.Value), "message %d", i)
	}
}

func namesAbsentTopic(t *testing.T, b Broker) {
	c := open(t, b)
	topic, absent := newTopic(t, c, 1), fresh("absent")
	err := c.Publish(testContext(t),
		bus.Message{Topic: absent, Key: "k"},
		bus.Message{Topic: topic, Key: "k", Value: []byte("there")})
	var refused *bus.PublishError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Failures, 1)
	require.Equal(t, absent, refused.Failures[0].Topic)
	require.ErrorContains(t, err, absent)
	require.Equal(t, fault.Unavailable, fault.ClassOf(errors.Unwrap(refused.Failures[0].Err)), "it may be made later")
	require.Equal(t, "there", string(fetchN(t, subscribe(t, c, topic, fresh("group")), 1)[0].Value))
}
