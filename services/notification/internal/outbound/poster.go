package outbound

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

// Options are what a Poster works with. Zero durations mean the defaults; all
// other fields but Metrics are required.
type Options struct {
	Store    *store.Store
	Surfaces map[string]Surface
	// Token answers the credential that a seat posts with on a surface.
	Token func(ctx context.Context, surface, seat string) (config.Secret, error)
	// Owner names this process in leases.
	Owner   string
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// Workers is how many lanes are worked at a time.
	Workers int
	// Poll is how often lanes are looked for without a Wake.
	Poll time.Duration
	// Lease is how long a worker that has died keeps its lane. It is more than
	// Timeout, so that a living worker never loses it in the middle of a call.
	Lease time.Duration
	// Timeout bounds one call of a vendor.
	Timeout time.Duration
	// Grace is how long a message in doubt rests before it is looked for: what
	// is still under way to the vendor arrives in that time.
	Grace time.Duration
	// Backoff is the first wait after a failure; it doubles up to BackoffMax.
	Backoff, BackoffMax time.Duration
	// GiveUp is the age at which a message that cannot be posted fails.
	GiveUp time.Duration
}

func (o Options) complete() Options {
	set := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	set(&o.Poll, 250*time.Millisecond)
	set(&o.Timeout, 10*time.Second)
	set(&o.Lease, 30*time.Second)
	set(&o.Grace, 3*time.Second)
	set(&o.Backoff, time.Second)
	set(&o.BackoffMax, 5*time.Minute)
	set(&o.GiveUp, 24*time.Hour)
	if o.Workers == 0 {
		o.Workers = 4
	}
	return o
}

// Poster works the queue. Any number of posters may work on one schema.
type Poster struct {
	o       Options
	wake    chan struct{}
	settled *prometheus.CounterVec

	mu      sync.Mutex
	changed chan struct{}
}

// New makes a poster; Run does the work.
func New(o Options) *Poster {
	settled := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bullpen_notification_outbound_total", Help: "Steps of outbound messages by what came of them.",
	}, []string{"surface", "outcome"})
	if o.Metrics != nil {
		o.Metrics.MustRegister(settled)
	}
	return &Poster{o: o.complete(), wake: make(chan struct{}, 1), settled: settled, changed: make(chan struct{})}
}

// Wake makes a worker look for work now. Call it after a message was queued. It
// never blocks.
func (p *Poster) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Changed answers a channel that is closed when this process has next posted or
// given up a message.
func (p *Poster) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *Poster) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Run posts until ctx ends, finishes the calls that are under way, and answers
// nil.
func (p *Poster) Run(ctx context.Context) error {
	var working sync.WaitGroup
	for range p.o.Workers {
		working.Go(func() { p.work(ctx) })
	}
	working.Wait()
	return nil
}

func (p *Poster) work(ctx context.Context) {
	ticker := time.NewTicker(p.o.Poll)
	defer ticker.Stop()
	for {
		worked, err := p.lane(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrLost) {
			p.o.Log.Warn("outbound lane failed, trying again", "error", err)
		}
		if worked && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-ticker.C:
		}
	}
}

// lane takes one lane and works it until nothing in it can be done now.
func (p *Poster) lane(ctx context.Context) (worked bool, err error) {
	lease, found, err := p.o.Store.ClaimLane(ctx, p.o.Owner, p.o.Lease)
	if err != nil || !found {
		return false, err
	}
	p.Wake() // there may be another lane with work, for another worker
	for ctx.Err() == nil {
		m, err := p.o.Store.NextOutbound(ctx, lease, p.o.Lease)
		if err != nil {
			return true, err
		}
		if m == nil {
			break
		}
		// A step is never left in the middle: its call is bounded, and what came
		// of it has to be written down.
		if err := p.step(context.WithoutCancel(ctx), lease, m); err != nil {
			return true, err
		}
	}
	return true, p.o.Store.ReleaseLane(context.WithoutCancel(ctx), lease)
}

