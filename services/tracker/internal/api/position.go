package api

import (
	"context"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
)

// Outcomes of a write.
const (
	applied   = "applied"
	unchanged = "unchanged"
	pending   = "pending"
)

// landed answers the outcome of a write that stands at a position: pending when searches do not show it yet, and unchanged when
// nothing had to be written, which has no position.
func (h *Handler) landed(at ops.Position) string {
	switch {
	case at == ops.Position{}:
		return unchanged
	case h.Lagging != nil && h.Lagging():
		return pending
	default:
		return applied
	}
}

// notBefore refuses a read that asks, with min_position, for more than the tracker has ever written. Reads see every write that was
// answered, so nothing has to be waited for. An empty text asks for nothing.
func (h *Handler) notBefore(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	asked, err := ops.ParsePosition(text)
	if err != nil {
		if f, ok := fault.As(err); ok {
			return f.WithField("min_position")
		}
		return err
	}
	newest, err := h.Store.Newest(ctx, asked.Sequence)
	switch {
	case err != nil:
		return err
	case asked.Service != newest.Service || asked.Epoch != newest.Epoch:
		return fault.New(fault.Invalid, "min_position %s is a place in another order of writes; the tracker's newest is %s", asked, newest).
			WithField("min_position").WithReason("WRONG_STREAM")
	case asked.Sequence > newest.Sequence:
		return fault.New(fault.Unavailable, "min_position %s is not written yet; the tracker's newest is %s: do not conclude that what you look for does not exist", asked, newest).
			WithField("min_position").WithReason("BEHIND")
	}
	return nil
}
