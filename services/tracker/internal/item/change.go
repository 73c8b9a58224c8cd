package item

import (
	"maps"
	"time"
)

// Change is one row of history.
type Change struct {
	// Kind is the most specific of what changed: created, status, assignee, …, comment or fields.
	Kind string
	By   Actor
	// Fields by name, as [Describe] answers them.
	Fields map[string]Field
	// PreviousAssignee is who had it before, when that changed.
	PreviousAssignee string
	// Reason is why it changed hands.
	Reason string
	// Version is the item's after the change.
	Version int32
	// Reassignments is the item's count after the change.
	Reassignments int32
	At            time.Time
}

// New completes an item that is being filed and answers the change that files it. What the reporter decides is the caller's to set
// before; who files and takes it watches.
func New(i *Item, by Actor, now time.Time) Change {
	i.Reporter, i.ReporterKind = by.Name, by.Kind
	i.Version = 1
	i.CreatedAt, i.UpdatedAt = now, now
	i.BodyVersion, i.BodyAuthor, i.BodyAt = 1, by.Name, &now
	status := i.Status
	i.Status = ""
	i.enter(status, now)
	i.Watch(by.Seat)
	i.Watch(i.Assignee)
	c := i.change("created", by, now)
	c.Fields = Describe(&Item{Priority: priorities[0]}, i)
	return c
}

// Related adds what other packages know of a change: custom fields, and relations by name.
func (c *Change) Related(values *Values, relations map[string]Field) {
	if values != nil {
		c.Fields["fields"] = values.Described
	}
	maps.Copy(c.Fields, relations)
}

// Remark answers the change that a comment is. A comment does not move the version: it says something about the item and
// changes nothing of it.
func (i *Item) Remark(by Actor, now time.Time) Change {
	i.touch(by, now)
	i.Watch(by.Seat)
	return i.change("comment", by, now)
}

// change is a row of history about the item as it is now.
func (i *Item) change(kind string, by Actor, now time.Time) Change {
	return Change{Kind: kind, By: by, Fields: map[string]Field{}, Version: i.Version, Reassignments: i.Reassignments, At: now}
}

// touch is what every write does to an item, whatever else it does.
func (i *Item) touch(by Actor, now time.Time) {
	i.UpdatedAt = now
	if by.Person() {
		i.Reassignments = 0
	}
	i.renew(by, now)
}
