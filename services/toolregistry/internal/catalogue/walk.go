package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/nearest"
)

// walk compares parsed JSON with a message's descriptor, before protojson decodes it: protojson's own errors are unstable on
// purpose and speak of tokens. It stops at the first fault; names are visited in order, so that the same mistake always gets
// the same answer.
type walk struct{}

func (w walk) object(object map[string]any, md protoreflect.MessageDescriptor, prefix string) error {
	chosen := map[protoreflect.FullName]string{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		path := prefix + name
		field := md.Fields().ByTextName(name)
		if field == nil {
			return unknown(path, name, md)
		}
		value := object[name]
		if value == nil {
			continue
		}
		if oneof := field.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
			if other, taken := chosen[oneof.FullName()]; taken {
				return wrong(path, "give only one of `%s` and `%s`", prefix+other, path)
			}
			chosen[oneof.FullName()] = name
		}
		if err := w.field(value, field, path); err != nil {
			return err
		}
	}
	return nil
}

func (w walk) field(value any, field protoreflect.FieldDescriptor, path string) error {
	switch {
	case field.IsMap():
		return w.entries(value, field, path)
	case field.IsList():
		list, ok := value.([]any)
		if !ok {
			return wrong(path, "`%s` must be a list, not %s", path, kindOf(value))
		}
		for i, item := range list {
			if err := w.value(item, field, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	default:
		return w.value(value, field, path)
	}
}

func (w walk) entries(value any, field protoreflect.FieldDescriptor, path string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return wrong(path, "`%s` must be an object, not %s", path, kindOf(value))
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		entry := path + "." + key
		if strings.ContainsRune(key, 0) {
			return holdsNUL(path)
		}
		if err := w.value(object[key], field.MapValue(), entry); err != nil {
			return err
		}
	}
	return nil
}

// value checks one value, which in a list may not be null.
func (w walk) value(value any, field protoreflect.FieldDescriptor, path string) error {
	switch field.Kind() {
	case protoreflect.StringKind:
		text, ok := value.(string)
		if !ok {
			return wrong(path, "`%s` must be a string, not %s", path, kindOf(value))
		}
		if strings.ContainsRune(text, 0) {
			return holdsNUL(path)
		}
		return nil
	case protoreflect.BoolKind:
		if _, ok := value.(bool); !ok {
			return wrong(path, "`%s` must be true or false, not %s", path, kindOf(value))
		}
		return nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return whole(value, &wrapperspb.Int32Value{}, path, "-2147483648 to 2147483647")
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return whole(value, &wrapperspb.UInt32Value{}, path, "0 to 4294967295")
	case protoreflect.DoubleKind:
		return decimal(value, &wrapperspb.DoubleValue{}, path)
	case protoreflect.FloatKind:
		return decimal(value, &wrapperspb.FloatValue{}, path)
	case protoreflect.MessageKind:
		return w.message(value, field.Message(), path)
	default:
		return nil
	}
}

func (w walk) message(value any, md protoreflect.MessageDescriptor, path string) error {
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		return leaf(value, &timestamppb.Timestamp{}, path, `a time such as "2026-03-01T09:00:00Z"`)
	case "google.protobuf.Duration":
		return leaf(value, &durationpb.Duration{}, path, `a duration in seconds such as "90s"`)
	}
	object, ok := value.(map[string]any)
	if !ok {
		if names := fieldNames(md); len(names) > 0 && md.FullName() != "google.protobuf.Struct" {
			return wrong(path, "`%s` must be an object with %s, not %s", path, strings.Join(names, ", "), kindOf(value))
		}
		return wrong(path, "`%s` must be an object, not %s", path, kindOf(value))
	}
	if md.FullName() == "google.protobuf.Struct" {
		return free(object, path)
	}
	return w.object(object, md, path+".")
}

// free checks an object that may hold anything: anything but NUL and numbers that no double holds.
func free(value any, path string) error {
	switch v := value.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return holdsNUL(path)
		}
	case json.Number:
		return decimal(v, &wrapperspb.DoubleValue{}, path)
	case []any:
		for i, item := range v {
			if err := free(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if strings.ContainsRune(key, 0) {
				return holdsNUL(path)
			}
			if err := free(v[key], path+"."+key); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole checks a whole number. What counts as one is protojson's to say: it takes 5.0, 5e0 and "5" too.
func whole(value any, into proto.Message, path, bounds string) error {
	text, ok := literal(value)
	if !ok {
		return wrong(path, "`%s` must be a whole number, not %s", path, kindOf(value))
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		return nil
	}
	if protojson.Unmarshal(quote(value), into) == nil {
		return nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) {
		return wrong(path, "`%s` is out of range: it takes whole numbers from %s, not %s", path, bounds, shown(text))
	}
	return wrong(path, "`%s` must be a whole number, not %s", path, kindOf(value))
}

func decimal(value any, into proto.Message, path string) error {
	if _, ok := literal(value); !ok || protojson.Unmarshal(quote(value), into) != nil {
		return wrong(path, "`%s` must be a number that fits 64 bits, not %s", path, kindOf(value))
	}
	return nil
}

func leaf(value any, into proto.Message, path, what string) error {
	if text, ok := value.(string); !ok || protojson.Unmarshal(quote(text), into) != nil {
		return wrong(path, "`%s` must be %s, not %s", path, what, kindOf(value))
	}
	return nil
}

// literal answers the text of a number, or of a string that may hold one.
func literal(value any) (string, bool) {
	switch v := value.(type) {
	case json.Number:
		return v.String(), true
	case string:
		return v, true
	default:
		return "", false
	}
}

// quote writes a number or a string as JSON again.
func quote(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return text
}

func unknown(path, name string, md protoreflect.MessageDescriptor) error {
	var names []string
	for i := range md.Fields().Len() {
		names = append(names, string(md.Fields().Get(i).Name()))
	}
	text := fmt.Sprintf("unknown argument `%s`", path)
	if meant, ok := nearest.One(name, names); ok {
		text += fmt.Sprintf("; did you mean `%s`?", strings.TrimSuffix(path, name)+meant)
	} else if len(names) > 0 {
		text += "; it takes " + strings.Join(fieldNames(md), ", ")
	} else {
		text += "; it takes none"
	}
	return fault.New(fault.Invalid, "%s", text).WithField(path).WithReason(ReasonUnknownArgument)
}

func fieldNames(md protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range md.Fields().Len() {
		names = append(names, "`"+string(md.Fields().Get(i).Name())+"`")
	}
	return names
}

func wrong(path, format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...).WithField(path)
}

func holdsNUL(path string) error {
	return wrong(path, "`%s` must not hold the character NUL (\\u0000)", path)
}

// maxShown is how long a value may be to be repeated in a sentence; a longer one is described.
const maxShown = 60

func shown(text string) string {
	if n := utf8.RuneCountInString(text); n > maxShown {
		return fmt.Sprintf("%d characters", n)
	}
	return text
}

// kindOf names a JSON value the way a sentence needs it.
func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return shown(v.String())
	case string:
		if n := utf8.RuneCountInString(v); n > maxShown {
			return fmt.Sprintf("a string of %d characters", n)
		}
		return fmt.Sprintf("the string %q", v)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "that"
	}
}
