package field

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
)

// Scope is the items that a set is for.
type Scope struct {
	// Type is the slug of their type of work; empty for all types.
	Type string
	// Subtask is set for items that are part of another one.
	Subtask bool
}

// Set is the declarations in force for items of one project and scope. It is a value and safe for concurrent use.
type Set struct {
	scope Scope
	// fields are all of them, archived ones and those of other types too, the workspace's first.
	fields []Declaration
	own    map[string]bool // ids that the project declares
	// forAgents: what is hidden from agents was taken out.
	forAgents bool
	shadowed  []string
}

// Effective unites the workspace's declarations with a project's. A project's field with the id of a workspace's takes its place, but what
// the workspace has archived is so for everybody.
func Effective(workspace, project Document, scope Scope) Set {
	s := Set{scope: scope, own: make(map[string]bool, len(project))}
	for _, d := range workspace {
		if at := project.index(d.ID); at >= 0 {
			s.shadowed = append(s.shadowed, d.ID)
			archived := d.Archived
			d = project[at]
			d.Archived = d.Archived || archived
		}
		s.fields = append(s.fields, d)
	}
	for _, d := range project {
		s.own[d.ID] = true
		if workspace.index(d.ID) < 0 {
			s.fields = append(s.fields, d)
		}
	}
	return s
}

// ForAgents is the set as agents see it: fields that are hidden from them, and values of those, are not there.
func (s Set) ForAgents() Set {
	s.forAgents = true
	s.fields = slices.DeleteFunc(slices.Clone(s.fields), func(d Declaration) bool { return d.HideFromAgents })
	return s
}

// Fields answers what items of the scope can have a value for: required ones first, then pinned ones, then as declared.
func (s Set) Fields() []Declaration {
	fields := slices.DeleteFunc(slices.Clone(s.fields), func(d Declaration) bool { return d.Archived || !d.applies(s.scope.Type) })
	order := func(d Declaration) int {
		switch {
		case d.demanded(s.scope.Subtask):
			return 0
		case d.Pinned:
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(fields, func(a, b Declaration) int { return cmp.Compare(order(a), order(b)) })
	return fields
}

// Declared answers every field of the set, archived ones and those of other types too.
func (s Set) Declared() []Declaration { return s.fields }

// Shadowed answers the ids of the workspace's fields that the project declares differently.
func (s Set) Shadowed() []string { return s.shadowed }

// Own reports whether the project declares the field.
func (s Set) Own(id string) bool { return s.own[id] }

// Find answers the field that a text names, by slug or id. One that is archived or of other types is found too, but never before
// one of the same slug that is neither.
func (s Set) Find(text string) (Declaration, bool) {
	slug := strings.ToLower(strings.TrimSpace(text))
	for _, fits := range []func(Declaration) bool{
		func(d Declaration) bool { return d.Slug == slug && !d.Archived && d.applies(s.scope.Type) },
		func(d Declaration) bool { return d.Slug == slug && !d.Archived },
		func(d Declaration) bool { return d.ID == text },
		func(d Declaration) bool { return d.Slug == slug },
	} {
		if at := slices.IndexFunc(s.fields, fits); at >= 0 {
			return s.fields[at], true
		}
	}
	return Declaration{}, false
}

// NoField refuses a text that names no field. argument is the one that it came in.
func (s Set) NoField(argument, text string) error {
	var slugs []string
	for _, d := range s.Fields() {
		slugs = append(slugs, d.Slug)
	}
	hint := "there are none here"
	if near := nearest.Few(text, slugs, 1); len(near) > 0 {
		hint = "did you mean " + near[0] + "? describe_project lists them"
	} else if len(slugs) > 0 {
		hint = "there are " + some(slugs)
	}
	return fault.New(fault.Invalid, "there is no custom field %q; %s", text, hint).WithField(argument)
}

// Missing refuses values that lack a required field, naming all that they lack.
func (s Set) Missing(values map[string]any) error {
	var lacking []string
	for _, d := range s.Fields() {
		if _, ok := values[d.ID]; !ok && d.demanded(s.scope.Subtask) {
			lacking = append(lacking, d.Slug)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "fields must have %s, which %s demanded here: describe_project says what to put there", strings.Join(lacking, ", "),
		is(len(lacking))).WithField("fields." + lacking[0])
}

func is(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// maxNamed is how many names a sentence lists.
const maxNamed = 20

func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxNamed], ", ") + " and more"
}
