package outbox_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

func TestAppend(t *testing.T) {
	t.Parallel()

	t.Run("the event leaves with CloudEvents attributes and the trace of its writer", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		require.NoError(t, outbox.Check(t.Context(), b.pool))
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: 1})
		ctx := trace.ContextWithSpanContext(t.Context(), span)
		m := message("item-1")
		m.Headers = map[string]string{"origin": "import"}
		require.NoError(t, pg.InTx(ctx, b.pool, func(tx pgx.Tx) error {
			_, err := outbox.Append(ctx, tx, m)
			return err
		}))
		relay(t, b.pool, b.bus, outbox.RelayOptions{})

		got := receive(t, b.bus, 1)[0]
		require.Equal(t, "item-1", got.Key)
		require.Equal(t, []byte("item-1"), got.Value)
		require.Equal(t, m.EventID.String(), got.Headers[outbox.HeaderID])
		require.Equal(t, m.Type, got.Headers[outbox.HeaderType])
		require.Equal(t, "/bullpen/tracker", got.Headers[outbox.HeaderSource])
		require.Equal(t, "1.0", got.Headers[outbox.HeaderSpecVersion])
		require.NotEmpty(t, got.Headers[outbox.HeaderTime])
		require.Equal(t, "application/protobuf", got.Headers[outbox.HeaderContentType])
		require.Equal(t, "import", got.Headers["origin"])
		require.Equal(t, span.TraceID(), trace.SpanContextFromContext(bus.Extract(t.Context(), got)).TraceID())
	})

	t.Run("a transaction that rolls back publishes nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		refusal := fault.New(fault.Conflict, "no")
		require.ErrorIs(t, pg.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
			_, err := outbox.Append(t.Context(), tx, message("never"))
			require.NoError(t, err)
			return refusal
		}), refusal)
		appendOne(t, b.pool, message("after"))
		relay(t, b.pool, b.bus, outbox.RelayOptions{})
		require.Len(t, receive(t, b.bus, 1), 1)
	})

	t.Run("a batch appends like a statement", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var ids []int64
		var batch pgx.Batch
		for range 2 {
			query, err := outbox.Queue(t.Context(), &batch, message("item-1"))
			require.NoError(t, err)
			query.QueryRow(func(row pgx.Row) error {
				var id int64
				defer func() { ids = append(ids, id) }()
				return row.Scan(&id)
			})
		}
		require.NoError(t, pool.SendBatch(t.Context(), &batch).Close())
		require.Len(t, ids, 2)
		require.Less(t, ids[0], ids[1])
	})

	t.Run("many are one statement, in their order", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		var sent []outbox.Message
		for i := range 20 {
			m := message("item-1")
			m.Payload, m.Headers = []byte{byte(i)}, map[string]string{"n": string(rune('a' + i))}
			sent = append(sent, m)
		}
		var batch pgx.Batch
		require.NoError(t, outbox.QueueAll(t.Context(), &batch, nil))
		require.NoError(t, outbox.QueueAll(t.Context(), &batch, sent))
		require.Equal(t, 1, batch.Len())
		require.NoError(t, b.pool.SendBatch(t.Context(), &batch).Close())
		relay(t, b.pool, b.bus, outbox.RelayOptions{})
		for i, got := range receive(t, b.bus, len(sent)) {
			require.Equal(t, sent[i].Payload, got.Value)
			require.Equal(t, sent[i].EventID.String(), got.Headers[outbox.HeaderID])
			require.Equal(t, sent[i].Headers["n"], got.Headers["n"])
		}
		sent[7].Topic = ""
		require.Equal(t, fault.Invalid, fault.ClassOf(outbox.QueueAll(t.Context(), &batch, sent)))
	})

	t.Run("an event id is drawn when none is given", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		appendOne(t, pool, outbox.Message{Topic: topic, Type: "t"})
		var id uuid.UUID
		require.NoError(t, pool.QueryRow(t.Context(), "select event_id from outbox").Scan(&id))
		require.Equal(t, uuid.Version(7), id.Version())
	})

	t.Run("what no broker would take is refused by its writer", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		for field, spoil := range map[string]func(*outbox.Message){
			"topic":   func(m *outbox.Message) { m.Topic = "" },
			"type":    func(m *outbox.Message) { m.Type = "" },
			"key":     func(m *outbox.Message) { m.Key = strings.Repeat("k", outbox.MaxKeyBytes+1) },
			"payload": func(m *outbox.Message) { m.Payload = make([]byte, bus.MaxValueBytes+1) },
			"headers": func(m *outbox.Message) { m.Headers = map[string]string{"ce_id": "forged"} },
		} {
			m := message("item-1")
			spoil(&m)
			err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := outbox.Append(t.Context(), tx, m)
				return err
			})
			f, ok := fault.As(err)
			require.True(t, ok, "%s: %v", field, err)
			require.Equal(t, fault.Invalid, f.Class)
			require.Equal(t, field, f.Field)
		}
		m := message("item-1")
		m.Headers = map[string]string{"long": strings.Repeat("h", outbox.MaxHeadersBytes)}
		_, err := outbox.Queue(t.Context(), &pgx.Batch{}, m)
		require.Equal(t, fault.Invalid, fault.ClassOf(err))
	})

	t.Run("the largest event fits through the broker", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		m := message("large")
		m.Payload = make([]byte, bus.MaxValueBytes)
		for range 6 {
			m.EventID = uuid.New()
			appendOne(t, b.pool, m)
		}
		relay(t, b.pool, b.bus, outbox.RelayOptions{})
		for _, got := range receive(t, b.bus, 6) {
			require.Len(t, got.Value, bus.MaxValueBytes)
		}
	})
}
