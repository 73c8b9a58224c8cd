package store

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
)

// Wishes are what an item is to have of what its project declares: they are checked against the declarations as the write finds them.
type Wishes struct {
	// Type is a slug or a label; nil stays.
	Type *string
	// Labels are all that it is to have, by slug or text; nil stays. CreateLabels declares those that are missing.
	Labels       *[]string
	CreateLabels bool
	// Fields are values by slug, in the forms of JSON; nil ones clear.
	Fields map[string]any
	// Colleague answers the handle of who a value names. It is called while rows are locked and must not wait for anybody.
	Colleague func(text string) (string, error)
}

func (w Wishes) none() bool { return w.Type == nil && w.Labels == nil && len(w.Fields) == 0 }

// settled is what wishes come to.
type settled struct {
	update item.Update
	// labels are to be declared before the item is written.
	labels   []label.Label
	warnings []string
}

// settle checks wishes for an item, which is as it was before the write. filed says that it is new, and has to have every field that is
// required; an item that is there already has to when it becomes work of another type or a subtask.
func (w Wishes) settle(ctx context.Context, tx pgx.Tx, c Catalogue, i *item.Item, a Act, filed, subtask bool) (settled, error) {
	var s settled
	kind := i.Type
	if w.Type != nil {
		current := i.Type
		if filed {
			current = ""
		}
		slug, err := c.Types.Check("type", *w.Type, current)
		if err != nil {
			return s, err
		}
		kind, s.update.Type = slug, &slug
	}
	if w.Labels != nil {
		checked, err := label.Check(c.Labels, i.Labels, *w.Labels, w.CreateLabels)
		if err != nil {
			return s, err
		}
		// In the order of slugs, so that two writes that declare the same ones wait for each other one way only.
		slices.SortFunc(checked.Create, func(a, b label.Label) int { return strings.Compare(a.Slug, b.Slug) })
		s.update.Labels, s.labels, s.warnings = &checked.Slugs, checked.Create, checked.Warnings
	}
	fields := c.Fields(field.Scope{Type: kind, Subtask: subtask})
	if a.By.Kind == "agent" {
		fields = fields.ForAgents()
	}
	values := i.Fields
	if len(w.Fields) > 0 {
		res, err := fields.Apply(i.Fields, w.Fields, w.resolver(ctx, tx, a))
		if err != nil {
			return s, err
		}
		s.warnings = append(s.warnings, res.Warnings...)
		if res.Changed {
			values = res.Values
			s.update.Fields = &item.Values{All: values, Described: item.Field(res.Describe)}
		}
	}
	if filed || kind != i.Type || subtask && i.Parent == nil {
		return s, fields.Missing(values)
	}
	return s, nil
}

func (w Wishes) resolver(ctx context.Context, tx pgx.Tx, a Act) field.Resolver {
	return field.Resolver{
		Item: func(text string) (string, error) {
			id, err := named(ctx, tx, "fields", text)
			return id.String(), err
		},
		Colleague: w.Colleague,
		Zone:      a.Org.Zone,
	}
}

// slugsOf names labels.
func slugsOf(labels []label.Label) []string {
	slugs := make([]string, 0, len(labels))
	for _, l := range labels {
		slugs = append(slugs, l.Slug)
	}
	return slugs
}
