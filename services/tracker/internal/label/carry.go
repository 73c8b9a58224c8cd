package label

import (
	"slices"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Carry answers the labels that a project has to declare so that it can take items with some slugs from another one. What it has under
// the same slug serves as it is. A label that reads like one there under another slug is refused, naming both: the items would carry
// something else than they say.
func Carry(declared, there []Label, used []string, project string) ([]Label, error) {
	var carried []Label
	for _, l := range declared {
		if !slices.Contains(used, l.Slug) || slices.ContainsFunc(there, func(t Label) bool { return t.Slug == l.Slug }) {
			continue
		}
		for _, t := range there {
			if t.Name() == l.Name() || t.Slug == l.Name() || t.Name() == l.Slug {
				return nil, fault.New(fault.Invalid, "the label %q (%s) reads like %q (%s) of project %s: rename one of them first", l.Label, l.Slug, t.Label, t.Slug, project).
					WithField("project").WithReason("LABEL_CONFLICT")
			}
		}
		l.Archived = false
		carried = append(carried, l)
	}
	if all := len(there) + len(carried); len(carried) > 0 && all > MaxPerProject {
		return nil, fault.New(fault.Invalid, "project %s would have %d labels; it may have %d, archived ones among them", project, all, MaxPerProject).WithField("project")
	}
	return carried, nil
}
