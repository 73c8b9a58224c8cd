// Package item is the work item: what it holds, how it may change, and how a change is told.
//
// It is pure: no database, no wire, no clock of its own. Every rule about what a change does to an item is here, so that a
// store only has to lock, load, apply and save, and a test needs nothing.
//
// The idea to hold: Apply answers a Change that describes and does not quote. History rows are kept for ever and read by
// everybody; the text itself stands in the item.
package item

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Limits of an item. Sizes are in bytes.
const (
	MaxWatchers      = 64
	MaxCollaborators = 8
	MaxLabels        = 40
	MaxDepth         = 7
	MaxReassignments = 8
	maxQuotedBytes   = 600
)

// Reasons of refusals.
const (
	ReasonVersion = "ITEM_VERSION"
	ReasonBudget  = "REASSIGNMENT_BUDGET"
)

// Group is what filters, boards and rules are written on.
type Group int16

// The groups, in the order of an item's life.
const (
	NotStarted Group = iota
	Active
	Done
	Closed
)

// String answers the group's name on the wire.
func (g Group) String() string {
	return [...]string{"not_started", "active", "done", "closed"}[g]
}

// GroupOf answers the group of a status. Statuses are a closed set that the contract checks.
func GroupOf(status string) Group {
	switch status {
	case "in_progress", "in_review":
		return Active
	case "done", "cancelled":
		return Done
	case "closed":
		return Closed
	default:
		return NotStarted
	}
}

// Priorities in rising order: an item keeps its place in the list.
var priorities = []string{"none", "low", "normal", "high", "urgent"}

// Rank answers a priority's place; none is 0.
func Rank(priority string) int16 { return int16(max(0, slices.Index(priorities, priority))) }

// Priority is the inverse of Rank.
func Priority(rank int16) string { return priorities[rank] }

// Item is something to be done.
type Item struct {
	ID              uuid.UUID
	Project         string
	Number          int32
	FormerKeys      []string
	Type            string
	Title           string
	Body            string
	Status          string
	Priority        string
	Reporter        string
	ReporterKind    string
	Assignee        string     // a handle, or empty for nobody
	Parent          *uuid.UUID // nil at the top
	Depth           int16      // 1 at the top
	Due             *Moment
	Start           *Moment
	EstimateMinutes *int32
	Points          *float64
	Labels          []string // slugs
	// Fields are custom values by field id, in the forms that the field package stores.
	Fields        map[string]any
	Checklists    []Checklist
	Collaborators []string
	// FiledUnit never changes; RoutingUnit's lead hears of the item now. Both are ids.
	FiledUnit   string
	RoutingUnit string
	// Rank is the place in the project's own order, compared byte by byte.
	Rank            string
	Watchers        []string
	Muted           []string
	Reassignments   int32 // by agents, since a person touched it
	Reopens         int32
	Version         int32
	CreatedAt       time.Time
	UpdatedAt       time.Time
	StatusEnteredAt time.Time
	DoneAt          *time.Time
	ClosedAt        *time.Time
	// BodyVersion is the version that last changed the body, by BodyAuthor.
	BodyVersion int32
	BodyAuthor  string
	BodyAt      *time.Time
	// Claim is nil when nobody ever claimed it, or gave it back; a lapsed one stays until it is replaced.
	Claim *Claim
	// OpenAsks counts the questions on it that wait for an answer.
	OpenAsks   int32
	MergedInto *uuid.UUID
	// Removal is nil for an item that is not in the trash.
	Removal *Removal
}

// Removal says how an item came into the trash.
type Removal struct {
	By   string
	Kind string
	At   time.Time
	// With is the item whose removal took this one along; its own id when it was removed itself.
	With uuid.UUID
}

// Key is what people call it by.
func (i *Item) Key() string { return Key(i.Project, i.Number) }

// Key answers the key of a number in a project.
func Key(project string, number int32) string { return fmt.Sprintf("%s-%d", project, number) }

// Open reports whether it still has to be done.
func (i *Item) Open() bool { return GroupOf(i.Status) < Done }

// Overdue reports whether it is open although what was due is past. now must be in the company's zone.
func (i *Item) Overdue(now time.Time) bool { return i.Open() && i.Due != nil && i.Due.Past(now) }

// Actor is who does something to an item.
type Actor struct {
	// Name is a seat's handle or a token's name.
	Name string
	// Kind is agent, human, operator or system.
	Kind string
	// Seat is the handle of the seat it acts as; empty for an operator or the system.
	Seat string
	// Turn is the turn that acts; empty outside one.
	Turn string
}

// Person reports whether a person's own credential acts: it may what leads may, and resets what agents have spent.
func (a Actor) Person() bool { return a.Kind == "human" || a.Kind == "operator" }

// enter puts the item into a status and keeps the stamps that go with it.
func (i *Item) enter(status string, now time.Time) {
	was, is := GroupOf(i.Status), GroupOf(status)
	i.Status, i.StatusEnteredAt = status, now
	if is >= Done {
		i.Claim = nil // nobody works on it any more
	}
	if was >= Done && is < Done {
		i.Reopens++
		i.DoneAt, i.ClosedAt = nil, nil
		i.MergedInto = nil // what is taken up again was no duplicate after all, and may be merged once more
		return
	}
	if is == Done && was != Done {
		i.DoneAt = &now
	}
	if is != Closed {
		i.ClosedAt = nil
	} else if was != Closed {
		i.ClosedAt = &now
		if i.DoneAt == nil {
			i.DoneAt = &now
		}
	}
}
