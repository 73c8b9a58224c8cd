package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

func rulesOf(field protoreflect.FieldDescriptor) *validate.FieldRules {
	rules, _ := proto.GetExtension(field.Options(), validate.E_Field).(*validate.FieldRules)
	return rules
}

// required names the fields that a message is refused without: those whose absence breaks a rule. Asking the validator
// itself stays right whatever the rules are. Rules it cannot compile are lint's to report, not ours.
func required(message protoreflect.MessageDescriptor) []string {
	var broken *protovalidate.ValidationError
	if !errors.As(protovalidate.Validate(dynamicpb.NewMessage(message)), &broken) {
		return nil
	}
	var out []string
	for _, violation := range broken.Violations {
		path := violation.Proto.GetField().GetElements()
		// A rule on a oneof has no field number.
		if len(path) == 1 && path[0].GetFieldNumber() != 0 {
			out = append(out, path[0].GetFieldName())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// apply adds what a field's validation rules say. What JSON Schema has no keyword for joins the description.
func (s *schema) apply(rules *validate.FieldRules) {
	if rules == nil {
		return
	}
	for _, rule := range rules.GetCel() {
		s.say(rule.GetMessage())
	}
	message := rules.ProtoReflect()
	kind := message.WhichOneof(message.Descriptor().Oneofs().ByName("type"))
	if kind == nil {
		return
	}
	// The rules of all kinds use the same names, so reflection reads them without a case for each kind.
	message.Get(kind).Message().Range(func(rule protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		s.constrain(string(rule.Name()), value)
		return true
	})
}

func (s *schema) constrain(rule string, value protoreflect.Value) {
	switch rule {
	case "min_len":
		s.MinLength = value.Interface()
	case "max_len":
		s.MaxLength = value.Interface()
	case "len":
		s.MinLength, s.MaxLength = value.Interface(), value.Interface()
	case "min_bytes":
		s.say(fmt.Sprintf("At least %v bytes.", value.Interface()))
	case "max_bytes":
		s.say(fmt.Sprintf("At most %v bytes.", value.Interface()))
	case "pattern":
		s.Pattern = value.String()
	case "in":
		s.Enum = scalars(value.List())
	case "const":
		s.Const = scalar(value)
	case "gte":
		s.Minimum = scalar(value)
	case "gt":
		s.ExclusiveMinimum = scalar(value)
	case "lte":
		s.Maximum = scalar(value)
	case "lt":
		s.ExclusiveMaximum = scalar(value)
	case "email", "hostname", "ipv4", "ipv6", "uri", "uuid":
		s.Format = rule
	case "min_items":
		s.MinItems = value.Interface()
	case "max_items":
		s.MaxItems = value.Interface()
	case "unique":
		s.UniqueItems = value.Bool()
	case "items":
		s.Items.apply(fieldRules(value))
	case "min_pairs":
		s.MinProperties = value.Interface()
	case "max_pairs":
		s.MaxProperties = value.Interface()
	case "keys":
		s.PropertyNames = &schema{}
		s.PropertyNames.apply(fieldRules(value))
	case "values":
		if values, ok := s.AdditionalProperties.(*schema); ok {
			values.apply(fieldRules(value))
		}
	}
}

func (s *schema) say(sentence string) {
	s.Description = strings.TrimSpace(s.Description + " " + sentence)
}

func fieldRules(value protoreflect.Value) *validate.FieldRules {
	rules, _ := value.Message().Interface().(*validate.FieldRules)
	return rules
}

func scalars(list protoreflect.List) []any {
	var out []any
	for i := range list.Len() {
		out = append(out, scalar(list.Get(i)))
	}
	return out
}

// scalar is a rule's operand as JSON. Durations and timestamps bound in a rule are messages; they are left out.
func scalar(value protoreflect.Value) any {
	if _, ok := value.Interface().(protoreflect.Message); ok {
		return nil
	}
	return value.Interface()
}
