package store

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Unhidden answers what changed as an agent may see it. History tells all custom fields of a change together, as `slug=value`; where one
// of them was hidden from agents or is so now, none of them is told. In a company that hides fields, that holds for a slug that no field has
// any more, too: it may have been a hidden one's.
func (c Catalogue) Unhidden(fields map[string]item.Field) map[string]item.Field {
	told, changed := fields["fields"]
	if !changed || !told.Hidden && !c.hides(told.From) && !c.hides(told.To) {
		return fields
	}
	out := maps.Clone(fields)
	out["fields"] = told.Concealed()
	return out
}

var toldSlug = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*=`)

// hides reports whether one side of a change may tell of a hidden field.
func (c Catalogue) hides(side string) bool {
	hidden := func(d field.Declaration) bool { return d.HideFromAgents }
	if !slices.ContainsFunc(c.Workspace, hidden) && !slices.ContainsFunc(c.Own, hidden) {
		return false
	}
	var open []string
	for _, d := range c.Fields(field.Scope{}).ForAgents().Declared() {
		open = append(open, d.Slug+"=")
	}
	for _, member := range strings.Split(side, ", ") {
		if slug := toldSlug.FindString(member); slug != "" && !slices.Contains(open, slug) {
			return true
		}
	}
	return false
}
