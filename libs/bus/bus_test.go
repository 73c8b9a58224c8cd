package bus_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/bustest"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startBroker(t testing.TB, opts embedded.Options) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func open(t testing.TB, log *slog.Logger, brokers ...string) bus.Bus {
	t.Helper()
	c, err := bus.Open(bus.Config{Brokers: brokers, ClientID: "test", Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestOpenRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	_, err := bus.Open(bus.Config{})
	require.ErrorContains(t, err, "no broker address")
	_, err = bus.Open(bus.Config{Brokers: []string{"127.0.0.1:9092", "kafka"}})
	require.ErrorContains(t, err, `"kafka" is not host:port`)
	_, err = open(t, nil, "127.0.0.1:1").Subscribe("topic", "")
	require.ErrorContains(t, err, "needs a topic and a group")
}

func TestTraceTravelsInHeaders(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=value")
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5}, TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	m := bus.Message{Headers: map[string]string{"ce_id": "1"}}
	bus.Inject(trace.ContextWithSpanContext(t.Context(), span), &m)
	require.Equal(t, "1", m.Headers["ce_id"])
	require.True(t, span.WithRemote(true).Equal(trace.SpanContextFromContext(bus.Extract(t.Context(), m))))

	untraced := bus.Message{}
	bus.Inject(t.Context(), &untraced)
	require.Nil(t, untraced.Headers)
	require.False(t, trace.SpanContextFromContext(bus.Extract(t.Context(), untraced)).IsValid())
}

// closedPort is an address where nobody listens.
func closedPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func TestAbsentBrokerIsReportedInTime(t *testing.T) {
	t.Parallel()
	addr := closedPort(t)
	c := open(t, nil, addr)
	ctx := testContext(t)
	began := time.Now()
	require.ErrorContains(t, c.Ping(ctx), "no broker of ["+addr+"] answers")
	require.Less(t, time.Since(began), time.Second)

	err := c.Publish(ctx, bus.Message{Topic: "t", Key: "k"})
	var refused *bus.PublishError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Failures, 1)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.Less(t, time.Since(began), 15*time.Second)

	s, err := c.Subscribe("t", "g")
	require.NoError(t, err, "subscribing does not wait for a broker")
	began = time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestSilentBrokerHoldsNobodyBack(t *testing.T) {
	t.Parallel()
	// It accepts connections, as the kernel does for any listener, and never
	// says a word.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c := open(t, nil, l.Addr().String())
	_, err = c.Subscribe("t", "g")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(testContext(t), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.ErrorIs(t, c.Ping(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, c.Publish(ctx, bus.Message{Topic: "t"}), context.DeadlineExceeded)
	require.NoError(t, c.Close())
	require.Less(t, time.Since(began), 6*time.Second)
}

// journal is a log that tests can wait on.
type journal struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{}
}

func newJournal() *journal { return &journal{written: make(chan struct{}, 1)} }

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case j.written <- struct{}{}:
	default:
	}
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) wait(t testing.TB, line string) {
	t.Helper()
	ctx := testContext(t)
	for !strings.Contains(j.String(), line) {
		select {
		case <-j.written:
		case <-ctx.Done():
			require.Fail(t, "not logged", "%s in\n%s", line, j)
		}
	}
}

func TestOutageIsLoggedOnceForEachUse(t *testing.T) {
	t.Parallel()
	opts := embedded.Options{DataDir: t.TempDir()}
	b := startBroker(t, opts)
	j := newJournal()
	c := open(t, slog.New(slog.NewTextHandler(j, nil)), b.Brokers()...)
	ctx := testContext(t)
	require.NoError(t, c.EnsureTopics(ctx, bus.Topic{Name: "t", Partitions: 4}))
	s, err := c.Subscribe("t", "g")
	require.NoError(t, err)
	require.NoError(t, c.Publish(ctx, bus.Message{Topic: "t", Key: "k"}))
	_, err = s.Fetch(ctx, 1)
	require.NoError(t, err)
	require.Empty(t, j.String())

	require.NoError(t, b.Close())
	j.wait(t, "use=subscribe")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if c.Publish(ctx, bus.Message{Topic: "t", Key: "k"}) == nil {
				t.Error("published to nobody")
			}
		})
	}
	wg.Wait()
	opts.Addr = b.Brokers()[0]
	startBroker(t, opts)
	require.NoError(t, c.Publish(ctx, bus.Message{Topic: "t", Key: "k"}))
	_, err = s.Fetch(ctx, 1)
	require.NoError(t, err)
	j.wait(t, `msg="kafka available again" use=subscribe`)
	for _, line := range []string{
		`msg="kafka unavailable" use=call`, `msg="kafka available again" use=call`,
		`msg="kafka unavailable" use=subscribe`, `msg="kafka available again" use=subscribe`,
	} {
		require.Equal(t, 1, strings.Count(j.String(), line), "%s in\n%s", line, j)
	}
}

func TestCommittedOffsetOutsideTheLogReadsFromTheStart(t *testing.T) {
	t.Parallel()
	b := startBroker(t, embedded.Options{})
	j := newJournal()
	c := open(t, slog.New(slog.NewTextHandler(j, nil)), b.Brokers()...)
	ctx := testContext(t)
	require.NoError(t, c.EnsureTopics(ctx, bus.Topic{Name: "t", Partitions: 1}))
	require.NoError(t, c.Publish(ctx, bus.Message{Topic: "t", Key: "k", Value: []byte("kept")}))
	// As after a broker that was wiped and filled again.
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&kafka.Client{Addr: kafka.TCP(b.Brokers()...), Transport: transport}).OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID: "g", GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{"t": {{Partition: 0, Offset: 1000}}},
	})
	require.NoError(t, err)
	require.NoError(t, res.Topics["t"][0].Error)
	s, err := c.Subscribe("t", "g")
	require.NoError(t, err)
	msgs, err := s.Fetch(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, "kept", string(msgs[0].Value))
	require.Contains(t, j.String(), "committed offset is outside the log, reading from its start")
}
