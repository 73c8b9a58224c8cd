package convert

import (
	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
)

// ItemField answers a custom field of an item with its value.
func ItemField(r field.Reading) *trackerv1.ItemField {
	return &trackerv1.ItemField{
		Slug: r.Slug, Name: r.Name, Type: r.Type, Value: value(r.Value), Hidden: r.HideFromAgents, Foreign: r.Foreign, Undeclared: r.Undeclared,
	}
}

// BySlug answers custom values by slug; nil for none.
func BySlug(values map[string]any) *structpb.Struct {
	if len(values) == 0 {
		return nil
	}
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(values))}
	for slug, v := range values {
		out.Fields[slug] = value(v)
	}
	return out
}

// value is null for what JSON cannot carry, which nothing keeps.
func value(v any) *structpb.Value {
	out, err := structpb.NewValue(v)
	if err != nil {
		return structpb.NewNullValue()
	}
	return out
}
