package convert

import (
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// maxBriefBody is how much of a description is shown to who did not ask for the whole.
const maxBriefBody = 4 << 10

// Brief answers an item with the beginning of its body; body_bytes says how long it is.
func Brief(i *item.Item, now time.Time) *trackerv1.WorkItem {
	out := Item(i, now)
	body := item.Shorten(i.Body, maxBriefBody)
	out.Body = &body
	return out
}
