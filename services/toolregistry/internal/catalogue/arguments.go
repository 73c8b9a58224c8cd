package catalogue

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Reasons of the faults of [Tool.Decode], all of class invalid.
const (
	// ReasonUnknownArgument: the tool has no argument of that name.
	ReasonUnknownArgument = "UNKNOWN_ARGUMENT"
	// ReasonMalformed: the text is not one JSON object.
	ReasonMalformed = "MALFORMED_ARGUMENTS"
)

// Decode reads arguments as a model wrote them into the tool's request and checks the contract's rules. Empty text means no
// arguments. Faults are of class invalid; they name the first argument at fault and say what would be right.
//
// It takes what protojson takes, with three differences: camelCase names and the character NUL are refused, and so is a value
// of the wrong shape, with a sentence where protojson has none. `null` is an argument left out; a whole number may be written
// as a string or with an exponent.
func (t *Tool) Decode(text string) (proto.Message, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	if !utf8.ValidString(text) {
		return nil, malformed("The arguments are not valid UTF-8.")
	}
	object, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	message := t.Input.New().Interface()
	if err := (walk{}).object(object, t.Input.Descriptor(), ""); err != nil {
		return nil, err
	}
	if err := (protojson.UnmarshalOptions{}).Unmarshal([]byte(text), message); err != nil {
		return nil, unreadable(text, err)
	}
	if err := rpc.Validate(message); err != nil {
		return nil, err
	}
	return message, nil
}

func parseObject(text string) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, malformed("The arguments must be one JSON object; this text ends in the middle of it.")
		}
		return nil, malformed("The arguments must be one JSON object; this text is not JSON: %s.", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, malformed("The arguments must be one JSON object, not %s.", kindOf(value))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed("The arguments must be one JSON object; there is more text after it.")
	}
	return object, nil
}

// unreadable names what only protojson notices: encoding/json keeps the last of two equal names and mends half a character.
func unreadable(text string, cause error) error {
	if name, twice := repeatedName(text); twice {
		return malformed("`%s` is given twice; give it once.", name).WithField(name).WithCause(cause)
	}
	return malformed("The arguments cannot be read: a string in them holds half of a surrogate pair such as \\ud83d, or a number is " +
		"out of range. Write the character itself.").WithCause(cause)
}

// repeatedName finds a name that one object has twice.
func repeatedName(text string) (string, bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return repeatedIn(decoder)
}

func repeatedIn(decoder *json.Decoder) (string, bool) {
	token, err := decoder.Token()
	if err != nil {
		return "", false
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return "", false
	}
	seen := map[string]bool{}
	for decoder.More() {
		if delim == '{' {
			key, err := decoder.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return "", false
			}
			if seen[name] {
				return name, true
			}
			seen[name] = true
		}
		if name, twice := repeatedIn(decoder); twice {
			return name, true
		}
	}
	_, _ = decoder.Token() // the closing delimiter; a failure shows at the next token
	return "", false
}

func malformed(format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, format, args...).WithReason(ReasonMalformed)
}
