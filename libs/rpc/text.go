package rpc

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// checkText refuses text that no database of ours can keep: the character NUL, and bytes that are not UTF-8. The wire lets
// the first through and in process even the second, and a handler that found out from Postgres could only say that the
// service had failed. Fields of type bytes are free.
func checkText(m protoreflect.Message) error {
	path, bad := badText(m)
	if !bad {
		return nil
	}
	return fault.New(fault.Invalid, "`%s` must be UTF-8 text and must not hold the character NUL", path).WithField(path)
}

// badText answers the path of a text in m that cannot be kept, if there is one.
func badText(m protoreflect.Message) (path string, found bool) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			path, found = badEntry(field, value.Map())
		case field.IsList():
			path, found = badElement(field, value.List())
		default:
			path, found = badValue(field, value)
		}
		if found {
			path = string(field.Name()) + path
		}
		return !found
	})
	return path, found
}

func badEntry(field protoreflect.FieldDescriptor, entries protoreflect.Map) (path string, found bool) {
	entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		if _, found = badValue(field.MapKey(), key.Value()); !found {
			path, found = badValue(field.MapValue(), value)
		}
		return !found
	})
	return path, found
}

func badElement(field protoreflect.FieldDescriptor, list protoreflect.List) (path string, found bool) {
	if field.Message() == nil && field.Kind() != protoreflect.StringKind {
		return "", false
	}
	for i := range list.Len() {
		if path, found := badValue(field, list.Get(i)); found {
			return "[" + strconv.Itoa(i) + "]" + path, true
		}
	}
	return "", false
}

func badValue(field protoreflect.FieldDescriptor, value protoreflect.Value) (path string, found bool) {
	switch {
	case field.Message() != nil:
		if path, found = badText(value.Message()); found {
			path = "." + path
		}
		return path, found
	case field.Kind() == protoreflect.StringKind:
		text := value.String()
		return "", strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text)
	default:
		return "", false
	}
}
