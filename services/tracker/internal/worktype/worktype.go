// Package worktype is the kinds of work: those that come with the product and those that a workspace declares.
//
// It is pure. Items keep a type's slug, which never changes; what people read may. A declaration with a builtin's slug renames it, and one
// that is left out of a new list is archived if items may have it, or, for a builtin, taken back to what it was.
package worktype

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
)

// MaxTypes is how many types take new work at a time, the builtin ones among them.
const MaxTypes = 64

// Default is the type of an item when none is given.
const Default = "task"

// Type is a kind of work.
type Type struct {
	Slug        string `json:"slug"`
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	// Archived: no new work takes it.
	Archived bool `json:"archived,omitempty"`
	Builtin  bool `json:"-"`
}

// Builtins come with the product.
func Builtins() []Type {
	return []Type{
		{Slug: Default, Label: "Task", Description: "Something to do", Builtin: true},
		{Slug: "bug", Label: "Bug", Description: "Something that does not work as it should", Builtin: true},
		{Slug: "epic", Label: "Epic", Description: "A large piece of work that is made of others", Builtin: true},
		{Slug: "story", Label: "Story", Description: "Something that somebody will be able to do", Builtin: true},
		{Slug: "spike", Label: "Spike", Description: "A question to find the answer to", Builtin: true},
		{Slug: "chore", Label: "Chore", Description: "Upkeep that nobody outside will notice", Builtin: true},
		{Slug: "milestone", Label: "Milestone", Description: "A point that other work leads to", Builtin: true},
	}
}

// Set is the types of a workspace, builtin ones first.
type Set []Type

// Effective unites the builtin types with those declared.
func Effective(declared []Type) Set {
	set := Set(Builtins())
	for _, t := range declared {
		at := slices.IndexFunc(set, func(b Type) bool { return b.Slug == t.Slug })
		if at < 0 {
			set = append(set, t)
			continue
		}
		t.Builtin = set[at].Builtin
		if t.Description == "" {
			t.Description = set[at].Description
		}
		set[at] = t
	}
	return set
}

// Slugs answers the slugs of all types, archived ones too.
func (s Set) Slugs() []string {
	slugs := make([]string, 0, len(s))
	for _, t := range s {
		slugs = append(slugs, t.Slug)
	}
	return slugs
}

// Live are the types that take new work.
func (s Set) Live() Set {
	return slices.DeleteFunc(slices.Clone(s), func(t Type) bool { return t.Archived })
}

// Find answers the type that a text names, by slug or label in any case; one that is archived last.
func (s Set) Find(text string) (Type, bool) {
	text = strings.TrimSpace(text)
	for _, fits := range []func(Type) bool{
		func(t Type) bool { return t.Slug == strings.ToLower(text) },
		func(t Type) bool { return !t.Archived && strings.EqualFold(t.Label, text) },
		func(t Type) bool { return strings.EqualFold(t.Label, text) },
	} {
		if at := slices.IndexFunc(s, fits); at >= 0 {
			return s[at], true
		}
	}
	return Type{}, false
}

// Check answers the slug of the type that a text names, empty for the default, or refuses it. current is the item's own type, which it may
// keep when that is archived; empty for new work. argument is the one that the text came in.
func (s Set) Check(argument, text, current string) (string, error) {
	if text == "" {
		text = Default
	}
	t, ok := s.Find(text)
	switch {
	case !ok:
		return "", s.None(argument, text)
	case t.Archived && t.Slug != current:
		return "", fault.New(fault.Invalid, "type %s is archived and takes no new work; there are %s", t.Slug, strings.Join(s.Live().Slugs(), ", ")).WithField(argument)
	}
	return t.Slug, nil
}

// None refuses a text that names no type.
func (s Set) None(argument, text string) error {
	live := s.Live().Slugs()
	if near := nearest.Few(text, live, 1); len(near) > 0 {
		return fault.New(fault.Invalid, "there is no type %q; did you mean %s?", text, near[0]).WithField(argument)
	}
	return fault.New(fault.Invalid, "there is no type %q; there are %s", text, strings.Join(live, ", ")).WithField(argument)
}

// Revise answers the declared types after a new list took the place of the old one.
func Revise(declared, wanted []Type) ([]Type, error) {
	var next []Type
	for n, t := range wanted {
		t.Slug, t.Label, t.Builtin = strings.ToLower(t.Slug), strings.TrimSpace(t.Label), false
		if t.Label == "" {
			t.Label = t.Slug
		}
		path := fmt.Sprintf("types[%d]", n)
		if slices.ContainsFunc(next, func(o Type) bool { return o.Slug == t.Slug }) {
			return nil, fault.New(fault.Invalid, "type %s is declared twice", t.Slug).WithField(path + ".slug")
		}
		if t.Slug == Default && t.Archived {
			return nil, fault.New(fault.Invalid, "type %s cannot be archived: an item has it when nobody says otherwise", t.Slug).WithField(path + ".archived")
		}
		next = append(next, t)
	}
	builtins := Set(Builtins())
	for _, t := range declared {
		_, builtin := builtins.Find(t.Slug)
		if builtin || slices.ContainsFunc(next, func(o Type) bool { return o.Slug == t.Slug }) {
			continue
		}
		t.Archived = true
		next = append(next, t)
	}
	set := Effective(next)
	if live := len(set.Live()); live > MaxTypes {
		return nil, fault.New(fault.Invalid, "types would leave %d that take work; there may be %d, the builtin ones among them", live, MaxTypes).WithField("types")
	}
	return next, distinct(set.Live())
}

// distinct refuses two types that read alike, or one that reads like the slug of another.
func distinct(live Set) error {
	for at, t := range live {
		for _, other := range live[:at] {
			if strings.EqualFold(t.Label, other.Label) || strings.EqualFold(t.Label, other.Slug) || strings.EqualFold(t.Slug, other.Label) {
				return fault.New(fault.Invalid, "types %s and %s would be taken for each other: give one another label", other.Slug, t.Slug).WithField("types")
			}
		}
	}
	return nil
}
