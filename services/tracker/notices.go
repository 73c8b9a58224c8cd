package tracker

import (
	"context"
	"time"

	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/events"
)

const (
	// toldEvery is how often it is looked up to which change everybody has been told.
	toldEvery = time.Second
	// noticeSweepEvery is how often old notices are forgotten.
	noticeSweepEvery = time.Hour
	// eventsKept is how long taken-in events are known again; no topic that feeds the inbox keeps them longer.
	eventsKept = 14 * 24 * time.Hour
)

// takeNotices keeps a copy of whom changes are told to.
func (s *Service) takeNotices(ctx context.Context) error {
	return events.NoticeConsumer(s.deps.Pool, s.deps.Bus, s.deps.Log, s.deps.Metrics).Run(ctx)
}

// advanceTold moves on up to where everybody has been told.
func (s *Service) advanceTold(ctx context.Context) error {
	return s.every(ctx, toldEvery, "keep up to which change everybody has been told", s.store.AdvanceTold)
}

// sweepNotices forgets notices that are older than they are kept, and events that were taken in long ago.
func (s *Service) sweepNotices(ctx context.Context) error {
	return s.every(ctx, noticeSweepEvery, "forget old notices", func(ctx context.Context) error {
		if _, err := s.store.SweepNotices(ctx, s.deps.Now().AddDate(0, 0, -s.noticeDays())); err != nil {
			return err
		}
		_, err := inbox.Sweep(ctx, s.deps.Pool, eventsKept)
		return err
	})
}

// noticeDays is how long notices are kept; whoever builds the service without settings gets the usual time.
func (s *Service) noticeDays() int {
	if s.deps.Config.NoticeDays == 0 {
		return defaultNoticeDays
	}
	return s.deps.Config.NoticeDays
}

// every does a work at once and then again and again until ctx ends. What fails is said in the log and tried again the next time.
func (s *Service) every(ctx context.Context, pause time.Duration, work string, do func(context.Context) error) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.deps.Log.Warn("work in the background failed, it is tried again", "work", work, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
