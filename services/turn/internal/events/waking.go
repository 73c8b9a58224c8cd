package events

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/bullpenhq/bullpen/libs/bus"
)

// ConsumerDeps are what a consumer works with.
type ConsumerDeps struct {
	Pool    *pgxpool.Pool
	Bus     bus.Bus
	Wake    func(seats ...string)
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Tracer  trace.TracerProvider
}

// waking is a bus whose committed messages wake the seats they are keyed by. An offset is committed when the transaction
// that took the message in has been, which is exactly when there is something to wake for.
type waking struct {
	bus.Bus
	wake func(seats ...string)
}

// Subscribe implements [bus.Bus].
func (w waking) Subscribe(topic, group string) (bus.Subscription, error) {
	sub, err := w.Bus.Subscribe(topic, group)
	if err != nil {
		return nil, err
	}
	return wakingSubscription{Subscription: sub, wake: w.wake}, nil
}

type wakingSubscription struct {
	bus.Subscription
	wake func(seats ...string)
}

// Commit implements [bus.Subscription].
func (w wakingSubscription) Commit(ctx context.Context, msgs ...bus.Message) error {
	seats := make([]string, 0, len(msgs))
	seen := map[string]bool{}
	for _, m := range msgs {
		if !seen[m.Key] {
			seen[m.Key] = true
			seats = append(seats, m.Key)
		}
	}
	w.wake(seats...)
	return w.Subscription.Commit(ctx, msgs...)
}
