package item

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Update says what to change; a nil part stays.
type Update struct {
	Status, Assignee, Priority, Title, Body, Type *string
	// These point to the new value, which is nil to take it away.
	Due, Start      **Moment
	EstimateMinutes **int32
	Points          **float64
	// Labels are all slugs that it has from now on.
	Labels *[]string
	// RoutingUnit is a unit's id.
	RoutingUnit *string
	// Collaborators are handles.
	Collaborators *SetChange
	Checklist     Gesture
	// Watch says whether the actor wants to hear of it.
	Watch *bool
	// Parent points to where the item stands in the tree from now on.
	Parent *Place
	// Fields are all values of custom fields from now on, and Related the relations that changed; both come with how history tells them.
	Fields  *Values
	Related map[string]Field
	Reason  string
	// IfMatch, unless nil, is the version that the caller read.
	IfMatch *int32
}

// Place is where an item stands in the tree.
type Place struct {
	Parent *uuid.UUID // nil at the top
	Depth  int16
}

// Values are custom fields by id, with what changed in them as history tells it.
type Values struct {
	All       map[string]any
	Described Field
}

// Matches refuses a version that is no longer the item's; nil asks for none.
func (i *Item) Matches(version *int32) error {
	if version == nil || *version == i.Version {
		return nil
	}
	return fault.New(fault.StaleVersion, "%s has changed since you read it: it is at version %d, not %d; read it again and decide from what it says now",
		i.Key(), i.Version, *version).WithField("if_match").WithReason(ReasonVersion).WithFact("current_version", strconv.Itoa(int(i.Version)))
}

// Apply changes the item, or refuses and leaves it as it is. It answers false when everything was so already, which writes
// nothing and is no change.
func (i *Item) Apply(u Update, by Actor, now time.Time) (Change, bool, error) {
	if err := i.Matches(u.IfMatch); err != nil {
		return Change{}, false, err
	}
	draft := *i
	for _, step := range []func() error{
		func() error { draft.values(u); return nil },
		func() error { return draft.people(u, by) },
		func() error { return draft.steps(u.Checklist) },
	} {
		if err := step(); err != nil {
			return Change{}, false, err
		}
	}
	if u.Status != nil && *u.Status != draft.Status {
		draft.enter(*u.Status, now)
	}
	fields := Describe(i, &draft)
	if u.Fields != nil {
		fields["fields"] = u.Fields.Described
	}
	maps.Copy(fields, u.Related)
	if len(fields) == 0 {
		return Change{}, false, nil
	}
	draft.touch(by, now)
	draft.Version++
	if draft.Body != i.Body {
		draft.BodyVersion, draft.BodyAuthor, draft.BodyAt = draft.Version, by.Name, &now
	}
	c := draft.change(kindOf(fields), by, now)
	c.Fields = fields
	if draft.Assignee != i.Assignee {
		c.PreviousAssignee, c.Reason = i.Assignee, u.Reason
	}
	*i = draft
	return c, true, nil
}

// values sets what needs no more than being set.
func (i *Item) values(u Update) {
	assign(&i.Title, u.Title)
	assign(&i.Body, u.Body)
	assign(&i.Priority, u.Priority)
	assign(&i.Type, u.Type)
	assign(&i.Due, u.Due)
	assign(&i.Start, u.Start)
	assign(&i.EstimateMinutes, u.EstimateMinutes)
	assign(&i.Points, u.Points)
	assign(&i.RoutingUnit, u.RoutingUnit)
	if u.Labels != nil && !sameMembers(i.Labels, *u.Labels) {
		i.Labels = slices.Clone(*u.Labels)
	}
	if u.Parent != nil {
		i.Parent, i.Depth = u.Parent.Parent, u.Parent.Depth
	}
	if u.Fields != nil {
		i.Fields = u.Fields.All
	}
}

func assign[T any](at, to *T) {
	if to != nil {
		*at = *to
	}
}

// sameMembers compares sets.
func sameMembers(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
