package bustest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
)

func fetchesWhatWaits(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 4)
	ctx := testContext(t)
	s := subscribe(t, c, topic, fresh("group"))
	var msgs []bus.Message
	for k := range 50 {
		msgs = append(msgs, numbered(topic, fmt.Sprint(k), 0, 4)...)
	}
	require.NoError(t, c.Publish(ctx, msgs...))
	var sizes []int
	for got := 0; got < len(msgs); {
		batch, err := s.Fetch(ctx, 60)
		require.NoError(t, err)
		require.LessOrEqual(t, len(batch), 60)
		sizes = append(sizes, len(batch))
		got += len(batch)
	}
	// One answer of the broker holds them all; a poll that came between the
	// partitions' writes may split it.
	require.Less(t, len(sizes), 12, "batches of %v", sizes)
}

func startsAtBeginning(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 3)
	require.NoError(t, c.Publish(testContext(t), numbered(topic, "k", 0, 10)...))
	for i, m := range fetchN(t, subscribe(t, c, topic, fresh("group")), 10) {
		require.Equal(t, i, number(t, m))
	}
}

func remembersCommits(t *testing.T, b Broker) {
	c := open(t, b)
	topic, group := newTopic(t, c, 2), fresh("group")
	ctx := testContext(t)
	require.NoError(t, c.Publish(ctx, numbered(topic, "k", 0, 10)...))
	s := subscribe(t, c, topic, group)
	got := fetchUncommitted(t, s, 10)
	require.NoError(t, s.Commit(ctx, got[:6]...))
	require.NoError(t, s.Close(), "closing writes what is not yet written")
	rest := fetchN(t, subscribe(t, c, topic, group), 4)
	require.Equal(t, 6, number(t, rest[0]))
}

func fetchUncommitted(t testing.TB, s bus.Subscription, n int) []bus.Message {
	t.Helper()
	ctx := testContext(t)
	var all []bus.Message
	for len(all) < n {
		msgs, err := s.Fetch(ctx, n-len(all))
		require.NoError(t, err)
		all = append(all, msgs...)
	}
	return all
}

func redeliversAfterKill(t *testing.T, b Broker) {
	c := open(t, b)
	topic, group := newTopic(t, c, 4), fresh("group")
	var msgs []bus.Message
	for k := range 10 {
		msgs = append(msgs, numbered(topic, fmt.Sprint(k), k, 1)...)
	}
	require.NoError(t, c.Publish(testContext(t), msgs...))
	runMemberAndKill(t, b, topic, group, len(msgs))
	seen := make(map[int]bool)
	for _, m := range fetchN(t, subscribe(t, c, topic, group), len(msgs)) {
		seen[number(t, m)] = true
	}
	require.Len(t, seen, len(msgs))
}

// taker fetches and commits in the background and tells what it got.
type taker struct {
	sub  bus.Subscription
	got  chan bus.Message
	done chan struct{}
}

func take(t testing.TB, s bus.Subscription) *taker {
	t.Helper()
	k := &taker{sub: s, got: make(chan bus.Message, 10_000), done: make(chan struct{})}
	ctx := testContext(t)
	go func() {
		defer close(k.done)
		for {
			msgs, err := s.Fetch(ctx, 100)
			if err != nil {
				return
			}
			for _, m := range msgs {
				k.got <- m
			}
			_ = s.Commit(ctx, msgs...)
		}
	}()
	return k
}

func rebalances(t *testing.T, b Broker) {
	const keys = 40
	c := open(t, b)
	topic, group := newTopic(t, c, 8), fresh("group")
	ctx := testContext(t)
	round := 0
	seen := make(map[string]bool)
	publish := func() {
		for k := range keys {
			m := bus.Message{Topic: topic, Key: fmt.Sprint(k), Value: fmt.Append(nil, round, "/", k)}
			require.NoError(t, c.Publish(ctx, m))
		}
		round++
	}
	note := func(m bus.Message) { seen[string(m.Value)] = true }
	// sight waits until everything published so far was seen by someone.
	sight := func(takers ...*taker) {
		for len(seen) < round*keys {
			select {
			case m := <-takers[0].got:
				note(m)
			case m := <-takers[len(takers)-1].got:
				note(m)
			case <-ctx.Done():
				require.Fail(t, "messages are missing", "%d of %d", len(seen), round*keys)
			}
		}
	}

	first := take(t, subscribe(t, c, topic, group))
	publish()
	sight(first)

	second := take(t, subscribe(t, c, topic, group))
	for shared := false; !shared; {
		publish()
		select {
		case m := <-second.got:
			note(m)
			shared = true
		case m := <-first.got:
			note(m)
		}
	}
	publish()
	sight(first, second)

	require.NoError(t, first.sub.Close())
	<-first.done
	publish()
	sight(first, second)
}

