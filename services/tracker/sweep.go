package tracker

import (
	"context"
	"time"
)

const (
	// objectSweepEvery is how often content that nothing uses is looked for.
	objectSweepEvery = time.Minute
	// objectsASweep bounds one look.
	objectsASweep = 100
)

// sweepObjects deletes the content that no file uses: what an upload left behind, and what could not be deleted at once.
func (s *Service) sweepObjects(ctx context.Context) error {
	ticker := time.NewTicker(objectSweepEvery)
	defer ticker.Stop()
	for {
		if err := s.deleteObjects(ctx); err != nil && ctx.Err() == nil {
			s.deps.Log.Warn("files' content that nothing uses could not be deleted, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (s *Service) deleteObjects(ctx context.Context) error {
	for {
		dead, err := s.store.DeadObjects(ctx, objectsASweep)
		if err != nil || len(dead) == 0 {
			return err
		}
		for _, id := range dead {
			if err := s.objects.Delete(ctx, id); err != nil {
				return err
			}
			if err := s.store.ForgetObject(ctx, id); err != nil {
				return err
			}
		}
	}
}
