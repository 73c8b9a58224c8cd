package catalogue

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func fieldRules(field protoreflect.FieldDescriptor) *validatepb.FieldRules {
	rules, ok := proto.GetExtension(field.Options(), validatepb.E_Field).(*validatepb.FieldRules)
	if !ok {
		return nil
	}
	return rules
}

// stringRules writes what JSON Schema can say into schema, and answers sentences for the rest. zeroPasses: the rules do not
// look at an empty string.
func stringRules(schema *jsonschema.Schema, rules *validatepb.StringRules, zeroPasses bool) []string {
	if rules == nil {
		return nil
	}
	schema.MinLength, schema.MaxLength = length(rules.MinLen), length(rules.MaxLen)
	if rules.Len != nil {
		schema.MinLength, schema.MaxLength = length(rules.Len), length(rules.Len)
	}
	schema.Pattern = rules.GetPattern()
	for _, allowed := range rules.GetIn() {
		schema.Enum = append(schema.Enum, allowed)
	}
	if rules.Const != nil {
		schema.Enum = []any{rules.GetConst()}
	}
	switch {
	case rules.GetEmail():
		schema.Format = "email"
	case rules.GetUuid():
		schema.Format = "uuid"
	case rules.GetUri():
		schema.Format = "uri"
	}
	var sentences []string
	if rules.MaxBytes != nil {
		// A character takes a byte or more, so the same number bounds both; the sentence says which one counts.
		if schema.MaxLength == nil {
			schema.MaxLength = length(rules.MaxBytes)
		}
		sentences = append(sentences, fmt.Sprintf("At most %d bytes.", rules.GetMaxBytes()))
	}
	if zeroPasses {
		schema.MinLength = nil
		if schema.Enum != nil {
			schema.Enum = append(schema.Enum, "")
		}
	}
	return sentences
}

func listRules(schema *jsonschema.Schema, rules *validatepb.RepeatedRules) {
	if rules == nil {
		return
	}
	schema.MinItems, schema.MaxItems = length(rules.MinItems), length(rules.MaxItems)
	schema.UniqueItems = rules.GetUnique()
}

func mapRules(schema *jsonschema.Schema, rules *validatepb.MapRules) []string {
	if rules == nil {
		return nil
	}
	schema.MinProperties, schema.MaxProperties = length(rules.MinPairs), length(rules.MaxPairs)
	if rules.GetKeys().GetString() == nil {
		return nil
	}
	schema.PropertyNames = &jsonschema.Schema{}
	return stringRules(schema.PropertyNames, rules.GetKeys().GetString(), false)
}

// numberRules reads the rules of whichever numeric type the field has: they are twelve messages with the same field names.
func numberRules(schema *jsonschema.Schema, rules *validatepb.FieldRules) []string {
	m := rules.ProtoReflect()
	which := m.WhichOneof(m.Descriptor().Oneofs().ByName("type"))
	if rules == nil || which == nil || which.Kind() != protoreflect.MessageKind {
		return nil
	}
	m = m.Get(which).Message()
	whole := schema.Type == "integer"
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch fd.Name() {
		case "gte":
			schema.Minimum = number(v)
		case "lte":
			schema.Maximum = number(v)
		case "gt":
			if bound := number(v); whole {
				*bound++
				schema.Minimum = bound
			} else {
				schema.ExclusiveMinimum = bound
			}
		case "lt":
			if bound := number(v); whole {
				*bound--
				schema.Maximum = bound
			} else {
				schema.ExclusiveMaximum = bound
			}
		case "in":
			for i := range v.List().Len() {
				schema.Enum = append(schema.Enum, v.List().Get(i).Interface())
			}
		case "const":
			schema.Enum = []any{v.Interface()}
		}
		return true
	})
	return nil
}

func number(v protoreflect.Value) *float64 {
	var f float64
	switch n := v.Interface().(type) {
	case int32:
		f = float64(n)
	case uint32:
		f = float64(n)
	case float32:
		f = float64(n)
	case float64:
		f = n
	}
	return &f
}

func length(n *uint64) *int {
	if n == nil || *n > math.MaxInt32 {
		return nil
	}
	bound := int(*n)
	return &bound
}

// celSentences are the words of the rules that a contract wrote out for one field.
func celSentences(rules *validatepb.FieldRules) []string {
	var sentences []string
	for _, rule := range rules.GetCel() {
		sentences = append(sentences, asSentence(rule.GetMessage()))
	}
	return sentences
}

// messageSentences are the words of the rules across fields.
func messageSentences(md protoreflect.MessageDescriptor) []string {
	rules, ok := proto.GetExtension(md.Options(), validatepb.E_Message).(*validatepb.MessageRules)
	if !ok {
		return nil
	}
	var sentences []string
	for _, rule := range rules.GetCel() {
		sentences = append(sentences, asSentence(rule.GetMessage()))
	}
	return sentences
}

func oneofSentences(md protoreflect.MessageDescriptor) []string {
	var sentences []string
	for i := range md.Oneofs().Len() {
		oneof := md.Oneofs().Get(i)
		if oneof.IsSynthetic() {
			continue
		}
		var names []string
		for j := range oneof.Fields().Len() {
			names = append(names, "`"+string(oneof.Fields().Get(j).Name())+"`")
		}
		often := "at most"
		if rules, ok := proto.GetExtension(oneof.Options(), validatepb.E_Oneof).(*validatepb.OneofRules); ok && rules.GetRequired() {
			often = "exactly"
		}
		sentences = append(sentences, fmt.Sprintf("Give %s one of %s.", often, strings.Join(names, ", ")))
	}
	return sentences
}

// asSentence gives a rule's message the form it needs inside a description.
func asSentence(message string) string {
	first, size := utf8.DecodeRuneInString(message)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(message[size:], ".") + "."
}
