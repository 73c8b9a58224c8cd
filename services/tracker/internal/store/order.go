package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// phase is a part of a list that is walked along one order: items with a value, then those without.
type phase struct {
	// only is what the phase's items have, empty for all.
	only string
	// expr is what they are sorted by, before their id, and kind its type in SQL.
	expr, kind string
	descending bool
	// grouped: an index leads with the status group, so that each group is walked apart and all are merged.
	grouped bool
	// by writes only and expr where they need arguments; nil where they need none.
	by func(*statement) (only, expr string)
}

// order answers the part of a list that is sorted by a key, and what items have that lack the value; absent is empty when none can.
func order(key string) (p phase, absent string) {
	switch key {
	case "created":
		return phase{expr: "i.created_at", kind: "timestamptz", grouped: true}, ""
	case "status_entered":
		return phase{expr: "i.status_entered_at", kind: "timestamptz", grouped: true}, ""
	case "rank":
		return phase{expr: "i.rank", kind: "text", grouped: true}, ""
	case "title":
		return phase{expr: `(lower(i.title) collate "C")`, kind: "text"}, ""
	case "removed":
		return phase{expr: "i.removed_at", kind: "timestamptz"}, ""
	case "due":
		return phase{only: "i.due_at is not null", expr: "i.due_at", kind: "timestamptz", grouped: true}, "i.due_at is null"
	case "start":
		return phase{only: "i.start_at is not null", expr: "i.start_at", kind: "timestamptz"}, "i.start_at is null"
	case "priority":
		return phase{only: "i.priority > 0", expr: "i.priority", kind: "smallint", grouped: true}, "i.priority = 0"
	case "estimate":
		return phase{only: "i.estimate_minutes is not null", expr: "i.estimate_minutes", kind: "int"}, "i.estimate_minutes is null"
	case "points":
		return phase{only: "i.points is not null", expr: "i.points", kind: "double precision"}, "i.points is null"
	case "reopens":
		return phase{only: "i.reopens > 0", expr: "i.reopens", kind: "int"}, "i.reopens = 0"
	default: // updated
		return phase{expr: "i.updated_at", kind: "timestamptz", grouped: true}, ""
	}
}

// phases answers the parts of a list in their order. Items without the value come last in both directions, the newest first; that
// something was never reopened is a value, the least.
func phases(q *query.Query) []phase {
	newest := phase{expr: "i.created_at", kind: "timestamptz", descending: true, grouped: true}
	if q.Sort.Field != nil {
		return fieldPhases(*q.Sort.Field, q.Sort.Descending, newest)
	}
	if q.Sort.Key == "priorities" {
		owner, _ := q.Find("priorities")
		return []phase{{kind: "int", descending: q.Sort.Descending, by: func(s *statement) (string, string) {
			return "", "array_position((select priorities from persons where handle = " + s.arg(owner.Values[0]) + "), i.id)"
		}}}
	}
	with, absent := order(q.Sort.Key)
	with.descending, newest.only = q.Sort.Descending, absent
	if absent == "" {
		return []phase{with}
	}
	all := []phase{with, newest}
	if q.Sort.Key == "reopens" && !q.Sort.Descending {
		slices.Reverse(all)
	}
	return all
}

// fieldPhases sorts by a custom field: numbers as numbers, options as they are declared, all else as text.
func fieldPhases(d field.Declaration, descending bool, newest phase) []phase {
	with := phase{kind: "text", descending: descending}
	switch d.Kind() {
	case field.Amounts:
		with.kind = "numeric"
		with.by = func(s *statement) (string, string) {
			id := s.arg(d.ID)
			return has(id), "coalesce(" + amount(id) + ", 0)"
		}
	case field.Choices:
		options := make([]string, 0, len(d.Options))
		for _, o := range d.Options {
			options = append(options, o.ID)
		}
		with.kind = "int"
		with.by = func(s *statement) (string, string) {
			id := s.arg(d.ID)
			return has(id), fmt.Sprintf("coalesce(array_position(%s::text[], i.fields -> %s ->> 0), %d)", s.arg(options), id, len(options)+1)
		}
	default:
		with.by = func(s *statement) (string, string) {
			id := s.arg(d.ID)
			return has(id), `(lower(coalesce(i.fields ->> ` + id + `, '')) collate "C")`
		}
	}
	newest.by = func(s *statement) (string, string) { return "not " + has(s.arg(d.ID)), newest.expr }
	return []phase{with, newest}
}

// walk writes the walk along one phase: at most limit items after the cursor, nil for its beginning. Each row is what a list shows of an
// item, and then its place in the order as text.
func (s *statement) walk(p phase, cursor *Cursor, limit int) string {
	if p.by != nil {
		p.only, p.expr = p.by(s)
	}
	compare, direction := ">", "asc"
	if p.descending {
		compare, direction = "<", "desc"
	}
	parts := slices.Clone(s.parts)
	if p.only != "" {
		parts = append(parts, p.only)
	}
	if cursor != nil {
		parts = append(parts, fmt.Sprintf("(%s, i.id) %s (%s::text::%s, %s::uuid)", p.expr, compare, s.arg(cursor.At), p.kind, s.arg(cursor.ID)))
	}
	sorted := fmt.Sprintf(" order by %s %s, i.id %s limit %d", p.expr, direction, direction, limit)
	selected := fmt.Sprintf("select %s, octet_length(i.body), (%s)::text from ", columns, p.expr)
	if !p.grouped || len(s.groups) == 0 {
		all := &statement{parts: parts, groups: s.groups}
		return selected + "items i where " + all.where() + sorted
	}
	// Each walk ends by itself: the database plans a part of a union for all of its rows otherwise.
	walks := make([]string, 0, len(s.groups))
	for _, g := range s.groups {
		walks = append(walks, fmt.Sprintf("(select i.id, %s as place from items i where %s and i.status_group = %d%s)", p.expr, strings.Join(parts, " and "), g, sorted))
	}
	// What is shown is read of the page's items alone: what is passed over needs the index only.
	merged := fmt.Sprintf(" order by w.place %s, w.id %s", direction, direction)
	return fmt.Sprintf("%s(select w.id, w.place from (%s) w%s limit %d) w join items i on i.id = w.id%s",
		selected, strings.Join(walks, " union all "), merged, limit, merged)
}
