package events

import (
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

// concerns answers whom a change concerns as the snapshot carries it.
func concerns(list []wake.Concern) []*trackerv1.Concern {
	out := make([]*trackerv1.Concern, 0, len(list))
	for _, c := range list {
		concern := &trackerv1.Concern{
			Handle: c.Handle, Reason: c.Reason, Addressed: c.Addressed, AboutKey: c.AboutKey, AboutTitle: c.AboutTitle,
			OwesSurface: c.Owes.Surface, OwesChannel: c.Owes.Channel,
		}
		if c.About != nil {
			concern.AboutId = c.About.String()
		}
		out = append(out, concern)
	}
	return out
}

// actorToken answers the name of the token that acted, when it is not a seat's own.
func actorToken(by item.Actor) string {
	if by.Name == by.Seat {
		return ""
	}
	return by.Name
}
