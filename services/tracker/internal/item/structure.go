package item

import (
	"time"

	"github.com/google/uuid"
)

// Remove puts the item into the trash, with the item whose removal takes it along; its own id when it is removed itself. Nobody works on
// it any more.
func (i *Item) Remove(with uuid.UUID, by Actor, now time.Time) Change {
	return i.alter("removed", by, now, func(draft *Item) {
		draft.Removal = &Removal{By: by.Name, Kind: by.Kind, At: now, With: with}
		draft.Claim = nil
	})
}

// Restore takes the item out of the trash, to some place in the tree.
func (i *Item) Restore(to Place, by Actor, now time.Time) Change {
	return i.alter("restored", by, now, func(draft *Item) {
		draft.Removal = nil
		draft.Parent, draft.Depth = to.Parent, to.Depth
	})
}

// Hang puts the item elsewhere in the tree of its project.
func (i *Item) Hang(to Place, by Actor, now time.Time) Change {
	return i.alter("reparented", by, now, func(draft *Item) { draft.Parent, draft.Depth = to.Parent, to.Depth })
}

// Home is where a move brings an item.
type Home struct {
	Project string
	// Unit owns the project. What was routed to the unit of the project it leaves is routed to this one.
	Unit   string
	Number int32
	Rank   string
}

// Move brings the item to another project.
func (i *Item) Move(from, to Home, by Actor, now time.Time) Change {
	return i.alter("moved", by, now, func(draft *Item) {
		draft.Project, draft.Number, draft.Rank = to.Project, to.Number, to.Rank
		if draft.RoutingUnit == from.Unit {
			draft.RoutingUnit = to.Unit
		}
	})
}

// Merge closes the item in favour of another one. What is finished already stays as it ended.
func (i *Item) Merge(into uuid.UUID, by Actor, now time.Time) Change {
	kind := "relations"
	if i.Open() {
		kind = "status"
	}
	c := i.alter(kind, by, now, func(draft *Item) {
		draft.MergedInto, draft.Claim = &into, nil
		if draft.Open() {
			draft.enter("cancelled", now)
		}
	})
	c.Fields["duplicates"] = Field{To: into.String()}
	return c
}

// Purged answers the change that the end of the item is. It says nothing of what the item held.
func (i *Item) Purged(by Actor, reason string, now time.Time) Change {
	c := i.change("purged", by, now)
	c.Reason = reason
	return c
}

// alter makes one change of a gesture.
func (i *Item) alter(kind string, by Actor, now time.Time, change func(draft *Item)) Change {
	draft := *i
	change(&draft)
	draft.touch(by, now)
	draft.Version++
	c := draft.change(kind, by, now)
	c.Fields = Describe(i, &draft)
	*i = draft
	return c
}

// Placed answers the change that another place in the project's order is. It moves neither the version nor the time of the last change.
func (i *Item) Placed(by Actor, now time.Time) Change { return i.change("placed", by, now) }
