package query

import (
	"maps"
	"slices"
)

// presets are the usual questions.
var presets = map[string]Params{
	"my_queue":   {"assignee": "me", "status_group": "not_started,active", "sort": "-priority"},
	"priorities": {"priorities": "me", "status_group": "not_started,active", "sort": "priorities"},
	"triage":     {"assignee": "nobody", "status_group": "not_started,active", "sort": "created"},
	"blocked":    {"blocked": "true", "status_group": "not_started,active"},
	"overdue":    {"due": "overdue", "sort": "due"},
	"ready":      {"ready": "true", "sort": "-priority"},
}

// Preset answers the query that a usual question is.
func Preset(name string) (Params, error) {
	if name == "" {
		return Params{}, nil
	}
	p, ok := presets[name]
	if !ok {
		return nil, unknown("preset", "preset", name, slices.Sorted(maps.Keys(presets)))
	}
	return maps.Clone(p), nil
}

// rivals are keys that say the same thing in other words: a layer that gives one takes the other's place too.
var rivals = map[string][]string{
	"status":       {"status_group", "show_closed"},
	"status_group": {"status", "show_closed"},
	"show_closed":  {"status", "status_group"},
}

// Merge lays queries over one another, the strongest last: each key counts as the last layer that gives it says.
func Merge(layers ...Params) Params {
	merged := Params{}
	for _, layer := range layers {
		for name := range layer {
			canonical := Canonical(name)
			for other := range merged {
				if c := Canonical(other); c == canonical || slices.Contains(rivals[canonical], c) {
					delete(merged, other)
				}
			}
		}
		maps.Copy(merged, layer)
	}
	return merged
}
