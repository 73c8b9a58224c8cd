// Package catalogue reads the suite's own tools out of its contracts: every unary RPC that is marked with the option
// `bullpen.tool.v1.tool` is one.
//
// The idea to hold: nothing about a tool is written twice. Its description is the comment of the RPC, an argument's the
// comment of the field, a limit the validation rule that the owning service enforces, and the arguments themselves are the
// request message. Comments come from the embedded descriptors, which have them; messages come from the linked generated
// packages, because only those can be sent to every transport.
//
// A contract that cannot be shown to a model (an enum, a 64-bit number, recursion in a request) makes [Load] fail, which the
// tests of this package turn into a failed build.
package catalogue

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/bullpenhq/bullpen/gen"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
)

// Audiences a tool may be offered to.
const (
	Seat     = "seat"
	Operator = "operator"
)

// Tool is a first-party tool. It is shared and never changed.
type Tool struct {
	// Name is unique in the catalogue.
	Name string
	// Description is what a model reads.
	Description string
	// Service owns the tool; Procedure is the path it is called at.
	Service, Procedure string
	// Input and Output are the generated messages.
	Input, Output protoreflect.MessageType
	// Audiences has at least one of [Seat] and [Operator].
	Audiences []string
	// ReadOnly and the other hints are nil where nothing is claimed.
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
	// Delivers is where a successful call puts something in front of somebody, or empty.
	Delivers string
	// Requires names what the company must run, such as `tracker:native`.
	Requires []string
	// EngineLocal tools are run by the turn engine and never dispatched.
	EngineLocal bool
	// Resumable writes are offered to operators' assistants with the `op_id` of an earlier call.
	Resumable bool
	// Schema is the JSON Schema of the arguments; Arguments counts what it names.
	Schema    json.RawMessage
	Arguments int
	// Digest changes with the name, the description or the schema.
	Digest string
}

// Writes reports whether a call may change something: everything that does not claim to be a read.
func (t *Tool) Writes() bool { return t.ReadOnly == nil || !*t.ReadOnly }

// For reports whether the tool is offered to an audience.
func (t *Tool) For(audience string) bool { return slices.Contains(t.Audiences, audience) }

// Catalogue is every first-party tool of this build. Safe for concurrent use.
type Catalogue struct {
	tools  []*Tool
	byName map[string]*Tool
}

// Tools answers all tools, by service and then in the order of the contract. Do not change the slice.
func (c *Catalogue) Tools() []*Tool { return c.tools }

// Lookup finds a tool by its name.
func (c *Catalogue) Lookup(name string) (*Tool, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// Load reads the catalogue from the linked contracts. It fails on a declaration that cannot be a tool.
func Load() (*Catalogue, error) {
	comments, err := readComments(gen.Descriptors())
	if err != nil {
		return nil, err
	}
	c := &Catalogue{byName: map[string]*Tool{}}
	for _, method := range toolMethods() {
		tool, err := read(method, comments)
		if err != nil {
			return nil, fmt.Errorf("tool of %s: %w", method.FullName(), err)
		}
		if twin, taken := c.byName[tool.Name]; taken {
			return nil, fmt.Errorf("%s and %s both declare the tool %q", twin.Procedure, tool.Procedure, tool.Name)
		}
		c.byName[tool.Name] = tool
		c.tools = append(c.tools, tool)
	}
	return c, nil
}

// toolMethods answers the marked RPCs in a stable order: the registry ranges over its files in a random one.
func toolMethods() []protoreflect.MethodDescriptor {
	var methods []protoreflect.MethodDescriptor
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			service := f.Services().Get(i).Methods()
			for j := range service.Len() {
				if proto.HasExtension(service.Get(j).Options(), toolv1.E_Tool) {
					methods = append(methods, service.Get(j))
				}
			}
		}
		return true
	})
	slices.SortFunc(methods, func(a, b protoreflect.MethodDescriptor) int {
		return cmp.Or(strings.Compare(string(a.Parent().FullName()), string(b.Parent().FullName())), cmp.Compare(a.Index(), b.Index()))
	})
	return methods
}

func read(method protoreflect.MethodDescriptor, comments comments) (*Tool, error) {
	declared, ok := proto.GetExtension(method.Options(), toolv1.E_Tool).(*toolv1.Tool)
	if !ok {
		return nil, fmt.Errorf("the option is not a bullpen.tool.v1.Tool")
	}
	if err := checkDeclaration(method, declared); err != nil {
		return nil, err
	}
	input, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		return nil, err
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return nil, err
	}
	schema, err := converter{comments: comments}.root(method.Input())
	if err != nil {
		return nil, err
	}
	text, err := marshalSchema(schema)
	if err != nil {
		return nil, err
	}
	tool := &Tool{
		Name:        declared.GetName(),
		Description: comments[method.FullName()],
		Service:     serviceOf(method),
		Procedure:   "/" + string(method.Parent().FullName()) + "/" + string(method.Name()),
		Input:       input,
		Output:      output,
		Audiences:   audiences(declared),
		ReadOnly:    declared.ReadOnly,
		Destructive: declared.Destructive,
		Idempotent:  declared.Idempotent,
		OpenWorld:   declared.OpenWorld,
		Delivers:    declared.GetDelivers(),
		Requires:    declared.GetRequires(),
		EngineLocal: declared.GetEngineLocal(),
		Resumable:   declared.GetResumable(),
		Schema:      text,
		Arguments:   len(schema.Properties),
	}
	tool.Digest = digest(tool.Name, tool.Description, string(tool.Schema))
	return tool, nil
}

// digest is how a change of what a model reads of a tool is noticed.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// toolName is the pattern that every model provider takes.
var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{1,63}$`)

func checkDeclaration(method protoreflect.MethodDescriptor, declared *toolv1.Tool) error {
	switch {
	case !toolName.MatchString(declared.GetName()):
		return fmt.Errorf("the name %q does not match %s", declared.GetName(), toolName)
	case method.IsStreamingClient() || method.IsStreamingServer():
		return fmt.Errorf("a stream cannot be a tool")
	case len(audiences(declared)) == 0:
		return fmt.Errorf("it is offered to nobody")
	case declared.GetReadOnly() != (idempotency(method) == descriptorpb.MethodOptions_NO_SIDE_EFFECTS):
		return fmt.Errorf("read_only and idempotency_level disagree")
	case declared.GetResumable() && declared.GetReadOnly():
		return fmt.Errorf("a read has nothing to resume")
	}
	return nil
}

func idempotency(method protoreflect.MethodDescriptor) descriptorpb.MethodOptions_IdempotencyLevel {
	options, ok := method.Options().(*descriptorpb.MethodOptions)
	if !ok {
		return descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
	}
	return options.GetIdempotencyLevel()
}

func audiences(declared *toolv1.Tool) []string {
	var names []string
	for _, audience := range declared.GetAudiences() {
		switch audience {
		case toolv1.Audience_AUDIENCE_SEAT:
			names = append(names, Seat)
		case toolv1.Audience_AUDIENCE_OPERATOR:
			names = append(names, Operator)
		default:
		}
	}
	return names
}

// serviceOf answers `tracker` for an RPC of the package `bullpen.tracker.v1`: the service that owns it.
func serviceOf(method protoreflect.MethodDescriptor) string {
	parts := strings.Split(string(method.ParentFile().Package()), ".")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// marshalSchema writes a schema without escaping the characters that only HTML minds.
func marshalSchema(schema any) (json.RawMessage, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	for escaped, plain := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		text = bytes.ReplaceAll(text, []byte(escaped), []byte(plain))
	}
	return text, nil
}
