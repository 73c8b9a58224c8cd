package store

import (
	"maps"
	"strings"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Unhidden answers what changed as an agent may see it. History tells all custom fields of a change together, as `slug=value`; where one
// of them is hidden from agents, none of them is told.
func (c Catalogue) Unhidden(fields map[string]item.Field) map[string]item.Field {
	told, changed := fields["fields"]
	if !changed {
		return fields
	}
	for _, slug := range c.hiddenSlugs() {
		if strings.Contains(told.From, slug+"=") || strings.Contains(told.To, slug+"=") {
			out := maps.Clone(fields)
			out["fields"] = item.Field{To: "fields of which agents are not shown all"}
			return out
		}
	}
	return fields
}

func (c Catalogue) hiddenSlugs() []string {
	var slugs []string
	for _, d := range c.Workspace {
		if d.HideFromAgents {
			slugs = append(slugs, d.Slug)
		}
	}
	for _, d := range c.Own {
		if d.HideFromAgents {
			slugs = append(slugs, d.Slug)
		}
	}
	return slugs
}
