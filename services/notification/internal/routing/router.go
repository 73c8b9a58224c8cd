package routing

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
	"github.com/bullpenhq/bullpen/services/notification/internal/github"
	"github.com/bullpenhq/bullpen/services/notification/internal/roster"
	"github.com/bullpenhq/bullpen/services/notification/internal/slack"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

const (
	// batch is how many webhooks of a lane are routed in one transaction.
	batch = 64
	// workers is how many lanes are routed at a time; each holds a connection.
	workers = 2
	// backoff is the wait after the database failed.
	backoff = 250 * time.Millisecond
)

// Options are what a Router works with. All fields but Metrics are required.
type Options struct {
	Store *store.Store
	// Roster answers who is who now; nil while no company is active.
	Roster func() *roster.Roster
	// Delivered is called after a commit that made deliveries.
	Delivered func()
	Limits    Limits
	// Poll is how often lanes are looked for without a Wake.
	Poll    time.Duration
	Log     *slog.Logger
	Now     func() time.Time
	Metrics prometheus.Registerer
}

// Router routes webhooks. Any number of routers may work on one schema: a lane
// is routed by one of them at a time.
type Router struct {
	o       Options
	wake    chan struct{}
	settled *prometheus.CounterVec
}

// New makes a router; Run does the work.
func New(o Options) *Router {
	settled := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bullpen_notification_webhooks_settled_total", Help: "Webhooks by what became of them.",
	}, []string{"source", "state"})
	if o.Metrics != nil {
		o.Metrics.MustRegister(settled)
	}
	return &Router{o: o, wake: make(chan struct{}, 1), settled: settled}
}

