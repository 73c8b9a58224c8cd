package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// field is a condition on a custom field. What says that a value is not so holds for items without one too.
func (s *statement) field(c query.Condition) string {
	negated := slices.Contains([]field.Operator{field.Ne, field.NotIn, field.None, field.NotContains, field.Unset}, c.Op)
	asked := s.asked(c)
	if negated {
		return "not " + asked
	}
	return asked
}

// asked is a condition on a custom field without its negation.
func (s *statement) asked(c query.Condition) string {
	switch c.Op {
	case field.Eq, field.Ne, field.In, field.NotIn, field.Any, field.None, field.All:
		if c.When == nil {
			return s.held(c)
		}
	default: // below
	}
	id := s.arg(c.Field.ID)
	has, text := has(id), "(i.fields ->> "+id+")"
	bounds := map[field.Operator]string{field.Lt: "<", field.Lte: "<=", field.Gt: ">", field.Gte: ">="}
	switch {
	case c.When != nil:
		return s.days(c, has, text)
	case c.Op == field.IsSet || c.Op == field.Unset:
		return has
	case c.Op == field.Contains || c.Op == field.NotContains:
		return "(" + has + " and " + text + " ilike " + s.arg("%"+likeLiteral(c.Values[0])+"%") + ")"
	case c.Op == field.StartsWith:
		return "(" + has + " and " + text + " ilike " + s.arg(likeLiteral(c.Values[0])+"%") + ")"
	case c.Op == field.Range:
		return fmt.Sprintf("(%s and coalesce(%s between %s::text::numeric and %s::text::numeric, false))", has, amount(id), s.arg(c.Values[0]), s.arg(c.Values[1]))
	default:
		return fmt.Sprintf("(%s and coalesce(%s %s %s::text::numeric, false))", has, amount(id), bounds[c.Op], s.arg(c.Values[0]))
	}
}

// has asks for items with a value, in words that the index of fields is for.
func has(id string) string { return "(i.fields ? " + id + " and i.fields <> '{}')" }

// amount is a number, or null for what is none.
func amount(id string) string {
	return fmt.Sprintf("(case when jsonb_typeof(i.fields -> %[1]s) = 'number' then (i.fields ->> %[1]s)::numeric end)", id)
}

// held asks whether the value is, or holds, one of the values or all of them.
func (s *statement) held(c query.Condition) string {
	parts := make([]string, 0, len(c.Values))
	for _, value := range c.Values {
		var kept any = value
		switch c.Field.Kind() {
		case field.Amounts:
			kept = json.Number(value)
		case field.Truths:
			kept = value == "true"
		case field.Choices:
			kept = []string{value}
		default: // texts and marks are kept as they are asked for
		}
		raw, err := json.Marshal(map[string]any{c.Field.ID: kept})
		if err != nil { // no item has a number that is none
			parts = append(parts, "false")
			continue
		}
		parts = append(parts, "i.fields @> "+s.arg(string(raw))+"::text::jsonb")
	}
	join := " or "
	if c.Op == field.All {
		join = " and "
	}
	return "(i.fields <> '{}' and (" + strings.Join(parts, join) + "))"
}

// days asks for a date. Dates are kept as texts that sort as time does.
func (s *statement) days(c query.Condition, has, text string) string {
	span := c.When.Span(s.now)
	if span.Absent {
		return "not " + has
	}
	parts := []string{has}
	edge := func(compare string, at, day *time.Time) {
		switch {
		case at == nil:
		case c.Field.Time:
			parts = append(parts, fmt.Sprintf(`%s collate "C" %s %s`, text, compare, s.arg(at.UTC().Format(time.RFC3339))))
		default:
			parts = append(parts, fmt.Sprintf(`%s collate "C" %s %s`, text, compare, s.arg(day.Format(time.DateOnly))))
		}
	}
	edge(">=", span.From, span.FromDay)
	edge("<", span.To, span.ToDay)
	return "(" + strings.Join(parts, " and ") + ")"
}
