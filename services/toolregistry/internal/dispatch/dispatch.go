// Package dispatch carries a checked call to whoever runs the tool: the service that owns it, or mcphost for an MCP server's.
//
// It knows one thing that nobody else does: whether the far end said what happened. A failure that the far end answered is
// passed on with its class. When nobody answered, a write may have landed, and the fault says outcome `unknown`; a read has
// changed nothing and is merely unavailable.
package dispatch

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// grace is how much longer than a server we wait, so that mcphost can say itself that the server was too slow.
const grace = 2 * time.Second

// Host calls tools of MCP servers; mcphost's generated client is one.
type Host interface {
	CallServerTool(ctx context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error)
	Exchange(ctx context.Context, req *mcphostv1.ExchangeRequest) (mcphostv1connect.McpHostServiceExchangeClientStream, error)
}

// Dispatcher carries calls. Safe for concurrent use.
type Dispatcher struct {
	client func(service string) *connect.Client
	host   Host
}

// New makes a dispatcher. client answers a signed client for a service of ours.
func New(client func(service string) *connect.Client, host Host) *Dispatcher {
	return &Dispatcher{client: client, host: host}
}

// Answer is what a tool answered, not cleaned yet.
type Answer struct {
	// JSON is the result as the tool gave it.
	JSON string
	// Failed says that an MCP server called its own answer a failure.
	Failed bool
	// ProtocolError says that the answer is an error of the protocol and not a result; InputRequired that the call is not over, but
	// wants something of its caller first. Both only in a [Conversation].
	ProtocolError, InputRequired bool
	// Receipt is what a write of ours answered; nil for reads and for MCP tools.
	Receipt *toolv1.Receipt
}

// Builtin calls a tool of ours as principal. operation is empty for reads.
func (d *Dispatcher) Builtin(ctx context.Context, tool *catalogue.Tool, in proto.Message, principal *rpc.Principal, operation string, timeout time.Duration) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx = rpc.As(ctx, principal)
	if operation != "" {
		ctx = rpc.WithOperation(ctx, operation)
	}
	out := tool.Output.New().Interface()
	spec := connect.Spec{StreamType: connect.StreamTypeUnary, Procedure: tool.Procedure}
	if !tool.Writes() {
		spec.IdempotencyLevel = connect.IdempotencyNoSideEffects
	}
	if err := d.client(tool.Service).CallUnary(ctx, spec, in, out); err != nil {
		return Answer{}, settle(err, tool.Writes(), operation)
	}
	text, err := rpc.AnswerJSON(out)
	if err != nil {
		return Answer{}, fmt.Errorf("write the result of %s: %w", tool.Name, err)
	}
	answer := Answer{JSON: string(text)}
	if tool.Writes() {
		answer.Receipt = receiptOf(out)
	}
	return answer, nil
}

// Server calls a tool of an MCP server as seat. The arguments go on byte for byte.
func (d *Dispatcher) Server(ctx context.Context, tool *surface.Tool, arguments, seat, operation string, timeout time.Duration) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	answer, err := d.host.CallServerTool(ctx, &mcphostv1.CallServerToolRequest{
		Server: tool.Server, Tool: tool.Raw, ArgumentsJson: arguments, Seat: seat, Timeout: durationpb.New(timeout),
	})
	if err != nil {
		return Answer{}, settle(err, !tool.Hints.Reads(), operation)
	}
	return Answer{JSON: answer.GetResultJson(), Failed: answer.GetFailed()}, nil
}

// settle turns the error of a call into a fault that says no more than is known.
func settle(err error, writes bool, operation string) error {
	f := rpc.FromError(err)
	if !writes {
		return f.WithOutcome("")
	}
	if f.Operation == "" {
		f = f.WithOperation(operation)
	}
	return f
}

// receiptOf reads the three fields that every write of ours answers with, flat in its response; nil when it has no outcome.
func receiptOf(m proto.Message) *toolv1.Receipt {
	r := m.ProtoReflect()
	outcome, ok := field(r, "outcome", protoreflect.StringKind)
	if !ok {
		return nil
	}
	receipt := &toolv1.Receipt{Outcome: outcome.String()}
	if position, ok := field(r, "position", protoreflect.StringKind); ok {
		receipt.Position = position.String()
	}
	if version, ok := field(r, "version", protoreflect.Int32Kind); ok {
		receipt.Version = int32(version.Int())
	}
	return receipt
}

func field(m protoreflect.Message, name protoreflect.Name, kind protoreflect.Kind) (protoreflect.Value, bool) {
	fd := m.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != kind || fd.IsList() {
		return protoreflect.Value{}, false
	}
	return m.Get(fd), true
}
