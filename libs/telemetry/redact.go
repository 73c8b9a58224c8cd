package telemetry

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/bullpenhq/bullpen/libs/config"
)

// hideSecrets closes the one hole that [config.Secret] cannot close itself: fmt, and so the text handler, prints unexported
// fields of a struct raw. A value whose type holds a secret anywhere is shown as its JSON, which sees exported fields only
// and asks each how to print.
func hideSecrets(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindAny {
		return a
	}
	value := a.Value.Any()
	if value == nil || !holdsSecret(reflect.TypeOf(value), map[reflect.Type]bool{}) {
		return a
	}
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Appendf(nil, "a %T that holds a secret", value)
	}
	a.Value = slog.StringValue(string(text))
	return a
}

// holdsSecret looks through pointers, lists, maps and fields; what an interface holds cannot be known from its type.
func holdsSecret(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == reflect.TypeFor[config.Secret]() {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holdsSecret(t.Elem(), seen)
	case reflect.Map:
		return holdsSecret(t.Key(), seen) || holdsSecret(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsSecret(t.Field(i).Type, seen) {
				return true
			}
		}
	default:
	}
	return false
}
