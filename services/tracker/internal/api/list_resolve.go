package api

import (
	"context"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// resolver puts what names mean into a query: handles, ids and declarations.
type resolver struct {
	*Handler
	org *org.Org
	by  item.Actor
	// fields are those that the query may ask of; nil until one is named.
	fields *field.Set
}

// resolve answers the query with every name in it resolved, so that it means the same whoever reads it.
func (r *resolver) resolve(ctx context.Context, q *query.Query) error {
	if q.Project != "" && !r.org.HasProject(q.Project) {
		// A project that the chart no longer names keeps its work.
		if catalogues, err := r.Store.Catalogues(ctx, q.Project); err != nil || len(catalogues) == 0 {
			return orElse(err, r.org.NoProject(q.Project))
		}
	}
	for _, conditions := range append([][]query.Condition{q.Where}, q.Any...) {
		for n := range conditions {
			if err := r.condition(ctx, q, &conditions[n]); err != nil {
				return err
			}
		}
	}
	if slug := query.Slug(q.Sort.Key); slug != "" {
		d, err := r.field(ctx, q, "sort", slug)
		if err != nil {
			return err
		}
		q.Sort.Field = &d
	}
	if slug := query.Slug(q.GroupBy); slug != "" {
		d, err := r.field(ctx, q, "group_by", slug)
		if err != nil {
			return err
		}
		q.GroupField = &d
	}
	for n, t := range q.Totals {
		if slug := query.Slug(t.Of); slug != "" {
			d, err := r.field(ctx, q, "totals", slug)
			if err != nil {
				return err
			}
			if d.Kind() != field.Amounts {
				return fault.New(fault.Invalid, "totals: %s is no number but a %s", t.Of, d.Type).WithField("totals")
			}
			q.Totals[n].Field = &d
		}
	}
	return nil
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func (r *resolver) condition(ctx context.Context, q *query.Query, c *query.Condition) error {
	switch c.Key {
	case "assignee", "reporter", "watcher", "collaborator", "asked_of", "asked_by", "priorities":
		return each(c, func(text string) (string, error) { return r.who(ctx, c.Key, text) })
	case "unit", "routing_unit":
		return each(c, func(text string) (string, error) {
			if unit, ok := r.org.Unit(text); ok {
				return unit.ID, nil
			}
			return text, nil // an unknown unit matches nothing, but for what was filed when it was known
		})
	case "key", "parent", "root":
		return each(c, func(text string) (string, error) {
			if c.Key == "parent" && text == "none" {
				return text, nil
			}
			return r.item(ctx, c.Key, text)
		})
	case "tag", "type":
		return each(c, func(text string) (string, error) { return strings.ToLower(text), nil })
	}
	slug := query.Slug(c.Key)
	if slug == "" {
		return nil
	}
	d, err := r.field(ctx, q, c.Key, slug)
	if err != nil {
		return err
	}
	*c, err = c.Bind(d, query.Names{
		Colleague: func(text string) (string, error) { return r.who(ctx, c.Key, text) },
		Item:      func(text string) (string, error) { return r.item(ctx, c.Key, text) },
	})
	return err
}

// each replaces the values of a condition.
func each(c *query.Condition, resolve func(string) (string, error)) error {
	values := make([]string, 0, len(c.Values))
	for _, text := range c.Values {
		value, err := resolve(text)
		if err != nil {
			return err
		}
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	c.Values = values
	return nil
}

// who answers the handle of a colleague. What a token filed or asked is asked for by the token's name.
func (r *resolver) who(ctx context.Context, key, text string) (string, error) {
	switch {
	case text == "me":
		return r.by.Name, nil
	case text == "nobody" && (key == "assignee" || key == "watcher" || key == "collaborator"):
		return text, nil
	}
	handle, err := r.colleague(ctx, r.org, key, text)
	if err != nil && fault.ClassOf(err) == fault.Invalid && (key == "reporter" || key == "asked_by") {
		if known, lookup := r.Store.HasReported(ctx, text); lookup != nil || known {
			return text, lookup
		}
	}
	return handle, err
}

// item answers the id that a key, a former key or an id names.
func (r *resolver) item(ctx context.Context, key, text string) (string, error) {
	id, err := r.Store.ItemID(ctx, text)
	if err != nil && fault.ClassOf(err) == fault.NotFound {
		return "", fault.New(fault.Invalid, "%s names no work item: there is no %q", key, text).WithField(key)
	}
	return id.String(), err
}

// field finds a custom field: one of the workspace, or of the project that is asked about.
func (r *resolver) field(ctx context.Context, q *query.Query, argument, slug string) (field.Declaration, error) {
	if r.fields == nil {
		var set field.Set
		workspace, err := r.Store.Workspace(ctx)
		if err != nil {
			return field.Declaration{}, err
		}
		set = field.Effective(workspace.Fields, nil, field.Scope{})
		if q.Project != "" {
			catalogues, err := r.Store.Catalogues(ctx, q.Project)
			if err != nil {
				return field.Declaration{}, err
			}
			if c, ok := catalogues[q.Project]; ok {
				set = c.Fields(field.Scope{})
			}
		}
		if r.by.Kind == "agent" {
			set = set.ForAgents()
		}
		r.fields = &set
	}
	d, ok := r.fields.Find(slug)
	if !ok {
		return d, r.fields.NoField(argument, slug)
	}
	return d, nil
}
