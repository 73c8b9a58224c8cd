// Package wake says whom a change of a work item concerns, and why.
//
// It is pure: a write hands it what it knew while the item was locked, and puts the answer into the routing snapshot that leaves
// with the event. So whoever reads the event later sees who had to do with the item at that moment, not who has by then.
//
// The idea to hold: Resolve answers every reason that somebody has, and chooses nothing. The actor and those who muted the item are
// in the answer too. Whom a change is told to, once, and by which reason, is decided by who tells it: only there is it known who is
// in the company by then.
package wake

import (
	"slices"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Why a change concerns somebody.
const (
	// Asked: they owe an answer to a question.
	Asked = "asked"
	// Answered: their question has its answer.
	Answered = "answered"
	// Mention: a text names them.
	Mention = "mention"
	// Blocking: another item now waits for theirs.
	Blocking = "blocking"
	// Unblocked: nothing stands in front of their item any more. It is about another item than the event's, so it concerns the actor
	// as much as anybody.
	Unblocked = "unblocked"
	// Prioritised: somebody else put an item into their order of work.
	Prioritised = "prioritised"
	// Assignee: they have the item.
	Assignee = "assignee"
	// Unassigned: they had it until now.
	Unassigned = "unassigned"
	// Reporter: they filed it, and it was finished, commented on, handed on, put into the trash or taken out of it.
	Reporter = "reporter"
	// Thread: they spoke in the thread that now goes on.
	Thread = "thread"
	// RoutedTo: they lead the unit that the item is now routed to.
	RoutedTo = "routed_to"
	// ParentAssignee: they have the item that this one is part of, and a part was added, finished, reopened or taken away.
	ParentAssignee = "parent_assignee"
	// ChecklistStep: a step of a checklist is theirs now.
	ChecklistStep = "checklist"
	// Collaborator: they help with it.
	Collaborator = "collaborator"
	// Watcher: they want to hear of it.
	Watcher = "watcher"
	// Unwatched: somebody else took them off the list of who watches; it is never a reason to wake an agent.
	Unwatched = "unwatched"
	// Purged: an item of their project was destroyed for ever.
	Purged = "purged"
	// LeadFallback: they lead, and hear of it if nobody else does. The lead of the routing unit comes before the project's.
	LeadFallback = "lead_fallback"
)

// MaxThread is how many who spoke in a thread hear that it goes on.
const MaxThread = 16

// Concern is one reason that somebody has to hear of a change.
type Concern struct {
	Handle string
	Reason string
	// Addressed: something is owed, an answer or the work itself.
	Addressed bool
	// About is the item that it is about, when that is not the changed one; AboutKey and AboutTitle say what it is called.
	About                *uuid.UUID
	AboutKey, AboutTitle string
	// Owes is where they promised to say what was decided; zero for nowhere.
	Owes Promise
}

// Promise is a place outside where an asker said that they would tell what is decided.
type Promise struct{ Surface, Channel string }

// Neighbour is another item that a change reaches.
type Neighbour struct {
	ID         uuid.UUID
	Key, Title string
	// Assignee is who is to hear of it; a neighbour without one is left out.
	Assignee string
}

// Facts are what a write knows about its change, read while the item was locked. What a change has nothing to do with stays zero.
type Facts struct {
	// Before and After are the item on both sides of the change; Before is nil for a new item, and After is nil for what is no item's
	// change: then only Prioritised is read. For a comment Before may be After itself.
	Before, After *item.Item
	Change        item.Change
	// Mentions are the handles that the text names, a unit already read as its lead. Those that the description named before the change
	// do not hear of it again.
	Mentions []string
	// Thread are the handles of those who spoke in the thread before, the latest first.
	Thread []string
	// Asked is who is asked; Asker is whose question is answered, and Promised is where they said that they would tell of it.
	Asked, Asker string
	Promised     Promise
	// Unblocked are the items that waited for this one and wait for nothing any more, with who has each.
	Unblocked []Neighbour
	// Blocking are the new edges between a waiting item and what it waits for: Assignee is who has what is waited for, and the item is
	// the one of the two that was not changed.
	Blocking []Neighbour
	// ParentAssignee is who has the item that this one is part of.
	ParentAssignee string
	// RoutingLead leads the unit that the item is routed to, ProjectLead the project's.
	RoutingLead, ProjectLead string
	// Prioritised is whose order of work somebody else put items into, and Listed the items that are new in it.
	Prioritised string
	Listed      []Neighbour
}

// Notified reports whether a change concerns anybody but who made it. Those who muted the item count only when something is owed.
func Notified(concerns []Concern, by item.Actor, muted []string) bool {
	return slices.ContainsFunc(concerns, func(c Concern) bool {
		if c.Handle == by.Seat && c.Reason != Unblocked {
			return false
		}
		return c.Addressed || !slices.Contains(muted, c.Handle)
	})
}