// Wake makes the router look for work now. Call it after webhooks were
// committed. It never blocks.
func (r *Router) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run routes until ctx ends, and answers nil then. Failures of the database
// are waited out; a webhook that cannot be routed becomes a dead letter.
func (r *Router) Run(ctx context.Context) error {
	ticker := time.NewTicker(r.o.Poll)
	defer ticker.Stop()
	for {
		if err := r.Drain(ctx); err != nil && ctx.Err() == nil {
			r.o.Log.Warn("routing failed, trying again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(backoff):
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-ticker.C:
		}
	}
}

// Drain routes all that waits, once. It does nothing while no company is
// active: what is durable can wait until somebody is there to be woken.
func (r *Router) Drain(ctx context.Context) error {
	if r.o.Roster() == nil {
		return nil
	}
	lanes, err := r.o.Store.WaitingLanes(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, lane := range lanes {
		group.Go(func() error { return r.drainLane(ctx, lane) })
	}
	return group.Wait()
}

// drainLane routes a lane until it is empty. A batch that fails for another
// reason than the database's state is taken apart: each webhook alone, and the
// one at fault becomes a dead letter.
func (r *Router) drainLane(ctx context.Context, lane int) error {
	limit := batch
	for {
		n, err := r.o.Store.RouteLane(ctx, lane, limit, r.route)
		switch {
		case err == nil && n < limit && limit > 1:
			r.o.Delivered()
			return nil
		case err == nil:
			r.o.Delivered()
			if n == 0 {
				return nil
			}
		case ctx.Err() != nil, pg.Transient(err), infrastructure(err):
			return err
		case limit > 1:
			limit = 1
		default:
			if err := r.bury(ctx, lane, err); err != nil {
				return err
			}
		}
	}
}

// infrastructure reports a failure that no webhook can be blamed for although
// Postgres does not call it transient: a full disk, a missing table.
func infrastructure(err error) bool {
	text := err.Error()
	for _, state := range []string{"SQLSTATE 53", "SQLSTATE 58", "SQLSTATE 42", "SQLSTATE 25", "SQLSTATE XX"} {
		if strings.Contains(text, state) {
			return true
		}
	}
	return false
}

// bury makes the oldest webhook of a lane a dead letter.
func (r *Router) bury(ctx context.Context, lane int, cause error) error {
	_, err := r.o.Store.RouteLane(ctx, lane, 1, func(ctx context.Context, l *store.Lane, webhooks []store.Webhook) error {
		return r.settle(ctx, l, webhooks, []store.Settlement{dead(cause)})
	})
	return err
}

// route is one transaction's work.
func (r *Router) route(ctx context.Context, l *store.Lane, webhooks []store.Webhook) error {
	settlements := make([]store.Settlement, len(webhooks))
	for i := range webhooks {
		var err error
		if settlements[i], err = r.one(ctx, l, &webhooks[i]); err != nil {
			return err
		}
	}
	return r.settle(ctx, l, webhooks, settlements)
}

func (r *Router) settle(ctx context.Context, l *store.Lane, webhooks []store.Webhook, settlements []store.Settlement) error {
	for i := range webhooks {
		settlements[i].Webhook = webhooks[i].ID
	}
	if err := l.Settle(ctx, settlements...); err != nil {
		return err
	}
	for i, s := range settlements {
		w := &webhooks[i]
		r.settled.WithLabelValues(w.Source, s.State).Inc()
		if s.State == store.Dead {
			r.o.Log.Warn("webhook cannot be understood", "source", w.Source, "event", w.Event, "delivery", w.Delivery, "reason", s.Reason)
		}
	}
	return nil
}

func (r *Router) one(ctx context.Context, l *store.Lane, w *store.Webhook) (store.Settlement, error) {
	company := r.o.Roster()
	notice, reason, err := read(w, company)
	if f, ok := fault.As(err); ok && f.Class == fault.Invalid {
		return dead(err), nil
	}
	if err != nil {
		return store.Settlement{}, err
	}
	if notice == nil {
		return store.Settlement{State: store.Ignored, Reason: reason}, nil
	}
	known, err := l.Known(ctx, notice, r.o.Now().Add(-r.o.Limits.Window))
	if err != nil {
		return store.Settlement{}, err
	}
	app := ""
	if w.Source == slack.Source {
		app = w.Endpoint
	}
	decisions := Decide(notice, app, company, known, r.o.Limits, w.ReceivedAt)
	settlement := store.Settlement{State: store.Ignored, Reason: "it wakes nobody here", Decisions: decisions}
	for i := range decisions {
		d := &decisions[i]
		if d.Delivery == nil {
			continue
		}
		fresh, err := l.Deliver(ctx, w.ID, d.Delivery)
		if err != nil {
			return store.Settlement{}, err
		}
		if !fresh {
			d.Outcome, d.Reason = delivery.OutcomeDuplicate, duplicate
			continue
		}
		settlement.State, settlement.Reason = store.Routed, ""
	}
	return settlement, nil
}

// read parses a webhook. A parser that panics has met what it cannot
// understand: that is the webhook's fault, and must not stop the lane.
func read(w *store.Webhook, company *roster.Roster) (n *delivery.Notice, reason string, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = nil, fault.New(fault.Invalid, "The payload breaks its reader: %.200v.", p)
		}
		clean(n)
	}()
	if w.Source != slack.Source {
		return github.Parse(w.Event, w.Body, w.Form)
	}
	app, _ := company.App(w.Endpoint)
	return slack.Parse(w.Body, slack.Identity{UserID: app.BotUserID})
}

func dead(err error) store.Settlement {
	reason := fmt.Sprintf("%.1000s", err.Error())
	if f, ok := fault.As(err); ok {
		reason = f.Message
	}
	return store.Settlement{State: store.Dead, Reason: strings.ToValidUTF8(text(reason), "\uFFFD")}
}

// clean makes every text of a notice one that Postgres can hold.
func clean(n *delivery.Notice) {
	if n == nil {
		return
	}
	for _, field := range []*string{
		&n.ConversationKey, &n.MessageID, &n.Revision, &n.Subject, &n.Body, &n.URL,
		&n.Sender.VendorID, &n.Sender.Name, &n.Sender.Login, &n.OutboundID,
	} {
		*field = text(*field)
	}
	for i := range n.Claims {
		n.Claims[i].Name = text(n.Claims[i].Name)
	}
}

func text(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }
