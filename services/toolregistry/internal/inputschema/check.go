package inputschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/nearest"
)

// said answers what the library says of the rarer keywords.
func said(e *jsonschema.ValidationError) string {
	return e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

// Check refuses arguments that the schema does not take, with class invalid, the path of the argument and a sentence. The text
// is one JSON object; what is not is refused too.
func (s *Schema) Check(text string) error {
	if !utf8.ValidString(text) {
		return fault.New(fault.Invalid, "The arguments are not valid UTF-8.")
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return fault.New(fault.Invalid, "The arguments must be one JSON object; this text is not JSON: %s.", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "The arguments must be one JSON object; there is more text after it.")
	}
	if _, ok := value.(map[string]any); !ok {
		return fault.New(fault.Invalid, "The arguments must be one JSON object.")
	}
	err := s.validate(value)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return s.refusal(deepest(invalid))
	}
	return nil
}

// validate answers nil for a check that would cost too much: then it is the server's alone.
func (s *Schema) validate(value any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meter.steps = 0
	defer func() {
		if p := recover(); p != nil {
			if cause, ok := p.(error); !ok || !errors.Is(cause, errSteps) {
				panic(p)
			}
			err = nil
		}
	}()
	return s.compiled.Validate(value)
}

// deepest follows the first cause to where something is wrong.
func deepest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	return e
}

func (s *Schema) refusal(e *jsonschema.ValidationError) error {
	path := argumentPath(e.InstanceLocation)
	inner := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	refuse := func(path, format string, args ...any) error {
		return fault.New(fault.Invalid, format, args...).WithField(path)
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		missing := inner(k.Missing[0])
		return refuse(missing, "`%s` is required", missing)
	case *kind.AdditionalProperties:
		name := k.Properties[0]
		text := fmt.Sprintf("unknown argument `%s`", inner(name))
		if meant, ok := nearest.One(name, s.names); ok && path == "" {
			text += fmt.Sprintf("; did you mean `%s`?", meant)
		}
		return fault.New(fault.Invalid, "%s", text).WithField(inner(name)).WithReason("UNKNOWN_ARGUMENT")
	case *kind.Type:
		return refuse(path, "%s must be of type %s, not %s", subject(path), strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return refuse(path, "%s must be one of %s", subject(path), listed(k.Want))
	default:
		return refuse(path, "%s is not as the tool's schema wants it: %s", subject(path), said(e))
	}
}

func subject(path string) string {
	if path == "" {
		return "the arguments"
	}
	return "`" + path + "`"
}

func listed(values []any) string {
	var texts []string
	for _, v := range values {
		text, err := json.Marshal(v)
		if err == nil {
			texts = append(texts, string(text))
		}
	}
	return strings.Join(texts, ", ")
}

// argumentPath writes a location the way our own refusals do: `filters.labels[0]`.
func argumentPath(location []string) string {
	var b strings.Builder
	for _, step := range location {
		if _, err := strconv.Atoi(step); err == nil {
			fmt.Fprintf(&b, "[%s]", step)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}
