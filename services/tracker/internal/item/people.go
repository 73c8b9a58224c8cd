package item

import (
	"slices"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Watch makes a seat hear of the item, unless it has muted it or the list is full: watching is then skipped, not refused, as
// nobody asked for it.
func (i *Item) Watch(handle string) {
	if handle == "" || slices.Contains(i.Watchers, handle) || slices.Contains(i.Muted, handle) || len(i.Watchers) >= MaxWatchers {
		return
	}
	i.Watchers = with(i.Watchers, handle)
}

// watch is what a seat says of itself. Leaving is never refused, and is remembered, so that nothing makes the seat watch again.
func (i *Item) watch(handle string, watching bool) error {
	switch {
	case handle == "":
		return fault.New(fault.Invalid, "watch is about a seat's own list, and you act for no seat: bind the token to a person's seat").WithField("watch")
	case !watching:
		i.Watchers = without(i.Watchers, handle)
		if !slices.Contains(i.Muted, handle) {
			i.Muted = with(i.Muted, handle)
		}
		return nil
	case slices.Contains(i.Watchers, handle):
		return nil
	case len(i.Watchers) >= MaxWatchers:
		return fault.New(fault.Invalid, "watch is refused: %s is watched by %d already, which is as many as may; my_work shows what is yours without it",
			i.Key(), len(i.Watchers)).WithField("watch")
	}
	i.Muted = without(i.Muted, handle)
	i.Watchers = with(i.Watchers, handle)
	return nil
}

// people applies what an update says of who has the item, helps and watches.
func (i *Item) people(u Update, by Actor) error {
	if u.Collaborators != nil {
		to := u.Collaborators.Apply(i.Collaborators)
		if len(to) > MaxCollaborators {
			return fault.New(fault.Invalid, "collaborators would be %d; an item has at most %d: remove some first", len(to), MaxCollaborators).WithField("collaborators")
		}
		if !sameMembers(i.Collaborators, to) {
			i.Collaborators = to
		}
	}
	if u.Watch != nil {
		if err := i.watch(by.Seat, *u.Watch); err != nil {
			return err
		}
	}
	if u.Assignee != nil && *u.Assignee != i.Assignee {
		return i.hand(*u.Assignee, by)
	}
	return nil
}

// hand gives the item to somebody, within what agents may.
func (i *Item) hand(to string, by Actor) error {
	if by.Kind == "agent" {
		if i.Reassignments >= MaxReassignments {
			return fault.New(fault.ReassignmentBudget,
				"%s has changed hands %d times between agents, which is as often as it may: leave it with %s, or ask a person to hand it on",
				i.Key(), i.Reassignments, nobody(i.Assignee)).WithField("assignee").WithReason(ReasonBudget)
		}
		i.Reassignments++
	}
	i.Assignee = to
	i.Watch(to)
	return nil
}

func nobody(handle string) string {
	if handle == "" {
		return "nobody"
	}
	return handle
}

// with and without answer a new set: items share theirs with what they were before.
func with(members []string, member string) []string {
	return append(slices.Clone(members), member)
}

func without(members []string, member string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == member })
}
