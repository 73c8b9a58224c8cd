package toolregistry

import (
	"context"
	"time"
)

const (
	// sweepEvery is how often old calls are looked for.
	sweepEvery = time.Hour
	// sweepPortion bounds one transaction.
	sweepPortion = 5000
	// defaultAuditDays holds where the company says nothing.
	defaultAuditDays = 30
)

// forgetSeats drops the surfaces of seats that a new revision no longer has.
func (s *Service) forgetSeats(ctx context.Context) error {
	for {
		changed := s.company.follower.Changed()
		if current, _ := s.company.follower.Current(); current != nil {
			s.seats.Keep(current)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// sweep forgets calls and approvals that are older than the company keeps them, until ctx ends.
func (s *Service) sweep(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := s.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			s.deps.Log.WarnContext(ctx, "old calls are not swept", "error", err)
		}
		if err := s.store.SweepDefinitions(ctx); err != nil && ctx.Err() == nil {
			s.deps.Log.WarnContext(ctx, "definitions of tools that nobody shows any more are not swept", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sweepOnce forgets nothing before it knows how long the company keeps it.
func (s *Service) sweepOnce(ctx context.Context) error {
	current := s.company.at(ctx, "")
	if current == nil {
		return nil
	}
	days := defaultAuditDays
	if current.GetToolResults().GetAuditDays() > 0 {
		days = int(current.GetToolResults().GetAuditDays())
	}
	before := s.deps.Now().AddDate(0, 0, -days)
	for _, forget := range []func(context.Context, time.Time, int) (int64, error){s.store.DeleteCalls, s.asked.Delete} {
		for n := int64(sweepPortion); n == sweepPortion; {
			var err error
			if n, err = forget(ctx, before, sweepPortion); err != nil {
				return err
			}
		}
	}
	return nil
}
