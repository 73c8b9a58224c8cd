package query

import (
	"maps"
	"slices"
)

// presets are the usual questions.
func presets() map[string]Params {
	return map[string]Params{
		"my_queue":   {"assignee": "me", "status_group": "not_started,active", "sort": "-priority"},
		"priorities": {"priorities": "me", "status_group": "not_started,active", "sort": "priorities"},
		"triage":     {"assignee": "nobody", "status_group": "not_started,active", "sort": "created"},
		"blocked":    {"blocked": "true", "status_group": "not_started,active"},
		"overdue":    {"due": "overdue", "sort": "due"},
		"ready":      {"ready": "true", "sort": "-priority"},
	}
}

// Preset answers the query that a usual question is.
func Preset(name string) (Params, error) {
	if name == "" {
		return Params{}, nil
	}
	all := presets()
	p, ok := all[name]
	if !ok {
		return nil, unknown("preset", "preset", name, slices.Sorted(maps.Keys(all)))
	}
	return p, nil
}

// rivals reports whether two keys say the same thing, be it in other words: a layer that gives one takes the other's place.
func rivals(a, b string) bool {
	which := []string{"status", "status_group", "show_closed"}
	return a == b || slices.Contains(which, a) && slices.Contains(which, b)
}

// Merge lays queries over one another, the strongest last: each key counts as the last layer that gives it says.
func Merge(layers ...Params) Params {
	merged := Params{}
	for _, layer := range layers {
		for name := range layer {
			canonical := Canonical(name)
			for other := range merged {
				if rivals(canonical, Canonical(other)) {
					delete(merged, other)
				}
			}
		}
		maps.Copy(merged, layer)
	}
	return merged
}
