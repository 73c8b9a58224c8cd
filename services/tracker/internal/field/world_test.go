package field_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
)

var (
	declaredAt = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	terms      = field.Terms{Types: []string{"task", "bug", "epic"}, Author: "ines", Now: declaredAt}
)

// declare answers a document with these fields, each named for its slug.
func declare(t require.TestingT, wanted ...field.Declaration) field.Document {
	for n := range wanted {
		if wanted[n].Name == "" {
			wanted[n].Name = "The " + wanted[n].Slug
		}
	}
	doc, _, err := field.Document(nil).Revise(wanted, terms)
	require.NoError(t, err)
	return doc
}

func options(slugs ...string) []field.Option {
	out := make([]field.Option, 0, len(slugs))
	for _, slug := range slugs {
		out = append(out, field.Option{Slug: slug, Name: "Option " + slug})
	}
	return out
}

// everything is a field of every type.
func everything(t require.TestingT) field.Document {
	return declare(t,
		field.Declaration{Slug: "note", Type: field.Text},
		field.Declaration{Slug: "story", Type: field.Textarea},
		field.Declaration{Slug: "cost", Type: field.Number, Unit: "EUR", Precision: ptr(int32(2)), Min: ptr(0.0), Max: ptr(1e9)},
		field.Declaration{Slug: "count", Type: field.Number},
		field.Declaration{Slug: "day", Type: field.Date},
		field.Declaration{Slug: "at", Type: field.Date, Time: true},
		field.Declaration{Slug: "severity", Type: field.Dropdown, Options: options("low", "high")},
		field.Declaration{Slug: "areas", Type: field.Dropdown, Multi: true, Options: options("ui", "api", "db")},
		field.Declaration{Slug: "marks", Type: field.Labels, Options: options("red", "green", "blue")},
		field.Declaration{Slug: "done", Type: field.Checkbox},
		field.Declaration{Slug: "link", Type: field.URL},
		field.Declaration{Slug: "mail", Type: field.Email},
		field.Declaration{Slug: "ready", Type: field.Progress},
		field.Declaration{Slug: "about", Type: field.Relationship},
		field.Declaration{Slug: "owner", Type: field.People},
	)
}

func ptr[T any](v T) *T { return &v }

// resolver knows one item and one colleague.
func resolver(t require.TestingT) field.Resolver {
	zone, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	return field.Resolver{
		Item: func(text string) (string, error) {
			if text == "OPS-1" {
				return "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10", nil
			}
			return "", fault.New(fault.Invalid, "there is no item %q", text)
		},
		Colleague: func(text string) (string, error) {
			if text == "Ana" || text == "ana" {
				return "ana", nil
			}
			return "", fault.New(fault.Invalid, "nobody is %q", text)
		},
		Zone: zone,
	}
}

// stored is what Postgres gives back of values.
func stored(t require.TestingT, values map[string]any) map[string]any {
	text, err := json.Marshal(values)
	require.NoError(t, err)
	var back map[string]any
	require.NoError(t, json.Unmarshal(text, &back))
	return back
}

func set(doc field.Document) field.Set { return field.Effective(doc, nil, field.Scope{Type: "task"}) }

// put answers what one value reads back as.
func put(t *testing.T, s field.Set, slug string, value any) (any, error) {
	t.Helper()
	res, err := s.Apply(nil, map[string]any{slug: value}, resolver(t))
	if err != nil {
		require.Equal(t, "fields."+slug, refused(t, err).Field)
		return nil, err
	}
	return s.BySlug(stored(t, res.Values))[slug], nil
}

func refused(t require.TestingT, err error) *fault.Error {
	f, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Invalid, f.Class, f.Message)
	return f
}
