package item

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Field is one thing that changed, in stored forms.
type Field struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Change is one row of history.
type Change struct {
	// Kind is the most specific of what changed: created, status, assignee, comment or fields.
	Kind string
	By   Actor
	// Fields by name.
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

// Update says what to change; a nil field stays.
type Update struct {
	Status, Assignee, Priority, Title, Body *string
	// Due, unless nil, points to the new moment, which is nil to take it away.
	Due             **Moment
	EstimateMinutes *int32
	ClearEstimate   bool
	Reason          string
	// IfMatch, unless nil, is the version that the caller read.
	IfMatch *int32
}

// New completes an item that is being filed and answers the change that files it. ID, Project, Number, Type, Title, Body, Status,
// Priority, Assignee, Parent, Due and EstimateMinutes are the caller's.
func New(i *Item, by Actor, now time.Time) Change {
	i.Reporter, i.ReporterKind = by.Name, by.Kind
	i.Version = 1
	i.CreatedAt, i.UpdatedAt = now, now
	status := i.Status
	i.Status = ""
	i.enter(status, now)
	i.Watch(by.Seat)
	i.Watch(i.Assignee)
	fields := map[string]Field{"title": {To: quote(i.Title)}, "status": {To: i.Status}}
	if i.Assignee != "" {
		fields["assignee"] = Field{To: i.Assignee}
	}
	return Change{Kind: "created", By: by, Fields: fields, Version: i.Version, At: now}
}

// Apply changes the item, or refuses and leaves it as it is. It answers false when everything was so already, which writes
// nothing and is no change.
func (i *Item) Apply(u Update, by Actor, now time.Time) (Change, bool, error) {
	if u.IfMatch != nil && *u.IfMatch != i.Version {
		return Change{}, false, fault.New(fault.StaleVersion, "%s has changed since you read it: it is at version %d, not %d; read it again and decide from what it says now",
			i.Key(), i.Version, *u.IfMatch).WithField("if_match").WithReason(ReasonVersion).WithFact("current_version", strconv.Itoa(int(i.Version)))
	}
	draft := *i
	c := Change{Kind: "fields", By: by, Fields: map[string]Field{}, At: now}
	c.text("title", &draft.Title, u.Title, quote)
	c.text("priority", &draft.Priority, u.Priority, quote)
	c.moment("due", &draft.Due, u.Due)
	c.text("body", &draft.Body, u.Body, size)
	c.estimate(&draft, u)
	if u.Assignee != nil && *u.Assignee != draft.Assignee {
		c.Kind, c.PreviousAssignee, c.Reason = "assignee", draft.Assignee, u.Reason
		c.Fields["assignee"] = Field{From: draft.Assignee, To: *u.Assignee}
		if err := draft.hand(*u.Assignee, by); err != nil {
			return Change{}, false, err
		}
	}
	if u.Status != nil && *u.Status != draft.Status {
		c.Kind = "status"
		c.Fields["status"] = Field{From: draft.Status, To: *u.Status}
		draft.enter(*u.Status, now)
	}
	if len(c.Fields) == 0 {
		return Change{}, false, nil
	}
	draft.touch(by, now)
	draft.Version++
	c.Version, c.Reassignments = draft.Version, draft.Reassignments
	*i = draft
	return c, true, nil
}

// Remark answers the change that a comment is. A comment does not move the version: it says something about the item and
// changes nothing of it.
func (i *Item) Remark(by Actor, now time.Time) Change {
	i.touch(by, now)
	i.Watch(by.Seat)
	return Change{Kind: "comment", By: by, Fields: map[string]Field{}, Version: i.Version, Reassignments: i.Reassignments, At: now}
}

func (i *Item) touch(by Actor, now time.Time) {
	i.UpdatedAt = now
	if by.person() {
		i.Reassignments = 0
	}
}

func (c *Change) text(name string, at, to *string, describe func(string) string) {
	if to == nil || *to == *at {
		return
	}
	c.Fields[name] = Field{From: describe(*at), To: describe(*to)}
	*at = *to
}

func (c *Change) moment(name string, at, to **Moment) {
	if to == nil || (*at).String() == (*to).String() {
		return
	}
	c.Fields[name] = Field{From: (*at).String(), To: (*to).String()}
	*at = *to
}

func (c *Change) estimate(i *Item, u Update) {
	to := u.EstimateMinutes
	if to == nil && !u.ClearEstimate {
		return
	}
	from, next := minutes(i.EstimateMinutes), minutes(to)
	if from == next {
		return
	}
	c.Fields["estimate"] = Field{From: from, To: next}
	i.EstimateMinutes = to
}

func minutes(m *int32) string {
	if m == nil {
		return ""
	}
	return strconv.Itoa(int(*m))
}

// quote is a short text as it is, and a long one by its size.
func quote(text string) string {
	if len(text) > maxQuotedBytes {
		return size(text)
	}
	return text
}

func size(text string) string { return fmt.Sprintf("%d bytes", len(text)) }
