package tracker

import (
	"context"
	"time"
)

// mirrorEvery is the time between two looks for edges that the other side was not told of.
const mirrorEvery = 30 * time.Second

// mirror completes edges of waiting whose other side was full and has room again, at once and then every 30 seconds, until ctx ends. A look
// that fails is said in the log and tried again with the next.
func (s *Service) mirror(ctx context.Context) error {
	ticker := time.NewTicker(mirrorEvery)
	defer ticker.Stop()
	for {
		if _, err := s.store.Mirror(ctx, s.deps.Now().Truncate(time.Microsecond)); err != nil && ctx.Err() == nil {
			s.deps.Log.Warn("one-sided relations cannot be completed, trying again later", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
