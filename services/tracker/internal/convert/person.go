package convert

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/person"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Person answers what a colleague keeps, as it is at a moment.
func Person(v *store.PersonView, now time.Time) *trackerv1.GetPersonResponse {
	out := &trackerv1.GetPersonResponse{
		Handle: v.Handle, SeenThrough: store.Place(v.SeenThrough), Read: places(v.Read), Unread: places(v.Unread), Due: places(v.Due(now)),
		PrioritiesSetBy: v.PrioritiesBy, PrioritiesSetTime: moment(v.PrioritiesAt), PrimaryReasons: v.PrimaryReasons(), Version: v.Version,
		Held: v.Held, MaxSnoozeDays: person.MaxSnoozeDays,
	}
	for _, s := range v.Snoozed {
		out.Snoozed = append(out.Snoozed, &trackerv1.Snooze{RecordId: store.Place(s.Record), Until: timestamppb.New(s.Until)})
	}
	// What was destroyed has no key any more and is left out.
	for _, id := range v.Priorities {
		if key, there := v.Keys[id]; there {
			out.Priorities = append(out.Priorities, key)
		}
	}
	for _, id := range v.Favorites {
		if key, there := v.Keys[id]; there {
			out.Favorites = append(out.Favorites, key)
		}
	}
	for _, id := range v.Views {
		out.PinnedViews = append(out.PinnedViews, id.String())
	}
	return out
}

func places(records []int64) []string {
	var out []string
	for _, record := range records {
		out = append(out, store.Place(record))
	}
	return out
}

// Notice answers a notice as the person who keeps r sees it.
func Notice(n store.InboxNotice, r *person.Record, primary bool) *trackerv1.Notice {
	out := &trackerv1.Notice{
		RecordId: store.Place(n.Position), Item: n.ItemKey, ItemId: n.ItemID.String(), Title: n.Title, Reason: n.Reason, Primary: primary, Kind: n.Kind,
		Actor: n.Actor, ActorKind: n.ActorKind, Excerpt: n.Excerpt, Read: r.HasRead(n.Position), SnoozeTime: moment(r.Until(n.Position)),
		CreateTime: timestamppb.New(n.OccurredAt),
	}
	if n.CommentID != nil {
		out.CommentId = n.CommentID.String()
	}
	return out
}
