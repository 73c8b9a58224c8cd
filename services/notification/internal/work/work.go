// Package work decides whom a change of a work item is told to, and in which words.
//
// The tracker says with every change whom it concerns and why, as it was in that moment ([Concern]); [Decide] chooses: everybody is
// told once, by the strongest of their reasons, persons by a notice in their inbox, agents by a delivery that wakes them. What was
// decided about each is kept ([Decision]), so that nobody has to guess why they did not hear of something.
//
// It is pure: who is in the company and what a conversation has seen are handed in.
package work

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

const (
	// Source names the tracker in deliveries and conversation keys.
	Source = "tracker"
	// Surface is where an answer to a work item is owed: on an item, by one of the tracker's own tools.
	Surface = "work"
)

// Change is one row of the tracker's history, and whom it concerns.
type Change struct {
	// Position is its place in the tracker's order, such as tracker@1:42; Epoch and Sequence are its parts.
	Position string
	Epoch    int32
	Sequence int64
	// Kind is the history's: created, status, comment, …
	Kind string
	// Item is what it happened to; its ID is nil for a change of somebody's own record, which names items by concern.
	Item Item
	// Actor is the handle of the seat that did it, empty for a token; Token is the token's name, empty for a seat.
	Actor, Token string
	// ActorKind is agent, human, operator or system.
	ActorKind string
	// Fields are what changed, by name.
	Fields []Field
	// Reason is why it was handed on; may be empty.
	Reason string
	// Comment is nil when nothing was said.
	Comment *Comment
	// Excerpt is the beginning of what was said.
	Excerpt string
	At      time.Time
	// Concerns are whom it concerns, one entry for each reason.
	Concerns []Concern
	// Muted are those who want to hear nothing of the item unless something is owed.
	Muted []string
}

// Item is a work item as far as it is told.
type Item struct {
	ID         uuid.UUID
	Key, Title string
	// Status, Assignee and Priority are as the change leaves them.
	Status, Assignee, Priority string
}

// Field is one thing that changed, in the forms that the history keeps.
type Field struct{ Name, From, To string }

// Comment is what was said.
type Comment struct {
	ID   string
	Body string
	// Asked is who owes an answer to it; empty when it asks nothing.
	Asked string
	// Question and Options are the choice that it puts, when it puts one.
	Question, Recommended string
	Options               []Option
	// Answers is the comment whose question it answers, and Choice the option it takes.
	Answers, Choice string
}

// Option is one thing to choose.
type Option struct{ ID, Label, Detail string }

// Concern is one reason that somebody has to hear of a change.
type Concern struct {
	Handle string
	Reason string
	// Addressed: an answer or the work itself is owed.
	Addressed bool
	// About is the item that it is about, when that is not the change's own.
	About *Item
	// OwesSurface and OwesChannel are where somebody promised to say what was decided; empty for nowhere.
	OwesSurface, OwesChannel string
}

// Seat is somebody of the company.
type Seat struct {
	Name  string
	Agent bool
}

// Seats finds a seat by its handle, in the company as it is when the change is told.
type Seats func(handle string) (Seat, bool)

// Lane is a seat in a conversation.
type Lane struct{ Seat, Conversation string }

// Wakes counts how often programs have woken seats of late.
type Wakes map[Lane]int

// States of a change that was read.
const (
	// Told: somebody was told.
	Told = "told"
	// Nobody: it concerned nobody.
	Nobody = "nobody"
	// Quiet: everybody whom it concerned was left alone, for the reasons that the decisions give.
	Quiet = "quiet"
)

// What became of a change for one colleague.
const (
	Delivered = "delivered"
	Noticed   = "noticed"
	Skipped   = "skipped"
)

// Decision is what became of a change for one colleague.
type Decision struct {
	Handle  string `json:"handle"`
	Reason  string `json:"reason"`
	Outcome string `json:"outcome"`
	// Detail is why it was skipped.
	Detail string `json:"detail,omitempty"`
}

// Notice tells one person of one change.
type Notice struct {
	ID     uuid.UUID
	Person string
	// Item is what it is about.
	Item Item
	// Reasons are all that the person has, the strongest first.
	Reasons []string
}

// Outcome is everything that was decided about a change.
type Outcome struct {
	// State is Told, Nobody or Quiet; Why says in words why nobody was told.
	State, Why string
	Decisions  []Decision
	Notices    []Notice
	Deliveries []*delivery.Delivery
}

// Conversation is the key of the conversation about an item.
func Conversation(item uuid.UUID) string { return Source + ":" + item.String() }

// Conversations answers the keys of all that a change may be told in.
func (c *Change) Conversations() []string {
	keys := []string{Conversation(c.Item.ID)}
	for _, concern := range c.Concerns {
		if concern.About != nil {
			keys = append(keys, Conversation(concern.About.ID))
		}
	}
	return keys
}

// Subject answers the item that it is about: its own, or for a change of somebody's record the first that it names.
func (c *Change) Subject() Item {
	if c.Item.ID == uuid.Nil {
		for _, concern := range c.Concerns {
			if concern.About != nil {
				return *concern.About
			}
		}
	}
	return c.Item
}

// Doer answers who did it: a handle, or a token's name.
func (c *Change) Doer() string { return cmp.Or(c.Actor, c.Token) }

// Machine reports whether no person did it.
func (c *Change) Machine() bool { return c.ActorKind == "agent" || c.ActorKind == "system" }
