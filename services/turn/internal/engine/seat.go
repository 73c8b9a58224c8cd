package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// seat is this worker's hold on one seat: a goroutine that works off its mailbox for as long as the lease lasts.
type seat struct {
	engine *Engine
	fence  store.Fence
	lose   context.CancelFunc
	wake   chan struct{}

	retired chan struct{}
	once    sync.Once
	busy    atomic.Bool
	held    atomic.Pointer[string]
	// failed is set before the goroutine ends when the seat should be taken up anew.
	failed bool
}

func newSeat(e *Engine, f store.Fence, lose context.CancelFunc) *seat {
	return &seat{engine: e, fence: f, lose: lose, wake: make(chan struct{}, 1), retired: make(chan struct{})}
}

func (s *seat) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *seat) retire() { s.once.Do(func() { close(s.retired) }) }

func (s *seat) idle() bool { return !s.busy.Load() }

func (s *seat) why() string {
	if why := s.held.Load(); why != nil {
		return *why
	}
	return ""
}

// run works until the lease is lost, the seat is retired or the engine drains.
func (s *seat) run(ctx context.Context) {
	defer s.lose()
	// The release outlives a lost lease; it changes nothing then.
	defer s.engine.gone(context.WithoutCancel(ctx), s)
	log := s.engine.Log.With("seat", s.fence.Seat, "epoch", s.fence.Epoch)
	err := s.takeUp(ctx)
	for err == nil && !s.over(ctx) {
		var pause time.Duration
		if pause, err = s.next(ctx); err == nil && pause != 0 {
			s.rest(ctx, pause)
		}
	}
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, errStopped):
	case errors.Is(err, store.ErrFenced):
		log.Info("lost the seat")
	default:
		s.failed = true
		log.Warn("let go of the seat after a failure", "error", err)
		s.rest(ctx, failurePause)
	}
}

// failurePause keeps a seat whose work fails at once, every time, from spinning.
const failurePause = 500 * time.Millisecond

func (s *seat) over(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-s.engine.draining:
	case <-s.retired:
	default:
		return false
	}
	return true
}

// rest waits until something may have changed, at most for pause.
func (s *seat) rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	case <-s.engine.Company.Changed():
	case <-ctx.Done():
	case <-s.engine.draining:
	case <-s.retired:
	}
}

// takeUp goes on with the turn that a dead worker left.
func (s *seat) takeUp(ctx context.Context) error {
	e := s.engine
	info, found, err := e.Store.TakeUp(ctx, s.fence, e.Now())
	if err != nil || !found {
		return err
	}
	s.busy.Store(true)
	defer s.busy.Store(false)
	t, err := s.resume(ctx, info)
	if err != nil {
		return err
	}
	return s.slot(ctx, func() error { return t.run(ctx) })
}

// idlePause is how long a seat rests with nothing to wait for; it is woken when there is.
const idlePause = time.Hour

// next works on one conversation, or answers how long to rest.
func (s *seat) next(ctx context.Context) (pause time.Duration, err error) {
	e := s.engine
	changed := e.Company.Changed()
	company, person, models, why := s.ready(ctx)
	if why != nil {
		s.held.Store(&why.Message)
		if err := e.Store.HoldSeat(ctx, s.fence, why.Message); err != nil {
			return 0, err
		}
		select {
		case <-changed:
			return 0, nil
		default:
			return heldPause(models), nil
		}
	}
	s.held.Store(nil)
	now := e.Now()
	waiting, due, err := e.Store.Waiting(ctx, s.fence.Seat, now)
	if err != nil {
		return 0, err
	}
	picked, wait := mailbox.Pick(waiting, mailbox.Batch{
		Max:    int(company.GetMail().GetCoalesceMaxBatch()),
		Window: time.Duration(company.GetMail().GetCoalesceWindowSeconds()) * time.Second,
	}, now)
	if len(picked) == 0 {
		pause = idlePause
		if !due.IsZero() {
			pause = min(pause, max(due.Sub(now), time.Millisecond))
		}
		if wait > 0 {
			pause = min(pause, wait)
		}
		return pause, nil
	}
	s.busy.Store(true)
	defer s.busy.Store(false)
	return 0, s.slot(ctx, func() error {
		t, err := s.begin(ctx, company, person, models, picked)
		if refused, ok := fault.As(err); ok && refused.Reason == reasonCannotBegin {
			// What the turn needs is away; the mail is as it was.
			e.Log.Warn("a turn cannot begin", "seat", s.fence.Seat, "error", err)
			text := "A turn cannot begin: " + refused.Message
			s.held.Store(&text)
			if err := e.Store.HoldSeat(ctx, s.fence, text); err != nil {
				return err
			}
			s.rest(ctx, beginPause)
			return nil
		}
		if err != nil {
			return err
		}
		return t.run(ctx)
	})
}

// reasonCannotBegin marks the failure of something that a turn needs to begin; nothing has changed then.
const reasonCannotBegin = "CANNOT_BEGIN"

// beginPause is between two tries to begin a turn while the tool registry is away.
const beginPause = 500 * time.Millisecond

// heldPause is how long a held seat rests: until a key may be used again, or the usual while.
func heldPause(m model.Models) time.Duration {
	const usual = 10 * time.Second
	if m.Rests == nil {
		return usual
	}
	return min(max(m.Rests(), time.Millisecond), usual)
}

// ready answers what a turn needs, or why there can be none.
func (s *seat) ready(ctx context.Context) (c *companyv1.Company, person *companyv1.Seat, m model.Models, why *fault.Error) {
	company, active := s.engine.Company.Current()
	if !active || company == nil {
		return nil, nil, m, fault.New(fault.Unavailable, "%s", noCompany)
	}
	person = seatOf(company, s.fence.Seat)
	if person == nil {
		return nil, nil, m, fault.New(fault.Unavailable, "%s", stranger)
	}
	m, err := s.engine.Models.For(ctx, company, person)
	if err != nil {
		if refused, ok := fault.As(err); ok {
			return nil, nil, m, refused
		}
		return nil, nil, m, fault.New(fault.Unavailable, "The seat's models cannot be made ready.").WithCause(err)
	}
	if rests := m.Rests(); rests > 0 {
		return nil, nil, m, fault.New(fault.Unavailable, "Every key of the seat's model providers rests after a refusal; the first "+
			"may be used again in %s.", rests.Round(time.Second))
	}
	return company, person, m, nil
}

// slot runs fn once one of the process's places is free. A drain releases who waits.
func (s *seat) slot(ctx context.Context, fn func() error) error {
	select {
	case s.engine.slots <- struct{}{}:
		defer func() { <-s.engine.slots }()
		return fn()
	case <-s.engine.draining:
		return errStopped
	case <-ctx.Done():
		return fmt.Errorf("wait for a place: %w", ctx.Err())
	}
}

// errStopped ends a turn at a commit, to be taken up by somebody else.
var errStopped = errors.New("stopped at a commit")
