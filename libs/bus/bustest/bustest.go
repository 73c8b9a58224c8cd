// Package bustest is the suite that every broker behind package bus must
// pass, so that what holds in one process also holds on a cluster.
//
// A package that runs it hands its TestMain to Main, because the crash tests
// start the test binary again as a group member that is then killed.
package bustest

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
)

// Broker is the broker under test.
type Broker struct {
	// Addrs are where clients start from.
	Addrs []string
	// Restart ends the broker as hard as it can and starts it on the same
	// data and addresses. It returns when clients can connect.
	Restart func(t testing.TB)
}

// Suite runs every test against one broker. Topics and groups have fresh
// names, so that a broker may be used for more than one run.
func Suite(t *testing.T, b Broker) {
	t.Run("while the broker stays", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, Broker){
			"a message arrives as it was published":                       arrivesWhole,
			"messages of one key keep their order":                        keepsKeyOrder,
			"fetch returns what waits, up to its limit":                   fetchesWhatWaits,
			"a new group starts at the beginning":                         startsAtBeginning,
			"committed messages are not handed out again":                 remembersCommits,
			"a killed member's messages are handed out again":             redeliversAfterKill,
			"partitions move when members join and leave":                 rebalances,
			"a compacted topic is read from its start to its end":         readsCompacted,
			"the largest message passes":                                  passesLargest,
			"a message over the limit is named and holds nothing back":    refusesTooLarge,
			"many messages are more than one batch":                       splitsBatches,
			"many topics are made at once":                                makesManyTopics,
			"a topic with too few partitions is refused":                  refusesNarrowTopic,
			"a slow consumer gets everything in order":                    waitsForSlowConsumer,
			"a consumer of an absent topic begins when it is made":        waitsForTopic,
			"an ended context returns at once":                            honoursContext,
			"closing ends calls that wait":                                closesPromptly,
			"publishing to an absent topic fails with the topic's name":   namesAbsentTopic,
			"two groups each get every message, two members share theirs": sharesWithinGroup,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, b)
			})
		}
	})
	t.Run("a restart loses nothing that was acknowledged", func(t *testing.T) { survivesRestart(t, b) })
	t.Run("committed offsets survive a restart", func(t *testing.T) { keepsOffsets(t, b) })
	t.Run("an idle connection survives a restart", func(t *testing.T) { reconnects(t, b) })
}

// patience is for things that must happen; tests end long before.
const patience = 90 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

var names atomic.Int64

// fresh makes a name that no earlier run used.
func fresh(kind string) string {
	return fmt.Sprintf("bustest.%s.%d.%d", kind, time.Now().UnixNano(), names.Add(1))
}

func open(t testing.TB, b Broker) bus.Bus {
	t.Helper()
	c, err := bus.Open(bus.Config{Brokers: b.Addrs, ClientID: "bustest", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func newTopic(t testing.TB, c bus.Bus, partitions int) string {
	t.Helper()
	name := fresh("topic")
	require.NoError(t, c.EnsureTopics(testContext(t), bus.Topic{Name: name, Partitions: partitions}))
	return name
}

func subscribe(t testing.TB, c bus.Bus, topic, group string) bus.Subscription {
	t.Helper()
	s, err := c.Subscribe(topic, group)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// numbered are messages of one key with values from, from+1, and so on.
func numbered(topic, key string, from, count int) []bus.Message {
	msgs := make([]bus.Message, count)
	for i := range msgs {
		msgs[i] = bus.Message{Topic: topic, Key: key, Value: []byte(strconv.Itoa(from + i))}
	}
	return msgs
}

func number(t testing.TB, m bus.Message) int {
	t.Helper()
	n, err := strconv.Atoi(string(m.Value))
	require.NoError(t, err)
	return n
}

// fetchN fetches and commits until n messages are there.
func fetchN(t testing.TB, s bus.Subscription, n int) []bus.Message {
	t.Helper()
	ctx := testContext(t)
	var all []bus.Message
	for len(all) < n {
		msgs, err := s.Fetch(ctx, 500)
		require.NoError(t, err, "after %d of %d messages", len(all), n)
		require.NoError(t, s.Commit(ctx, msgs...))
		all = append(all, msgs...)
	}
	require.Len(t, all, n)
	return all
}
