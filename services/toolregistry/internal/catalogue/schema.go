package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
)

// converter turns a request message into the JSON Schema (2020-12) that a model sees. Messages are written out where they are
// used; there is no combinator and no reference anywhere, because providers refuse them.
type converter struct {
	comments comments
	// inside holds the messages being written, to notice recursion.
	inside []protoreflect.FullName
}

// root converts a request.
func (c converter) root(md protoreflect.MessageDescriptor) (*jsonschema.Schema, error) {
	schema, sentences, err := c.message(md)
	if err != nil {
		return nil, err
	}
	schema.Description = strings.Join(sentences, " ")
	return schema, nil
}

// message answers the schema of a message and the sentences of its rules across fields, which go into the description of
// whatever holds it.
func (c converter) message(md protoreflect.MessageDescriptor) (*jsonschema.Schema, []string, error) {
	if slices.Contains(c.inside, md.FullName()) {
		return nil, nil, fmt.Errorf("%s contains itself", md.FullName())
	}
	c.inside = append(slices.Clone(c.inside), md.FullName())
	required, err := requiredFields(md)
	if err != nil {
		return nil, nil, err
	}
	schema := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for i := range md.Fields().Len() {
		field := md.Fields().Get(i)
		if options, ok := field.Options().(*descriptorpb.FieldOptions); ok && options.GetDeprecated() {
			continue
		}
		property, err := c.property(field)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", field.Name(), err)
		}
		name := string(field.Name())
		schema.Properties[name] = property
		schema.PropertyOrder = append(schema.PropertyOrder, name)
		if required[field.Number()] {
			schema.Required = append(schema.Required, name)
		}
	}
	return schema, append(oneofSentences(md), messageSentences(md)...), nil
}

// property converts a field with its comment, rules and default.
func (c converter) property(field protoreflect.FieldDescriptor) (*jsonschema.Schema, error) {
	rules := fieldRules(field)
	schema, sentences, err := c.container(field, rules)
	if err != nil {
		return nil, err
	}
	if argument, ok := proto.GetExtension(field.Options(), toolv1.E_Argument).(*toolv1.Argument); ok && argument.GetDefaultJson() != "" {
		schema.Default = json.RawMessage(argument.GetDefaultJson())
	}
	text := append([]string{c.comments[field.FullName()]}, sentences...)
	schema.Description = strings.TrimSpace(strings.Join(append(text, celSentences(rules)...), " "))
	return schema, nil
}

// container converts a list, a map or a single value.
func (c converter) container(field protoreflect.FieldDescriptor, rules *validatepb.FieldRules) (*jsonschema.Schema, []string, error) {
	switch {
	case field.IsMap():
		if field.MapKey().Kind() != protoreflect.StringKind || field.MapValue().Kind() == protoreflect.MessageKind {
			return nil, nil, errors.New("a map in a request goes from strings to plain values")
		}
		value, sentences, err := c.value(field.MapValue(), rules.GetMap().GetValues())
		if err != nil {
			return nil, nil, err
		}
		schema := &jsonschema.Schema{Type: "object", AdditionalProperties: value}
		return schema, append(sentences, mapRules(schema, rules.GetMap())...), nil
	case field.IsList():
		item, sentences, err := c.value(field, rules.GetRepeated().GetItems())
		if err != nil {
			return nil, nil, err
		}
		if field.Kind() == protoreflect.MessageKind {
			item.Description, sentences = strings.Join(sentences, " "), nil
		}
		schema := &jsonschema.Schema{Type: "array", Items: item}
		listRules(schema, rules.GetRepeated())
		return schema, sentences, nil
	default:
		return c.value(field, rules)
	}
}

// value converts one value of the field's type.
func (c converter) value(field protoreflect.FieldDescriptor, rules *validatepb.FieldRules) (*jsonschema.Schema, []string, error) {
	zeroPasses := rules.GetIgnore() == validatepb.Ignore_IGNORE_IF_ZERO_VALUE
	switch field.Kind() {
	case protoreflect.StringKind:
		schema := &jsonschema.Schema{Type: "string"}
		return schema, stringRules(schema, rules.GetString(), zeroPasses), nil
	case protoreflect.BoolKind:
		return &jsonschema.Schema{Type: "boolean"}, nil, nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		schema := &jsonschema.Schema{Type: "integer"}
		return schema, numberRules(schema, rules), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		zero := 0.0
		schema := &jsonschema.Schema{Type: "integer", Minimum: &zero}
		return schema, numberRules(schema, rules), nil
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		schema := &jsonschema.Schema{Type: "number"}
		return schema, numberRules(schema, rules), nil
	case protoreflect.MessageKind:
		if schema, ok := wellKnown(field.Message().FullName()); ok {
			return schema, nil, nil
		}
		if strings.HasPrefix(string(field.Message().FullName()), "google.protobuf.") {
			return nil, nil, fmt.Errorf("a %s cannot be an argument", field.Message().FullName())
		}
		return c.message(field.Message())
	default:
		return nil, nil, fmt.Errorf("a %s cannot be an argument", field.Kind())
	}
}

// wellKnown answers how Google's types are written in JSON.
func wellKnown(name protoreflect.FullName) (*jsonschema.Schema, bool) {
	switch name {
	case "google.protobuf.Timestamp":
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, true
	case "google.protobuf.Duration":
		return &jsonschema.Schema{Type: "string", Pattern: `^-?[0-9]+(\.[0-9]{1,9})?s$`}, true
	case "google.protobuf.Struct":
		return &jsonschema.Schema{Type: "object"}, true
	default:
		return nil, false
	}
}

// requiredFields asks the rules themselves: what an empty message violates in one step must be there. That stays right for
// every kind of rule, the ones not written yet included.
func requiredFields(md protoreflect.MessageDescriptor) (map[protoreflect.FieldNumber]bool, error) {
	err := protovalidate.Validate(dynamicpb.NewMessage(md))
	if err == nil {
		return nil, nil
	}
	violated, ok := errors.AsType[*protovalidate.ValidationError](err)
	if !ok {
		return nil, fmt.Errorf("rules of %s: %w", md.FullName(), err)
	}
	required := map[protoreflect.FieldNumber]bool{}
	for _, v := range violated.Violations {
		// A oneof's element has no number.
		if path := v.Proto.GetField().GetElements(); len(path) == 1 && path[0].GetFieldNumber() != 0 {
			required[protoreflect.FieldNumber(path[0].GetFieldNumber())] = true
		}
	}
	return required, nil
}
