package field

import (
	"slices"
	"strings"
)

// show is a kept value as arguments name it: options by slug, one text where the field takes one option. A value that is older than its
// declaration is shown as it is kept.
func (d Declaration) show(kept any) any {
	ids, ok := texts(kept)
	if !ok || !d.Chosen() {
		return kept
	}
	slugs := make([]any, 0, len(ids))
	for _, id := range ids {
		slugs = append(slugs, d.slugOf(id))
	}
	if len(slugs) == 1 && !d.several() {
		return slugs[0]
	}
	return slugs
}

func (d Declaration) slugOf(option string) string {
	if at := slices.IndexFunc(d.Options, func(o Option) bool { return o.ID == option }); at >= 0 {
		return d.Options[at].Slug
	}
	return option
}

// Reading is a value of an item and what is to be said of it.
type Reading struct {
	Declaration
	// Value is what arguments would give: a text, a number, a boolean or a list of texts.
	Value any
	// Foreign: the declaration does not apply to this type of work. Undeclared: there is none; then only the id is known.
	Foreign, Undeclared bool
}

// Read answers an item's values in the order of [Set.Fields], then what those leave out: archived and foreign ones, then undeclared ones
// by id. Agents are not told of those: what nothing declares may have been hidden from them where it was declared.
func (s Set) Read(values map[string]any) []Reading {
	var readings []Reading
	seen := make(map[string]bool, len(values))
	add := func(d Declaration) {
		if kept, ok := values[d.ID]; ok && !seen[d.ID] {
			seen[d.ID] = true
			readings = append(readings, Reading{Declaration: d, Value: d.show(kept), Foreign: !d.applies(s.scope.Type)})
		}
	}
	for _, d := range s.Fields() {
		add(d)
	}
	for _, d := range s.fields {
		add(d)
	}
	declared := len(readings)
	for id, kept := range values {
		if !seen[id] && !s.forAgents {
			readings = append(readings, Reading{Declaration: Declaration{ID: id, Slug: id, Name: id}, Value: kept, Undeclared: true})
		}
	}
	slices.SortFunc(readings[declared:], func(a, b Reading) int { return strings.Compare(a.ID, b.ID) })
	return readings
}

// BySlug answers an item's values by slug, without those that nothing declares. Of two fields with one slug the one in force is shown.
func (s Set) BySlug(values map[string]any) map[string]any {
	if len(values) == 0 {
		return nil
	}
	shown := make(map[string]any, len(values))
	for _, r := range s.Read(values) {
		if _, taken := shown[r.Slug]; !taken && !r.Undeclared {
			shown[r.Slug] = r.Value
		}
	}
	return shown
}
