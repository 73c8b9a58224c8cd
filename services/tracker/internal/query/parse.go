package query

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse reads a query. What it does not understand it refuses, naming the key as it was given; nothing is left out.
func Parse(params Params) (*Query, error) {
	q := &Query{Limit: DefaultLimit, GroupLimit: DefaultGroups, Sort: usualOrder()}
	given := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		canonical := Canonical(name)
		if other, twice := given[canonical]; twice {
			return nil, invalid(name, "%s and %s say the same: give one of them", other, name)
		}
		given[canonical] = name
		if err := q.set(name, params[name]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(q.Where, byKey)
	if _, sorted := given["sort"]; q.Removed && !sorted {
		q.Sort = trashOrder()
	}
	return q, q.settle()
}

func usualOrder() Sort { return Sort{Key: "updated", Descending: true} }

// trashOrder is by removal time, the latest first.
func trashOrder() Sort { return Sort{Key: "removed", Descending: true} }

func byKey(a, b Condition) int { return strings.Compare(a.Key, b.Key) }

// set takes one key.
func (q *Query) set(name, value string) error {
	canonical := Canonical(name)
	if k, known := keyOf(canonical); known && k.kind == shape {
		return q.shape(name, canonical, value)
	}
	c, held, err := condition(name, value)
	if err != nil {
		return err
	}
	if held {
		q.Where = append(q.Where, c)
	}
	return nil
}

// condition reads a key that says what must hold; held is false when it says nothing.
func condition(name, value string) (c Condition, held bool, err error) {
	canonical := Canonical(name)
	if err := sound(name, value); err != nil {
		return Condition{}, false, err
	}
	if Slug(canonical) != "" {
		c, err = fieldCondition(canonical, value)
		return c, err == nil, err
	}
	k, known := keyOf(canonical)
	if !known || k.kind == shape {
		return Condition{}, false, unknown(name, "key", name, Keys())
	}
	c = Condition{Key: canonical}
	if name == "open_only" {
		if value == "false" {
			return c, false, nil
		}
		c.Values = StatusGroups()[:2]
		return c, value == "true", oneOf(name, "value of open_only", value, truths())
	}
	switch k.kind {
	case text:
		if strings.TrimSpace(value) == "" {
			return c, false, invalid(name, "%s must say something", name)
		}
		c.Values = []string{value}
	case words, closed:
		if c.Values, err = members(name, value); err != nil {
			return c, false, err
		}
		for _, member := range c.Values {
			if k.kind == closed {
				if err := oneOf(name, canonical, member, k.set); err != nil {
					return c, false, err
				}
			}
		}
	case word:
		if value = strings.TrimSpace(value); value == "" {
			return c, false, invalid(name, "%s must name one", name)
		}
		c.Values = []string{value}
	case truth:
		c.Values = []string{value}
		return c, true, oneOf(name, "value of "+name, value, truths())
	case one: // show_closed
		c.Values = []string{value}
		return c, true, showClosed(name, value)
	case when:
		w, err := ParseWhen(name, value)
		c.When = &w
		return c, err == nil, err
	case shape: // refused above
	}
	return c, true, nil
}

// sound refuses what no value may hold.
func sound(name, value string) error {
	switch {
	case len(value) > MaxMembers*MaxValueBytes:
		return invalid(name, "%s is %d bytes long, and at most %d are taken", name, len(value), MaxMembers*MaxValueBytes)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return invalid(name, "%s holds bytes that are no text", name)
	}
	return nil
}

// members parts a list, each member once.
func members(name, value string) ([]string, error) {
	var list []string
	for member := range strings.SplitSeq(value, ",") {
		member = strings.TrimSpace(member)
		if member == "" {
			return nil, invalid(name, "%s has an empty member: values are parted by single commas", name)
		}
		if len(member) > MaxValueBytes {
			return nil, invalid(name, "%s has a value of %d bytes, and at most %d are taken", name, len(member), MaxValueBytes)
		}
		if !slices.Contains(list, member) {
			list = append(list, member)
		}
	}
	if len(list) > MaxMembers {
		return nil, invalid(name, "%s has %d values, and at most %d are taken", name, len(list), MaxMembers)
	}
	return list, nil
}

func oneOf(field, what, given string, set []string) error {
	if slices.Contains(set, given) {
		return nil
	}
	return unknown(field, what, given, set)
}

func showClosed(name, value string) error {
	if value == "true" || value == "false" {
		return nil
	}
	if _, _, ok := Recent(value); ok {
		return nil
	}
	return invalid(name, "show_closed is true, false, or recent: and for how long, such as recent:14d, not %q", value)
}

// Recent reads recent:14d: how long ago, in which unit.
func Recent(value string) (n int, unit byte, ok bool) {
	since, found := strings.CutPrefix(value, "recent:")
	if !found {
		return 0, 0, false
	}
	n, unit, ok = parseOffset("-" + since)
	return -n, unit, ok && n != 0
}

// shape takes a key that says how to show what is found, or where to look.
func (q *Query) shape(name, canonical, value string) error {
	if canonical != "any" {
		if err := sound(name, value); err != nil {
			return err
		}
	}
	var err error
	switch canonical {
	case "container":
		return q.container(name, value)
	case "removed":
		q.Removed = value == "true"
		return oneOf(name, "value of removed", value, truths())
	case "subtasks":
		q.Subtasks = value
		return oneOf(name, "value of subtasks", value, []string{"collapsed", "expanded", "separate"})
	case "any":
		q.Any, err = alternatives(name, value)
	case "sort":
		q.Sort, err = ParseSort(name, value)
	case "group_by":
		q.GroupBy = value
		return grouping(name, value)
	case "group":
		q.Group = &value
	case "group_limit":
		q.GroupLimit, err = number(name, value, MaxGroupLimit)
	case "limit":
		q.Limit, err = number(name, value, MaxLimit)
	case "totals":
		q.Totals, err = totals(name, value)
	}
	return err
}

func (q *Query) container(name, value string) error {
	project, scoped := strings.CutPrefix(value, "project:")
	switch {
	case name == "project":
		project, scoped = value, true
	case value == "workspace":
		return nil
	}
	if project = strings.ToUpper(strings.TrimSpace(project)); !scoped || project == "" || len(project) > 32 || strings.ContainsAny(project, ":, ") {
		return invalid(name, "%s is workspace or project: and a project's key, not %q", name, value)
	}
	q.Project = project
	return nil
}

func number(name, value string, limit int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > limit {
		return 0, invalid(name, "%s is a whole number from 1 to %d, not %q", name, limit, value)
	}
	return n, nil
}

// alternatives reads any: a JSON list of objects with the same keys and text values as a query's conditions.
func alternatives(name, value string) ([][]Condition, error) {
	if len(value) > maxAnyBytes {
		return nil, invalid(name, "%s is %d bytes long, and at most %d are taken", name, len(value), maxAnyBytes)
	}
	var sets []map[string]string
	decoder := json.NewDecoder(strings.NewReader(value))
	if err := decoder.Decode(&sets); err != nil || decoder.More() {
		return nil, invalid(name, `any is a list of objects with text values, such as [{"assignee": "me"}, {"flag": "cycle"}]`)
	}
	if len(sets) == 0 || len(sets) > MaxAlternatives {
		return nil, invalid(name, "any has 1 to %d alternatives, not %d", MaxAlternatives, len(sets))
	}
	var all [][]Condition
	for _, set := range sets {
		var alternative []Condition
		for _, inner := range slices.Sorted(maps.Keys(set)) {
			if k, known := keyOf(Canonical(inner)); known && k.kind == shape {
				return nil, invalid(name, "%s cannot stand within any: it goes beside it", inner)
			}
			c, held, err := condition(inner, set[inner])
			if err != nil {
				return nil, err
			}
			if held && slices.ContainsFunc(alternative, func(other Condition) bool { return other.Key == c.Key }) {
				return nil, invalid(name, "an alternative of any says %s twice", c.Key)
			}
			if held {
				alternative = append(alternative, c)
			}
		}
		if len(alternative) == 0 {
			return nil, invalid(name, "an alternative of any says nothing, so everything would fit")
		}
		slices.SortFunc(alternative, byKey)
		all = append(all, alternative)
	}
	return all, nil
}

// settle checks what keys say together.
func (q *Query) settle() error {
	_, listed := q.Find("priorities")
	switch {
	case q.Sort.Key == "priorities" && !listed:
		return invalid("sort", "sort=priorities is the order of somebody's priorities: say whose with priorities=<handle>")
	case q.Sort.Key == "rank" && q.Project == "":
		return invalid("sort", "rank is a project's own order: name the project, or sort by something else")
	case q.Removed != (q.Sort.Key == "removed"):
		return invalid("sort", "the trash is ordered by when things were removed, with sort=removed or -removed, and nothing else is")
	case q.Group != nil && q.GroupBy == "":
		return invalid("group", "group names a column of group_by, and group_by is not given")
	case q.Removed && q.GroupBy != "":
		return invalid("group_by", "the trash is a plain list: leave out group_by or removed")
	}
	return nil
}
