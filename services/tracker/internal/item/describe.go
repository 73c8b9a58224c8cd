package item

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Describe answers what differs between two states of an item, by the names that history uses, in stored forms. It describes and
// does not quote: a body is told by its size, a checklist by how much of it is done, a set by as many whole members as fit. Custom
// fields and relations are described by who knows them.
func Describe(before, after *Item) map[string]Field {
	d := description{}
	d.text("title", before.Title, after.Title)
	d.text("status", before.Status, after.Status)
	d.text("assignee", before.Assignee, after.Assignee)
	d.text("priority", before.Priority, after.Priority)
	d.text("project", before.Project, after.Project)
	d.text("type", before.Type, after.Type)
	d.set("tags", before.Labels, after.Labels)
	d.text("due", before.Due.String(), after.Due.String())
	d.text("due_all_day", allDay(before.Due), allDay(after.Due))
	d.text("start", before.Start.String(), after.Start.String())
	d.text("estimate", number(before.EstimateMinutes), number(after.EstimateMinutes))
	d.text("points", decimal(before.Points), decimal(after.Points))
	d.text("reporter", before.Reporter, after.Reporter)
	d.set("watchers", before.Watchers, after.Watchers)
	d.set("muted", before.Muted, after.Muted)
	d.set("collaborators", before.Collaborators, after.Collaborators)
	d.text("parent", parentOf(before), parentOf(after))
	d.text("routing_unit", before.RoutingUnit, after.RoutingUnit)
	d.text("removed_with", removedWith(before), removedWith(after))
	d.checklists(before.Checklists, after.Checklists)
	if before.Body != after.Body {
		d["body"] = Field{From: size(before.Body), To: size(after.Body)}
	}
	return d
}

// kindOf answers the most specific kind of a change. Who watches is the kind only of a change of nothing else, as whoever gets an
// item watches it.
func kindOf(fields map[string]Field) string {
	for _, k := range []struct {
		kind   string
		fields []string
	}{
		{"status", []string{"status"}},
		{"assignee", []string{"assignee"}},
		{"routed", []string{"routing_unit"}},
		{"reparented", []string{"parent"}},
		{"relations", []string{"waiting_on", "blocking", "linked", "duplicates", "page"}},
		{"checklist", []string{"checklists"}},
		{"collaborators", []string{"collaborators"}},
		{"tags", []string{"tags"}},
	} {
		if slices.ContainsFunc(k.fields, func(name string) bool { _, changed := fields[name]; return changed }) {
			return k.kind
		}
	}
	for name := range fields {
		if name != "watchers" && name != "muted" {
			return "fields"
		}
	}
	return "watchers"
}

// Field is one thing that changed, in stored forms.
type Field struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Hidden: custom fields changed, some of which were hidden from agents.
	Hidden bool `json:"hidden,omitempty"`
}

// Concealed is the field as it is told where agents read it, when some of it is hidden from them.
func (f Field) Concealed() Field { return Field{To: "fields of which agents are not shown all"} }

type description map[string]Field

func (d description) text(name, from, to string) {
	if from != to {
		d[name] = Field{From: quote(from), To: quote(to)}
	}
}

func (d description) set(name string, from, to []string) {
	if !slices.Equal(from, to) {
		d[name] = Field{From: Members(from), To: Members(to)}
	}
}

// checklists describes the lists that differ, each by how much of it is done.
func (d description) checklists(before, after []Checklist) {
	differ := func(lists, others []Checklist) []string {
		var told []string
		for _, l := range lists {
			if !slices.ContainsFunc(others, func(o Checklist) bool { return o.ID == l.ID && o.Name == l.Name && slices.Equal(o.Items, l.Items) }) {
				told = append(told, l.progress())
			}
		}
		return told
	}
	from, to := differ(before, after), differ(after, before)
	if len(from)+len(to) > 0 {
		d["checklists"] = Field{From: Members(from), To: Members(to)}
	}
}

func (l Checklist) progress() string {
	done := 0
	for _, step := range l.Items {
		if step.Done {
			done++
		}
	}
	return fmt.Sprintf("%s: %d of %d done", l.Name, done, len(l.Items))
}

// Members joins a set for history. What does not fit is cut at a whole member, and counted.
func Members(members []string) string {
	joined := strings.Join(members, ", ")
	for shown := len(members) - 1; len(joined) > maxQuotedBytes && shown >= 0; shown-- {
		joined = strings.TrimPrefix(fmt.Sprintf("%s, +%d more", strings.Join(members[:shown], ", "), len(members)-shown), ", ")
	}
	return joined
}

// quote is a short text as it is, and a long one by its size.
func quote(text string) string {
	if len(text) > maxQuotedBytes {
		return size(text)
	}
	return text
}

func size(text string) string { return fmt.Sprintf("%d bytes", len(text)) }

func number(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

func decimal(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

func allDay(m *Moment) string {
	if m == nil {
		return ""
	}
	return strconv.FormatBool(m.AllDay)
}

func parentOf(i *Item) string {
	if i.Parent == nil {
		return ""
	}
	return i.Parent.String()
}

func removedWith(i *Item) string {
	if i.Removal == nil {
		return ""
	}
	return i.Removal.With.String()
}
