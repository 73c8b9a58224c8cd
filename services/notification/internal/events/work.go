package events

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/services/notification/internal/roster"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

// WorkTopic carries trackerv1.ItemEvent, keyed by item.
const WorkTopic = "bullpen.tracker.item.v1"

// Work tells changes of work items. It is safe for concurrent use.
type Work struct {
	Pool  *pgxpool.Pool
	Store *store.Store
	Bus   bus.Bus
	// Roster answers who is in the company; nil while none is active. Changed answers a channel that is closed when that changes.
	Roster  func() *roster.Roster
	Changed func() <-chan struct{}
	// Settled is called after changes were settled.
	Settled func()
	// MaxWakes is how often programs may wake a seat in one conversation within Window.
	MaxWakes int
	Window   time.Duration
	Now      func() time.Time
	Log      *slog.Logger
	Metrics  prometheus.Registerer

	// last is the company that was there last: a change in hand is told by it should the company be gone by then.
	last atomic.Pointer[roster.Roster]
}

// Consumer takes changes in. While no company is active it fetches nothing: there is nobody to tell, and nothing may be lost.
func (w *Work) Consumer() *inbox.Consumer {
	return inbox.NewConsumer(w.Pool, attended{Bus: w.Bus, work: w}, inbox.Options{
		Topic: WorkTopic, Group: "notification-work", Handler: w.Tell, Log: w.Log, Metrics: w.Metrics,
	})
}

// Tell settles whom one change is told to and writes it, in the caller's transaction.
func (w *Work) Tell(ctx context.Context, tx pgx.Tx, m bus.Message) error {
	company := w.company()
	if company == nil {
		return fault.New(fault.Unavailable, "No company is active, so there is nobody to tell.")
	}
	c, err := readChange(m.Value)
	if err != nil || c == nil {
		return err
	}
	telling := work.Telling{
		Seats: func(handle string) (work.Seat, bool) {
			seat, ok := company.Seat(handle)
			return work.Seat{Name: seat.Name, Agent: seat.Agent}, ok
		},
		MaxWakes: w.MaxWakes, At: w.Now().Truncate(time.Microsecond), // as Postgres keeps it
	}
	outcome := work.Decide(c, telling)
	if c.Machine() && len(outcome.Deliveries) > 0 {
		// Only now does it matter how often programs have woken those seats.
		if telling.Wakes, err = w.Store.Wakes(ctx, tx, c.Conversations(), telling.At.Add(-w.Window)); err != nil {
			return err
		}
		outcome = work.Decide(c, telling)
	}
	return w.Store.SettleWork(ctx, tx, c, &outcome, telling.At)
}

func (w *Work) company() *roster.Roster {
	if now := w.Roster(); now != nil {
		w.last.Store(now)
	}
	return w.last.Load()
}

// attend waits until a company is active.
func (w *Work) attend(ctx context.Context) error {
	for {
		changed := w.Changed()
		if w.Roster() != nil {
			w.company()
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// attended is a bus whose messages are fetched while somebody is there to be told, and whose committed ones are said to be settled: an
// offset is committed when the transaction that took the message in has been.
type attended struct {
	bus.Bus
	work *Work
}

// Subscribe implements [bus.Bus].
func (a attended) Subscribe(topic, group string) (bus.Subscription, error) {
	sub, err := a.Bus.Subscribe(topic, group)
	if err != nil {
		return nil, err
	}
	return attendedSubscription{Subscription: sub, work: a.work}, nil
}

type attendedSubscription struct {
	bus.Subscription
	work *Work
}

// Fetch implements [bus.Subscription].
func (a attendedSubscription) Fetch(ctx context.Context, most int) ([]bus.Message, error) {
	if err := a.work.attend(ctx); err != nil {
		return nil, err
	}
	return a.Subscription.Fetch(ctx, most)
}

// Commit implements [bus.Subscription].
func (a attendedSubscription) Commit(ctx context.Context, msgs ...bus.Message) error {
	a.work.Settled()
	return a.Subscription.Commit(ctx, msgs...)
}
