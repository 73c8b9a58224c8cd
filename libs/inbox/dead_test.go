package inbox_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
)

// unlessPoison applies everything but values that begin with "poison", for which it fails in the given way.
func unlessPoison(fail func() error) inbox.Handler {
	return func(ctx context.Context, tx pgx.Tx, m bus.Message) error {
		if err := apply(ctx, tx, m); err != nil {
			return err
		}
		if strings.HasPrefix(string(m.Value), "poison") {
			return fail()
		}
		return nil
	}
}

// buryOne consumes "before", a poison event and "after", and answers the dead letter.
func buryOne(t *testing.T, b *bundle, poison bus.Message, opts inbox.Options) inbox.Dead {
	t.Helper()
	b.publish(t, event("a", "before"), poison, event("a", "after"))
	stop := consume(t, b, opts)
	require.Equal(t, []string{"before", "after"}, b.awaitEffects(t, 2))
	stop()
	dead, err := inbox.ListDead(t.Context(), b.pool, 10)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	require.Equal(t, topic, dead[0].Topic)
	require.Equal(t, "a", dead[0].Key)
	require.Equal(t, poison.Value, dead[0].Payload)
	require.Nil(t, dead[0].RedrivenAt)
	return dead[0]
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()

	t.Run("an event that is claimed invalid is buried at once, and its partition goes on", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		poison := event("a", "poison")
		var runs atomic.Int32
		dead := buryOne(t, b, poison, inbox.Options{Handler: unlessPoison(func() error {
			runs.Add(1)
			return fault.New(fault.Invalid, "the event names no item")
		})})
		require.EqualValues(t, 2, runs.Load(), "once in the batch and once alone")
		require.Equal(t, 1, dead.Attempts)
		require.Contains(t, dead.Reason, "the event names no item")
		require.Equal(t, poison.Headers["ce_id"], dead.EventID.String())

		msgs, err := b.bus.ReadAll(t.Context(), topic+inbox.DeadSuffix)
		require.NoError(t, err)
		require.Len(t, msgs, 1)
		require.Equal(t, poison.Value, msgs[0].Value)
		require.Equal(t, poison.Headers["ce_id"], msgs[0].Headers["ce_id"])
		require.Contains(t, msgs[0].Headers[inbox.HeaderReason], "the event names no item")
		require.Equal(t, "1", msgs[0].Headers[inbox.HeaderAttempts])

		b.publish(t, poison, event("a", "later"))
		consume(t, b, inbox.Options{Handler: apply})
		require.Equal(t, []string{"before", "after", "later"}, b.awaitEffects(t, 3), "a buried event came back to life")
	})

	t.Run("any other failure is tried as often as allowed", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		dead := buryOne(t, b, event("a", "poison"), inbox.Options{
			MaxAttempts: 3, Handler: unlessPoison(func() error { return errors.New("a bug") }),
		})
		require.Equal(t, 3, dead.Attempts)
		require.Equal(t, "a bug", dead.Reason)
	})

	t.Run("a failure that passes leaves no dead letter", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		var runs atomic.Int32
		b.publish(t, event("a", "poison"))
		consume(t, b, inbox.Options{MaxAttempts: 5, Handler: unlessPoison(func() error {
			if runs.Add(1) < 4 {
				return errors.New("not yet")
			}
			return nil
		})})
		require.Equal(t, []string{"poison"}, b.awaitEffects(t, 1))
	})

	t.Run("a handler that panics is a failure of the event, not of the process", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		dead := buryOne(t, b, event("a", "poison"), inbox.Options{
			MaxAttempts: 2, Handler: unlessPoison(func() error { panic("a bug\x00" + strings.Repeat("x", 10_000)) }),
		})
		require.Contains(t, dead.Reason, "the handler panicked: a bug")
		require.Contains(t, dead.Reason, "more bytes are in the log")
	})

	t.Run("a message that is no event of ours is buried", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		dead := buryOne(t, b, bus.Message{Topic: topic, Key: "a", Value: []byte("poison")}, inbox.Options{Handler: apply})
		require.Contains(t, dead.Reason, "ce_id")
		require.NotEqual(t, uuid.Nil, dead.EventID)
	})
}

func TestRedrive(t *testing.T) {
	t.Parallel()
	bury := func(t *testing.T) (*bundle, inbox.Dead) {
		t.Helper()
		b := setup(t)
		return b, buryOne(t, b, event("a", "poison"), inbox.Options{
			MaxAttempts: 1, Handler: unlessPoison(func() error { return errors.New("a bug") }),
		})
	}
	mended := map[string]inbox.Handler{topic: apply}

	t.Run("a dead letter is taken in once the cause is gone", func(t *testing.T) {
		t.Parallel()
		b, dead := bury(t)
		n, err := inbox.Redrive(t.Context(), b.pool, mended, dead.ID)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"before", "after", "poison"}, b.effects(t))
		list, err := inbox.ListDead(t.Context(), b.pool, 10)
		require.NoError(t, err)
		require.NotNil(t, list[0].RedrivenAt)
		require.Equal(t, 2, list[0].Attempts)
	})

	t.Run("many redrives at once take it in once", func(t *testing.T) {
		t.Parallel()
		b, dead := bury(t)
		var group errgroup.Group
		counts := make([]int, 8)
		for i := range counts {
			group.Go(func() (err error) {
				counts[i], err = inbox.Redrive(t.Context(), b.pool, mended, dead.ID)
				return err
			})
		}
		require.NoError(t, group.Wait())
		total := 0
		for _, n := range counts {
			total += n
		}
		require.Equal(t, 1, total)
		require.Len(t, b.effects(t), 3)
	})

	t.Run("one that fails again stays, with the new reason, and the others go on", func(t *testing.T) {
		t.Parallel()
		b, dead := bury(t)
		n, err := inbox.Redrive(t.Context(), b.pool, map[string]inbox.Handler{
			topic: unlessPoison(func() error { return errors.New("another bug") }),
		}, 4711, dead.ID)
		require.Zero(t, n)
		require.ErrorContains(t, err, "no dead letter 4711")
		require.ErrorContains(t, err, "another bug")
		list, err := inbox.ListDead(t.Context(), b.pool, 10)
		require.NoError(t, err)
		require.Nil(t, list[0].RedrivenAt)
		require.Equal(t, "another bug", list[0].Reason)
		require.Equal(t, 2, list[0].Attempts)
		require.Len(t, b.effects(t), 2)
	})

	t.Run("a topic that nobody here takes in is refused", func(t *testing.T) {
		t.Parallel()
		b, dead := bury(t)
		_, err := inbox.Redrive(t.Context(), b.pool, nil, dead.ID)
		require.Equal(t, fault.Invalid, fault.ClassOf(err))
	})
}