func sharesWithinGroup(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 4)
	ctx := testContext(t)
	var msgs []bus.Message
	for k := range 200 {
		msgs = append(msgs, bus.Message{Topic: topic, Key: fmt.Sprint(k), Value: fmt.Append(nil, k)})
	}
	require.NoError(t, c.Publish(ctx, msgs...))
	var wg sync.WaitGroup
	for range 2 {
		pair := fresh("group")
		one, two := take(t, subscribe(t, c, topic, pair)), take(t, subscribe(t, c, topic, pair))
		wg.Go(func() {
			seen := make(map[string]bool)
			for len(seen) < len(msgs) {
				select {
				case m := <-one.got:
					seen[m.Key] = true
				case m := <-two.got:
					seen[m.Key] = true
				case <-ctx.Done():
					t.Errorf("%d of %d messages", len(seen), len(msgs))
					return
				}
			}
		})
	}
	wg.Wait()
}

func waitsForSlowConsumer(t *testing.T, b Broker) {
	const count = 400
	c := open(t, b)
	topic := newTopic(t, c, 1)
	ctx := testContext(t)
	s := subscribe(t, c, topic, fresh("group"))
	// More than a subscription holds ahead, and nobody takes any until all
	// are written.
	body := bytes.Repeat([]byte("x"), 60_000)
	for i := 0; i < count; i += 20 {
		var msgs []bus.Message
		for j := range 20 {
			msgs = append(msgs, bus.Message{Topic: topic, Key: fmt.Sprint(i + j), Value: body})
		}
		require.NoError(t, c.Publish(ctx, msgs...))
	}
	for i := 0; i < count; {
		msgs, err := s.Fetch(ctx, 3)
		require.NoError(t, err)
		for _, m := range msgs {
			require.Equal(t, fmt.Sprint(i), m.Key)
			i++
		}
		require.NoError(t, s.Commit(ctx, msgs...))
	}
}

func waitsForTopic(t *testing.T, b Broker) {
	c := open(t, b)
	topic := fresh("late")
	s := subscribe(t, c, topic, fresh("group"))
	ctx, cancel := context.WithTimeout(testContext(t), 500*time.Millisecond)
	defer cancel()
	_, err := s.Fetch(ctx, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, c.EnsureTopics(testContext(t), bus.Topic{Name: topic, Partitions: 2}))
	require.NoError(t, c.Publish(testContext(t), numbered(topic, "k", 0, 5)...))
	fetchN(t, s, 5)
}

// prompt is far more than returning takes and far less than any wait of the
// protocol.
const prompt = 2 * time.Second

func honoursContext(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 1)
	s := subscribe(t, c, topic, fresh("group"))
	require.NoError(t, c.Publish(testContext(t), numbered(topic, "k", 0, 1)...))
	fetchN(t, s, 1)

	ended, end := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Fetch(ended, 1)
		waiting <- err
	}()
	began := time.Now()
	end()
	require.ErrorIs(t, <-waiting, context.Canceled)
	for what, call := range map[string]func() error{
		"publish":       func() error { return c.Publish(ended, numbered(topic, "k", 0, 1)...) },
		"fetch":         func() error { _, err := s.Fetch(ended, 1); return err },
		"commit":        func() error { return s.Commit(ended) },
		"ensure topics": func() error { return c.EnsureTopics(ended, bus.Topic{Name: fresh("never")}) },
		"read all":      func() error { _, err := c.ReadAll(ended, topic); return err },
		"ping":          func() error { return c.Ping(ended) },
	} {
		require.ErrorIs(t, call(), context.Canceled, what)
	}
	require.Less(t, time.Since(began), prompt)
}

func closesPromptly(t *testing.T, b Broker) {
	c := open(t, b)
	topic := newTopic(t, c, 1)
	ctx := testContext(t)
	one, two := subscribe(t, c, topic, fresh("group")), subscribe(t, c, topic, fresh("group"))
	require.NoError(t, c.Publish(ctx, numbered(topic, "k", 0, 1)...))
	fetchN(t, one, 1)
	fetchN(t, two, 1)
	waiting := make(chan error, 2)
	for _, s := range []bus.Subscription{one, two} {
		go func() {
			_, err := s.Fetch(ctx, 1)
			waiting <- err
		}()
	}
	began := time.Now()
	require.NoError(t, one.Close())
	require.ErrorIs(t, <-waiting, bus.ErrClosed)
	require.NoError(t, one.Close(), "again")
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-waiting, bus.ErrClosed)
	require.NoError(t, c.Close(), "again")
	require.Less(t, time.Since(began), prompt)

	require.ErrorIs(t, c.Publish(ctx, numbered(topic, "k", 0, 1)...), bus.ErrClosed)
	require.ErrorIs(t, c.EnsureTopics(ctx, bus.Topic{Name: topic}), bus.ErrClosed)
	require.ErrorIs(t, c.Ping(ctx), bus.ErrClosed)
	_, err := c.Subscribe(topic, "g")
	require.ErrorIs(t, err, bus.ErrClosed)
	_, err = c.ReadAll(ctx, topic)
	require.ErrorIs(t, err, bus.ErrClosed)
	require.ErrorIs(t, two.Commit(ctx), bus.ErrClosed)
}
