package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// maxSentences bounds a refusal of a request with many faults; the rest is counted.
const maxSentences = 5

// validated lets no message reach a handler that is too large, unreadable or outside the rules of its contract, and none leave
// it that its caller could not read.
func validated(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		return next(ctx, spec, &validatedStream{ServerStream: stream, spec: spec})
	}
}

type validatedStream struct {
	connect.ServerStream
	spec connect.Spec
}

func (s *validatedStream) Send(msg any) error {
	if m, ok := msg.(proto.Message); ok && proto.Size(m) > MaxResponseBytes {
		return fault.New(fault.Unavailable, "The answer is larger than the %d MiB a call may carry.", MaxResponseBytes>>20).
			WithReason("RESPONSE_TOO_LARGE").WithOutcome(outcomeOf(s.spec))
	}
	return s.ServerStream.Send(msg)
}

func (s *validatedStream) Receive(msg any) error {
	if err := s.ServerStream.Receive(msg); err != nil {
		return unreadable(err)
	}
	m, ok := msg.(proto.Message)
	if !ok {
		return fmt.Errorf("request is a %T, not a protobuf message", msg)
	}
	// The transport has counted already what came over the wire; in process nobody has.
	if proto.Size(m) > MaxRequestBytes {
		return tooLarge()
	}
	return Validate(m)
}

// unreadable gives the transport's complaints about a request the form of refusals.
func unreadable(err error) error {
	c, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	switch c.Code() {
	case connect.CodeResourceExhausted:
		return tooLarge()
	case connect.CodeInvalidArgument:
		if f, ok := fault.As(err); ok {
			return f
		}
		return fault.New(fault.Invalid, "The request cannot be read as the message this call takes.").WithCause(err)
	default:
		return err
	}
}

func tooLarge() *fault.Error {
	return fault.New(fault.Invalid, "The request is larger than the %d MiB a call may carry.", MaxRequestBytes>>20).WithReason("REQUEST_TOO_LARGE")
}

// Validate checks m against the rules of its contract, after those that hold for all text, and refuses with class invalid, in
// sentences that name arguments by their snake_case path. Field is the first argument named.
func Validate(m proto.Message) error {
	if err := checkText(m.ProtoReflect()); err != nil {
		return err
	}
	err := protovalidate.Validate(m)
	if err == nil {
		return nil
	}
	violated, ok := errors.AsType[*protovalidate.ValidationError](err)
	if !ok {
		return fmt.Errorf("check %s against its rules: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	var sentences []string
	field := ""
	for i, v := range violated.Violations {
		path := violatedPath(v)
		if field == "" {
			field = path
		}
		if i < maxSentences {
			sentences = append(sentences, sentence(path, v))
		}
	}
	text := strings.Join(sentences, "; ")
	if more := len(violated.Violations) - maxSentences; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fault.New(fault.Invalid, "%s", text).WithField(field)
}

// violatedPath answers the argument's path. That of a oneof ends with the oneof's own name, which no caller writes: it is
// dropped.
func violatedPath(v *protovalidate.Violation) string {
	elements := v.Proto.GetField().GetElements()
	path := protovalidate.FieldPathString(v.Proto.GetField())
	if n := len(elements); n > 0 && elements[n-1].GetFieldNumber() == 0 {
		path = strings.TrimSuffix(strings.TrimSuffix(path, elements[n-1].GetFieldName()), ".")
	}
	return path
}

// sentence answers a rule's own words where a contract wrote them, and otherwise the standard ones with the argument named.
func sentence(path string, v *protovalidate.Violation) string {
	message := v.Proto.GetMessage()
	if path == "" || ownWords(v) {
		return message
	}
	switch v.Proto.GetRuleId() {
	case "string.min_len":
		if v.RuleValue.IsValid() && v.RuleValue.Uint() == 1 {
			message = "must not be empty"
		}
	case "string.pattern":
		if v.FieldValue.IsValid() && v.FieldValue.String() == "" {
			message = "must not be empty"
		} else if v.RuleValue.IsValid() {
			message = fmt.Sprintf("must have the form `%s`", v.RuleValue)
		}
	case "repeated.unique":
		message = "must name nothing twice"
	case "string.in":
		if allowed := choices(v.RuleValue); allowed != "" {
			message = "must be one of " + allowed
		}
	}
	message = strings.TrimPrefix(message, "value ")
	return fmt.Sprintf("`%s` %s", path, message)
}

// choices names the members of a closed set. The empty text among them says that the argument may be left out, so it is not
// one to write.
func choices(set protoreflect.Value) string {
	list, ok := set.Interface().(protoreflect.List)
	if !ok {
		return ""
	}
	var names []string
	for i := range list.Len() {
		if name := list.Get(i).String(); name != "" {
			names = append(names, "`"+name+"`")
		}
	}
	return strings.Join(names, ", ")
}

// ownWords reports whether a rule was written as an expression with a message, not taken from the standard ones.
func ownWords(v *protovalidate.Violation) bool {
	elements := v.Proto.GetRule().GetElements()
	return len(elements) > 0 && strings.HasPrefix(elements[0].GetFieldName(), "cel")
}

// Warm compiles the rules of every request that s takes, so that no caller waits for it: the first use of a rule costs tens of
// milliseconds. It fails on a rule that does not compile. Call it after the last registration.
func Warm(s *connect.Server) error {
	for spec := range s.Specs() {
		method, ok := spec.Schema.(protoreflect.MethodDescriptor)
		if !ok {
			continue
		}
		t, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
		if err != nil {
			continue
		}
		if err := Validate(t.New().Interface()); err != nil && fault.ClassOf(err) != fault.Invalid {
			return fmt.Errorf("rules of %s: %w", spec.Procedure, err)
		}
	}
	return nil
}
