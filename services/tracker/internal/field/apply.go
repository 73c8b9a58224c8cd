package field

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Resolver answers what values name outside of the declarations. A refusal of either function should be a fault of class invalid.
type Resolver struct {
	// Item answers the id of the item that a key, a former key or an id names.
	Item func(text string) (id string, err error)
	// Colleague answers the handle of the one colleague that a text names.
	Colleague func(text string) (handle string, err error)
	// Zone is the company's: in it a point in time is cut to a day.
	Zone *time.Location
}

// Described says what changed in stored forms, as `slug=value` for each field, sets cut at a whole member.
type Described struct {
	From, To string
	// Hidden: some of them are hidden from agents.
	Hidden bool
}

// Result is what a change of values comes to.
type Result struct {
	// Values are all of the item's after the change, by field id.
	Values map[string]any
	// Changed is false when everything was so already.
	Changed  bool
	Describe Described
	Warnings []string
}

// Apply changes values. change is by slug, or id, in the forms of JSON: nil, or an empty text or list, clears. current is left as it is. The
// refusal of one value refuses all; its field is `fields.` and the slug.
func (s Set) Apply(current, change map[string]any, r Resolver) (Result, error) {
	next := maps.Clone(current)
	if next == nil {
		next = map[string]any{}
	}
	res := Result{Values: next}
	var from, to []string
	var hidden bool
	named := map[string]string{} // how the change names each field, by id
	for _, text := range slices.Sorted(maps.Keys(change)) {
		d, ok := s.Find(text)
		if !ok {
			return Result{}, s.NoField("fields."+text, text)
		}
		path := "fields." + d.Slug
		if other, twice := named[d.ID]; twice {
			return Result{}, fault.New(fault.Invalid, "fields names %s twice, as %q and as %q", d.Slug, other, text).WithField(path)
		}
		named[d.ID] = text
		before, had := current[d.ID]
		value, warning, err := s.value(d, change[text], before, r)
		if err != nil {
			return Result{}, at(err, path)
		}
		if warning != "" {
			res.Warnings = append(res.Warnings, warning)
		}
		if same(before, value) {
			continue
		}
		if value == nil {
			delete(next, d.ID)
		} else {
			next[d.ID] = value
		}
		if had {
			from = append(from, d.describe(before))
		}
		if value != nil {
			to = append(to, d.describe(value))
		}
		res.Changed, hidden = true, hidden || d.HideFromAgents
	}
	if len(next) > MaxValues && len(next) > len(current) {
		return Result{}, fault.New(fault.Invalid, "fields would give the item %d values; an item has %d at most: clear one with null first", len(next), MaxValues).WithField("fields")
	}
	res.Describe = Described{From: cut(from, ", ", maxDescribed), To: cut(to, ", ", maxDescribed), Hidden: hidden}
	return res, nil
}

// value answers what is kept for a value given, nil to keep none.
func (s Set) value(d Declaration, given, before any, r Resolver) (kept any, warning string, err error) {
	if empty(given) {
		if !d.Archived && d.applies(s.scope.Type) && d.demanded(s.scope.Subtask) && before != nil {
			return nil, "", fault.New(fault.Invalid, "%s is demanded here and cannot be cleared: give it another value", d.Slug)
		}
		return nil, "", nil
	}
	switch {
	case d.Archived:
		return nil, "", fault.New(fault.Invalid, "%s is archived: no item takes it any more; null clears the value that one has", d.Slug)
	case !d.applies(s.scope.Type):
		return nil, "", fault.New(fault.Invalid, "a %s has no %s: that is for %s", s.scope.Type, d.Slug, strings.Join(d.AppliesTo, ", "))
	}
	return d.check(given, before, r)
}

func empty(given any) bool {
	switch v := given.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// at names the argument that a refusal is about; a failure that is no refusal stays one.
func at(err error, path string) error {
	if f, ok := fault.As(err); ok {
		return f.WithField(path)
	}
	return err
}

func same(a, b any) bool {
	if x, ok := texts(a); ok {
		y, ok := texts(b)
		return ok && slices.Equal(x, y)
	}
	return reflect.DeepEqual(a, b)
}

// texts reads a list of options, whether it was just checked or comes from JSON.
func texts(value any) ([]string, bool) {
	switch list := value.(type) {
	case []string:
		return list, true
	case []any:
		out := make([]string, 0, len(list))
		for _, member := range list {
			text, ok := member.(string)
			if !ok {
				return nil, false
			}
			out = append(out, text)
		}
		return out, true
	default:
		return nil, false
	}
}

const (
	// maxDescribed bounds one side of what a row of history says, maxQuoted one text in it.
	maxDescribed = 600
	maxQuoted    = 120
)

// describe is a value as history tells it.
func (d Declaration) describe(value any) string {
	var told string
	switch shown := d.show(value).(type) {
	case string:
		if told = shown; len(shown) > maxQuoted {
			told = fmt.Sprintf("%d bytes", len(shown))
		}
	case []any:
		list, _ := texts(shown)
		told = cut(list, " ", maxQuoted)
	case float64:
		told = decimal(shown)
	default:
		told = fmt.Sprint(shown)
	}
	return d.Slug + "=" + told
}

// cut joins a set and, where that is too long, leaves out whole members and says how many.
func cut(all []string, separator string, limit int) string {
	joined := strings.Join(all, separator)
	for shown := len(all) - 1; len(joined) > limit && shown >= 0; shown-- {
		joined = strings.Join(append(slices.Clone(all[:shown]), fmt.Sprintf("+%d more", len(all)-shown)), separator)
	}
	return joined
}
