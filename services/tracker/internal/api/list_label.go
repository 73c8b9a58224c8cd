package api

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// bucketLabel is what people read over a column of due:bucket.
func bucketLabel(bucket string) string {
	switch bucket {
	case "thisweek":
		return "Later this week"
	case "nextweek":
		return "Next week"
	case "earlier":
		return "Earlier, finished"
	default: // overdue, today, later
		return strings.ToUpper(bucket[:1]) + bucket[1:]
	}
}

// labelOf answers what people read over a column.
func labelOf(o *org.Org, q *query.Query, value string) string {
	if value == "" {
		return "None"
	}
	switch q.GroupBy {
	case "status":
		for _, s := range statuses() {
			if s.GetStatus() == value {
				return s.GetLabel()
			}
		}
	case "status_group", "priority", "type":
		return strings.ToUpper(value[:1]) + strings.ReplaceAll(value[1:], "_", " ")
	case "assignee":
		for _, s := range o.Seats {
			if s.Handle == value {
				return s.Name
			}
		}
	case "project":
		if p, ok := o.Project(value); ok {
			return p.Name
		}
	case "unit", "routing_unit":
		if u, ok := o.Unit(value); ok {
			return u.Name
		}
	case "due:bucket":
		return bucketLabel(value)
	}
	if d := q.GroupField; d != nil {
		if option, ok := d.Option(value); ok {
			return option.Name
		}
	}
	return value
}

// fieldsOf answers an item's custom fields by slug, as whoever asks may see them; nil when it has none.
func fieldsOf(c store.Catalogue, i *item.Item, by item.Actor) (*structpb.Struct, error) {
	if len(i.Fields) == 0 {
		return nil, nil
	}
	set := c.Fields(field.Scope{Type: i.Type, Subtask: i.Parent != nil})
	if by.Kind == "agent" {
		set = set.ForAgents()
	}
	return structpb.NewStruct(set.BySlug(i.Fields))
}
