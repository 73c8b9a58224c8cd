package main

import (
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// schema is the part of JSON Schema 2020-12 that a contract can need.
type schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Format               string             `json:"format,omitempty"`
	Description          string             `json:"description,omitempty"`
	Deprecated           bool               `json:"deprecated,omitempty"`
	Enum                 []any              `json:"enum,omitempty"`
	Const                any                `json:"const,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	MinLength            any                `json:"minLength,omitempty"`
	MaxLength            any                `json:"maxLength,omitempty"`
	Minimum              any                `json:"minimum,omitempty"`
	Maximum              any                `json:"maximum,omitempty"`
	ExclusiveMinimum     any                `json:"exclusiveMinimum,omitempty"`
	ExclusiveMaximum     any                `json:"exclusiveMaximum,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	MinItems             any                `json:"minItems,omitempty"`
	MaxItems             any                `json:"maxItems,omitempty"`
	UniqueItems          bool               `json:"uniqueItems,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	PropertyNames        *schema            `json:"propertyNames,omitempty"`
	MinProperties        any                `json:"minProperties,omitempty"`
	MaxProperties        any                `json:"maxProperties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"`
}

// schemas are the messages a document mentions, by full name.
type schemas map[string]*schema

func referenceTo(name string) string { return "#/components/schemas/" + name }

// reference names a message's schema and sees to it that the document has it.
func (s schemas) reference(message *protogen.Message) *schema {
	name := string(message.Desc.FullName())
	if known := wellKnown(name); known != nil {
		return known
	}
	if _, ok := s[name]; !ok {
		made := &schema{Type: "object", Description: comment(message.Comments), AdditionalProperties: false}
		s[name] = made // before its fields: a message may hold itself
		made.Properties = map[string]*schema{}
		for _, field := range message.Fields {
			made.Properties[string(field.Desc.Name())] = s.property(field)
		}
		made.Required = required(message.Desc)
	}
	return &schema{Ref: referenceTo(name)}
}

// property is a field's schema, with its rules and its comment.
func (s schemas) property(field *protogen.Field) *schema {
	var out *schema
	switch {
	case field.Desc.IsMap():
		out = &schema{Type: "object", AdditionalProperties: s.value(field.Message.Fields[1])}
	case field.Desc.IsList():
		out = &schema{Type: "array", Items: s.value(field)}
	default:
		out = s.value(field)
	}
	out.Description = comment(field.Comments)
	if options, ok := field.Desc.Options().(*descriptorpb.FieldOptions); ok {
		out.Deprecated = options.GetDeprecated()
	}
	out.apply(rulesOf(field.Desc))
	return out
}

// value is the schema of one value of a field, lists and maps apart.
func (s schemas) value(field *protogen.Field) *schema {
	switch field.Desc.Kind() {
	case protoreflect.BoolKind:
		return &schema{Type: "boolean"}
	case protoreflect.StringKind:
		return &schema{Type: "string"}
	case protoreflect.BytesKind:
		return &schema{Type: "string", Format: "byte"}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return &schema{Type: "number"}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return &schema{Type: "string", Format: "int64"} // JSON numbers are not wide enough
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return &schema{Type: "string", Format: "uint64"}
	case protoreflect.EnumKind:
		out := &schema{Type: "string"}
		for _, value := range field.Enum.Values {
			out.Enum = append(out.Enum, string(value.Desc.Name()))
		}
		return out
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return s.reference(field.Message)
	default: // the 32-bit kinds
		return &schema{Type: "integer", Format: "int32"}
	}
}

// wellKnown is the JSON form of those Google messages that have one of their own; nil for any other message.
func wellKnown(name string) *schema {
	switch name {
	case "google.protobuf.Timestamp":
		return &schema{Type: "string", Format: "date-time"}
	case "google.protobuf.Duration":
		return &schema{Type: "string", Pattern: `^-?[0-9]+(\.[0-9]+)?s$`}
	case "google.protobuf.Struct":
		return &schema{Type: "object"}
	case "google.protobuf.ListValue":
		return &schema{Type: "array"}
	case "google.protobuf.Value":
		return &schema{}
	case "google.protobuf.FieldMask":
		return &schema{Type: "string"}
	default:
		return nil
	}
}