// step does one thing for a message: looks for it, or sends it.
func (p *Poster) step(ctx context.Context, l store.Lease, m *store.Outbound) error {
	surface, ok := p.o.Surfaces[m.Surface]
	if !ok {
		return p.fail(ctx, l, m, fault.Unavailable, "This build has no such surface.")
	}
	ctx, cancel := context.WithTimeout(ctx, p.o.Lease)
	defer cancel()
	token, err := p.o.Token(ctx, m.Surface, m.Seat)
	if err != nil {
		return p.wait(ctx, l, m, rest(m), "The seat's credential is missing: "+sentence(err))
	}
	call, done := context.WithTimeout(ctx, p.o.Timeout)
	defer done()
	message := Message{ID: m.ID, ConversationKey: m.ConversationKey, Body: m.Body, Since: m.CreatedAt}
	if m.State != store.Queued {
		return p.find(ctx, call, surface, token, l, m, message)
	}
	if err := p.o.Store.MarkSending(ctx, l, m.ID); err != nil {
		return err
	}
	m.State, m.Attempts = store.Sending, m.Attempts+1
	posted, err := surface.Post(call, token, message)
	if err == nil {
		return p.posted(ctx, l, m, posted)
	}
	return p.failed(ctx, l, m, classify(err))
}

func (p *Poster) failed(ctx context.Context, l store.Lease, m *store.Outbound, f *Failure) error {
	p.o.Log.Info("outbound message not posted", "message_id", m.ID, "surface", m.Surface, "seat", m.Seat, "error", f)
	switch f.Kind {
	case Refused:
		return p.fail(ctx, l, m, f.Class, f.Detail)
	case Limited:
		if err := p.o.Store.QuietLane(ctx, l, f.Wait); err != nil {
			return err
		}
		p.settled.WithLabelValues(m.Surface, "limited").Inc()
		return p.o.Store.MarkWaiting(ctx, l, m.ID, store.Queued, f.Detail, 0)
	case NotSent:
		return p.wait(ctx, l, m, store.Queued, f.Detail)
	default:
		p.settled.WithLabelValues(m.Surface, "in_doubt").Inc()
		return p.o.Store.MarkWaiting(ctx, l, m.ID, store.Unknown, f.Detail, p.o.Grace)
	}
}

// find settles a message in doubt. It is sent again only after a search that
// was carried to its end has not found it.
func (p *Poster) find(ctx, call context.Context, s Surface, token config.Secret, l store.Lease, m *store.Outbound, message Message) error {
	posted, found, err := s.Find(call, token, message)
	if err != nil {
		f := classify(err)
		if f.Kind == Limited {
			if err := p.o.Store.QuietLane(ctx, l, f.Wait); err != nil {
				return err
			}
		}
		return p.wait(ctx, l, m, store.Unknown, "It may have been posted; looking for it failed: "+f.Detail)
	}
	if found {
		return p.posted(ctx, l, m, posted)
	}
	p.settled.WithLabelValues(m.Surface, "not_found").Inc()
	return p.wait(ctx, l, m, store.Queued, "It did not arrive and is sent again.")
}

func (p *Poster) posted(ctx context.Context, l store.Lease, m *store.Outbound, posted Posted) error {
	if err := p.o.Store.MarkPosted(ctx, l, m.ID, posted.VendorID, posted.URL); err != nil {
		return err
	}
	p.settled.WithLabelValues(m.Surface, "posted").Inc()
	p.announce()
	return nil
}

func (p *Poster) fail(ctx context.Context, l store.Lease, m *store.Outbound, class fault.Class, detail string) error {
	if err := p.o.Store.MarkFailed(ctx, l, m.ID, class, detail); err != nil {
		return err
	}
	p.settled.WithLabelValues(m.Surface, "failed").Inc()
	p.announce()
	return nil
}

// wait puts a message off, a little longer each time, until it is too old.
func (p *Poster) wait(ctx context.Context, l store.Lease, m *store.Outbound, state, detail string) error {
	if time.Since(m.CreatedAt) > p.o.GiveUp {
		return p.fail(ctx, l, m, fault.Unavailable, "It was given up as too old. "+detail)
	}
	p.settled.WithLabelValues(m.Surface, "waiting").Inc()
	return p.o.Store.MarkWaiting(ctx, l, m.ID, state, detail, p.backoff(m.Attempts+m.Lookups))
}

// backoff is the wait after so many tries, half of it by chance.
func (p *Poster) backoff(tries int) time.Duration {
	full := p.o.BackoffMax
	if shift := max(tries-1, 0); shift < 30 {
		full = min(full, p.o.Backoff<<shift)
	}
	return full/2 + rand.N(full/2+1)
}

// rest is the state in which a message waits that could not be worked on.
func rest(m *store.Outbound) string {
	if m.State == store.Queued {
		return store.Queued
	}
	return store.Unknown
}

func sentence(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return "the company service does not answer."
}
