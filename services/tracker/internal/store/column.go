package store

import (
	"fmt"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// column is how a grouped list is parted.
type column struct {
	// closed are all the values there can be, drawn whether or not an item has them; nil when the items say which there are.
	closed []string
	// value writes what an item's value is, as text, empty for none; for columns that are not closed.
	value func(s *statement) string
	// set writes the lateral rows of an item that may be in several groups; empty for one in a single group.
	set string
	// overlaps: an item may be in more than one group.
	overlaps bool
	// ordered groups come in the order of their values, others by how many items they have.
	ordered bool
	// only narrows to the items of one group.
	only func(s *statement, value string)
}

// columnOfQuery answers how a query is parted.
func columnOfQuery(q *query.Query) column {
	keyed := func(key, none string) func(*statement, string) {
		return func(s *statement, value string) {
			if value == "" {
				value = none
			}
			s.require(query.Condition{Key: key, Values: []string{value}})
		}
	}
	switch q.GroupBy {
	case "status":
		return column{closed: query.Statuses(), only: keyed("status", "")}
	case "status_group":
		return column{closed: query.StatusGroups(), only: keyed("status_group", "")}
	case "priority":
		return column{closed: query.Priorities(), only: keyed("priority", "none")}
	case "tag":
		return column{set: "unnest(i.labels)", overlaps: true, only: keyed("tag", "none")}
	case "project":
		return column{value: plain("i.project"), only: func(s *statement, value string) { s.add("i.project = " + s.arg(value)) }}
	case "parent":
		return column{value: plain("coalesce((select p.project || '-' || p.number from items p where p.id = i.parent), '')"), only: func(s *statement, value string) {
			project, number, ok := splitKey(value)
			if !ok {
				s.add("i.parent is null")
				return
			}
			s.add(fmt.Sprintf("i.parent = (select id from items where project = %s and number = %s)", s.arg(project), s.arg(number)))
		}}
	case "due:day", "due:week", "start:week":
		return days(q.GroupBy)
	case "due:bucket":
		return column{closed: buckets(), only: func(s *statement, value string) { s.bucket(value) }}
	}
	if q.GroupField != nil {
		return fieldColumn(*q.GroupField)
	}
	none := ""
	if q.GroupBy == "assignee" {
		none = "nobody"
	}
	return column{value: plain(columnOf(q.GroupBy)), only: keyed(q.GroupBy, none)}
}

func plain(sql string) func(*statement) string { return func(*statement) string { return sql } }

// days parts by a date's day or week, which is named by its Monday.
func days(grouping string) column {
	key := grouping[:len(grouping)-len(":day")]
	week := grouping != "due:day"
	if week {
		key = grouping[:len(grouping)-len(":week")]
	}
	return column{
		ordered: true,
		value: func(s *statement) string {
			shown := fmt.Sprintf("i.%[1]s_at at time zone case when i.%[1]s_all_day then 'UTC' else %s end", key, s.arg(s.now.Location().String()))
			if week {
				shown = "date_trunc('week', " + shown + ")"
			}
			return "coalesce(to_char(" + shown + ", 'YYYY-MM-DD'), '')"
		},
		only: func(s *statement, value string) {
			w := query.When{Word: "none"}
			if value != "" {
				w = query.When{Op: "eq", From: query.Anchor{Base: value}}
				if week {
					w = query.When{Op: "range", From: query.Anchor{Base: value}, To: query.Anchor{Base: value, Offset: 6, Unit: 'd'}}
				}
			}
			s.require(query.Condition{Key: key, When: &w})
		},
	}
}

// buckets part what is due by how soon. They do not overlap: what is overdue is in no other, and what was due and is finished is earlier.
func buckets() []string {
	return []string{"overdue", "today", "thisweek", "nextweek", "later", "earlier", ""}
}

func (s *statement) bucket(value string) {
	due := func(text string) {
		w, err := query.ParseWhen("due", text)
		if err != nil {
			panic(err) // the texts are below
		}
		s.require(query.Condition{Key: "due", When: &w})
	}
	switch value {
	case "":
		due("none")
		return
	case "overdue":
		due("overdue")
		return
	case "today":
		due("today")
	case "thisweek":
		due("range:tomorrow..eow")
	case "nextweek":
		due("range:sow+1w..eow+1w")
	case "later":
		due("gt:eow+1w")
	case "earlier":
		due("lt:today")
	}
	s.add("not " + s.moment("i.due", query.When{Word: "overdue"}.Span(s.now)))
}

// fieldColumn parts by the values of a custom field. Options and truths are drawn in full.
func fieldColumn(d field.Declaration) column {
	c := column{
		value: func(s *statement) string { return "coalesce(i.fields ->> " + s.arg(d.ID) + ", '')" },
		only: func(s *statement, value string) {
			if value == "" {
				s.add("not " + has(s.arg(d.ID)))
				return
			}
			if o, ok := d.Option(value); ok {
				value = o.ID
			}
			s.require(query.Condition{Key: "f." + d.Slug, Op: field.Eq, Values: []string{value}, Field: &d})
		},
	}
	switch d.Kind() {
	case field.Choices:
		for _, o := range d.Options {
			c.closed = append(c.closed, o.Slug)
		}
		c.closed, c.overlaps = append(c.closed, ""), d.Type == field.Labels || d.Multi
	case field.Truths:
		c.closed = []string{"true", "false", ""}
	default: // the items say which there are
	}
	return c
}
