package query

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Params prints the query: what Parse reads as the same one. Defaults are left out.
func (q *Query) Params() Params {
	p := Params{}
	if q.Project != "" {
		p["container"] = "project:" + q.Project
	}
	for _, c := range q.Where {
		p[c.Key] = c.Value()
	}
	if len(q.Any) > 0 {
		sets := make([]map[string]string, 0, len(q.Any))
		for _, alternative := range q.Any {
			set := map[string]string{}
			for _, c := range alternative {
				set[c.Key] = c.Value()
			}
			sets = append(sets, set)
		}
		raw, err := json.Marshal(sets)
		if err != nil {
			panic(err) // texts can always be written
		}
		p["any"] = string(raw)
	}
	if q.Removed {
		p["removed"] = "true"
	}
	if q.Subtasks != "" {
		p["subtasks"] = q.Subtasks
	}
	if q.Removed && q.Sort != trashOrder() || !q.Removed && q.Sort != usualOrder() {
		p["sort"] = q.Sort.String()
	}
	if q.GroupBy != "" {
		p["group_by"] = q.GroupBy
	}
	if q.Group != nil {
		p["group"] = *q.Group
	}
	if q.GroupLimit != DefaultGroups {
		p["group_limit"] = strconv.Itoa(q.GroupLimit)
	}
	if len(q.Totals) > 0 {
		numbers := make([]string, 0, len(q.Totals))
		for _, t := range q.Totals {
			numbers = append(numbers, t.String())
		}
		p["totals"] = strings.Join(numbers, ",")
	}
	if q.Limit != DefaultLimit {
		p["limit"] = strconv.Itoa(q.Limit)
	}
	return p
}

// Value prints what a condition asks for, as it is parsed.
func (c Condition) Value() string {
	switch {
	case Slug(c.Key) != "" && c.Operand == "":
		return string(c.Op)
	case Slug(c.Key) != "" && c.Op == "":
		return c.Operand
	case Slug(c.Key) != "":
		return string(c.Op) + ":" + c.Operand
	case c.When != nil:
		return c.When.String()
	default:
		return strings.Join(c.Values, ",")
	}
}
