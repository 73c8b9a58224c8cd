package label

import (
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
)

// Checked is what an item's labels come to.
type Checked struct {
	// Slugs are the item's labels, in the order wanted, each once.
	Slugs []string
	// Create are the labels to declare first.
	Create   []Label
	Warnings []string
}

// Check answers the labels of an item that is to have those wanted, each by slug or text. An archived label only stays where it is, so
// current are the slugs that the item has. A label that is not declared is refused with the nearest one, or declared when createMissing says so.
func Check(declared []Label, current, wanted []string, createMissing bool) (Checked, error) {
	var c Checked
	all := slices.Clone(declared)
	for _, text := range wanted {
		at := find(all, text)
		switch {
		case at < 0 && !createMissing:
			return Checked{}, undeclared(declared, text)
		case at < 0:
			l, err := New("labels", text, text)
			if err != nil {
				return Checked{}, err
			}
			c.Warnings = append(c.Warnings, typo(all, l.Slug)...)
			c.Create = append(c.Create, l)
			all = append(all, l)
			at = len(all) - 1
		case all[at].Archived && !slices.Contains(current, all[at].Slug):
			return Checked{}, fault.New(fault.Invalid, "label %s is archived: no item takes it any more", all[at].Slug).WithField("labels")
		}
		if slug := all[at].Slug; !slices.Contains(c.Slugs, slug) {
			c.Slugs = append(c.Slugs, slug)
		}
	}
	if len(c.Slugs) > MaxPerItem {
		return Checked{}, fault.New(fault.Invalid, "labels names %d; an item has %d at most", len(c.Slugs), MaxPerItem).WithField("labels")
	}
	return c, full(all, "labels_create_missing", len(c.Create))
}

func undeclared(declared []Label, text string) error {
	return fault.New(fault.Invalid, "label %q is not declared in this project: %s; labels_create_missing declares it", text, hint(declared, text)).
		WithField("labels")
}

// hint says which labels there are, the nearest one alone when one is near.
func hint(declared []Label, text string) string {
	live := slugs(declared)
	if near := nearest.Few(Slug(text), live, 1); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	if len(live) == 0 {
		return "it has none yet"
	}
	shown := live[:min(len(live), 20)]
	if len(live) > len(shown) {
		return "there are " + strings.Join(shown, ", ") + " and more, which describe_project lists"
	}
	return "there are " + strings.Join(shown, ", ")
}

func slugs(declared []Label) []string {
	var live []string
	for _, l := range declared {
		if !l.Archived {
			live = append(live, l.Slug)
		}
	}
	return live
}

// full refuses labels beyond what a project may have; archived ones count, as items keep them.
func full(all []Label, argument string, added int) error {
	if added > 0 && len(all) > MaxPerProject {
		return fault.New(fault.Invalid, "the project would have %d labels; it may have %d, archived ones among them", len(all), MaxPerProject).WithField(argument)
	}
	return nil
}
