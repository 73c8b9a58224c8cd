package query

import (
	"slices"
	"strings"
)

func sorts() []string {
	return []string{
		"updated", "created", "due", "start", "priority", "title", "estimate", "points", "reopens", "status_entered", "rank", "priorities", "removed",
	}
}

func groupings() []string {
	return []string{
		"status", "status_group", "priority", "assignee", "type", "tag", "project", "unit", "routing_unit", "parent", "due:day", "due:week", "due:bucket",
		"start:week",
	}
}

func functions() []string { return []string{"sum", "avg", "min", "max", "median", "p90"} }

// summed are the numbers that every item has.
func summed() []string { return []string{"estimate", "points"} }

// ParseSort reads an order; `-` before it reverses.
func ParseSort(name, value string) (Sort, error) {
	key, descending := strings.CutPrefix(value, "-")
	switch {
	case key == "spend":
		return Sort{}, invalid(name, "spend is not kept with items, so nothing can be sorted by it: what turns cost is shown with the turns")
	case fieldKey(key) || slices.Contains(sorts(), key):
		return Sort{Key: key, Descending: descending}, nil
	default:
		return Sort{}, unknown(name, "order", value, append(sorts(), "f.<slug>"))
	}
}

func grouping(name, value string) error {
	if fieldKey(value) || slices.Contains(groupings(), value) {
		return nil
	}
	return unknown(name, "column to group by", value, append(groupings(), "f.<slug>"))
}

func totals(name, value string) ([]Total, error) {
	list, err := members(name, value)
	if err != nil {
		return nil, err
	}
	if len(list) > MaxTotals {
		return nil, invalid(name, "%s has %d numbers, and at most %d are taken", name, len(list), MaxTotals)
	}
	var all []Total
	for _, member := range list {
		function, of, parted := strings.Cut(member, ":")
		switch {
		case member == "count":
		case !parted || !slices.Contains(functions(), function):
			return nil, invalid(name, "%s: %q is no number to add up: write count, or one of %s with a colon and what, such as sum:points", name, member,
				strings.Join(functions(), ", "))
		case !fieldKey(of) && !slices.Contains(summed(), of):
			return nil, unknown(name, "number of an item", of, append(summed(), "f.<slug>"))
		}
		all = append(all, Total{Func: function, Of: of})
	}
	return all, nil
}

// fieldKey reports whether a key is f. and a slug.
func fieldKey(key string) bool {
	slug := Slug(key)
	return slug != "" && len(slug) <= 64 && strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
