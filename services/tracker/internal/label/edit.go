package label

import (
	"fmt"
	"slices"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Edit is a change of a project's labels.
type Edit struct {
	// Add declares; a label that is there already is no mistake, and stays as it is.
	Add []Label
	// Rename gives new texts by slug.
	Rename []Rename
	// Archive are slugs.
	Archive []string
}

// Rename gives a label a new text.
type Rename struct{ Slug, Label string }

// Edited is what an edit comes to.
type Edited struct {
	// Added and Changed are the labels to write, as they will be.
	Added, Changed []Label
	Warnings       []string
}

// Apply answers what an edit comes to, or refuses all of it.
func (e Edit) Apply(declared []Label) (Edited, error) {
	all := slices.Clone(declared)
	var out Edited
	for n, l := range e.Add {
		argument := fmt.Sprintf("tags_add[%d].slug", n)
		if at := slices.IndexFunc(all, func(other Label) bool { return other.Slug == l.Slug }); at >= 0 {
			if all[at].Archived {
				return Edited{}, fault.New(fault.Invalid, "label %s is archived and stays so: declare another one", l.Slug).WithField(argument)
			}
			if all[at].Label != l.Label {
				out.Warnings = append(out.Warnings, fmt.Sprintf("label %s is there already and reads %q: tags_rename changes that", l.Slug, all[at].Label))
			}
			continue
		}
		if at := collides(all, l); at >= 0 {
			return Edited{}, taken(l, all[at]).WithField(argument)
		}
		out.Warnings = append(out.Warnings, typo(all, l.Slug)...)
		out.Added = append(out.Added, l)
		all = append(all, l)
	}
	if err := full(all, "tags_add", len(out.Added)); err != nil {
		return Edited{}, err
	}
	changed := map[int]bool{}
	if err := e.rename(all, changed); err != nil {
		return Edited{}, err
	}
	if err := e.archive(all, changed); err != nil {
		return Edited{}, err
	}
	for at, l := range all {
		switch {
		case at >= len(declared):
			out.Added[at-len(declared)] = l
		case changed[at]:
			out.Changed = append(out.Changed, l)
		}
	}
	return out, nil
}

func (e Edit) rename(all []Label, changed map[int]bool) error {
	for n, r := range e.Rename {
		argument := fmt.Sprintf("tags_rename[%d].slug", n)
		at := find(all, r.Slug)
		if at < 0 {
			return unknown(all, argument, r.Slug)
		}
		to, err := New(fmt.Sprintf("tags_rename[%d].label", n), all[at].Slug, r.Label)
		if err != nil {
			return err
		}
		if other := collides(all, to); other >= 0 {
			return taken(to, all[other]).WithField(argument)
		}
		changed[at] = changed[at] || all[at].Label != to.Label
		all[at].Label = to.Label
	}
	return nil
}

func (e Edit) archive(all []Label, changed map[int]bool) error {
	for n, slug := range e.Archive {
		at := find(all, slug)
		if at < 0 {
			return unknown(all, fmt.Sprintf("tags_archive[%d]", n), slug)
		}
		changed[at] = changed[at] || !all[at].Archived
		all[at].Archived = true
	}
	return nil
}

func unknown(all []Label, argument, text string) error {
	return fault.New(fault.Invalid, "there is no label %q in this project: %s", text, hint(all, text)).WithField(argument)
}

func taken(l, other Label) *fault.Error {
	return fault.New(fault.Invalid, "label %s would read %q, which would be taken for %s (%q): use that one, or say it differently", l.Slug, l.Label, other.Slug, other.Label)
}
