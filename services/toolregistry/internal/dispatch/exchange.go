package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// InputRequired is the `resultType` of a result that asks its caller for something instead of ending the call.
const InputRequired = "input_required"

// Conversation is what a caller who speaks the protocol himself adds to a call: what he can be asked, what he answered, and where
// he wants to hear of the call before it ends.
type Conversation struct {
	// Meta is the `_meta` of his request, without what belongs to his own connection; nil for none.
	Meta json.RawMessage
	// InputResponses and RequestState are what he brings to a call that asked for input; nil for a first call.
	InputResponses, RequestState json.RawMessage
	// Capabilities are what he can be asked for, JSON; LogLevel the least severe message that he wants, empty for none.
	Capabilities, LogLevel string
	// Notify is told each notification about the call, JSON, while it runs. It is never called at the same time twice.
	Notify func(notification string)
}

// Request is a request of the protocol to a server as nobody, which shared servers take.
type Request struct {
	Server, Method string
	Params         rawjson.Object
	Timeout        time.Duration
	Conversation
}

// Reply is how a server ends a request: with a result, or with an error of the protocol. Both are JSON as the server wrote them.
type Reply struct{ Result, Error string }

// Exchange sends a request and hands on what the server says about it until it ends. Its error is that of the way there: when the
// server answered with an error of the protocol, that is in the reply.
func Exchange(ctx context.Context, host Host, seat string, r Request) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout+grace)
	defer cancel()
	params := r.Params
	for name, value := range map[string]json.RawMessage{"_meta": r.Meta, "inputResponses": r.InputResponses, "requestState": r.RequestState} {
		if value != nil {
			params = params.With(name, value)
		}
	}
	stream, err := host.Exchange(ctx, &mcphostv1.ExchangeRequest{
		Server: r.Server, Seat: seat, Method: r.Method, ParamsJson: string(params.Bytes()), Timeout: durationpb.New(r.Timeout),
		ClientCapabilitiesJson: r.Capabilities, LogLevel: r.LogLevel,
	})
	if err != nil {
		return Reply{}, err
	}
	defer stream.Close()
	return receive(stream, r.Notify)
}

func receive(stream mcphostv1connect.McpHostServiceExchangeClientStream, notify func(string)) (Reply, error) {
	for {
		message, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return Reply{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return Reply{}, err
		}
		switch said := message.GetMessage().(type) {
		case *mcphostv1.ExchangeResponse_NotificationJson:
			if notify != nil {
				notify(said.NotificationJson)
			}
		case *mcphostv1.ExchangeResponse_ResultJson:
			return Reply{Result: said.ResultJson}, nil
		case *mcphostv1.ExchangeResponse_ErrorJson:
			return Reply{Error: said.ErrorJson}, nil
		default: // of a newer mcphost
		}
	}
}

// Converse calls a tool of an MCP server for a caller who speaks the protocol.
func (d *Dispatcher) Converse(ctx context.Context, tool *surface.Tool, arguments, seat, operation string, timeout time.Duration, c Conversation) (Answer, error) {
	reply, err := Exchange(ctx, d.host, seat, Request{
		Server: tool.Server, Method: "tools/call", Timeout: timeout, Conversation: c,
		Params: rawjson.Object{}.With("name", rawjson.Quote(tool.Raw)).With("arguments", json.RawMessage(arguments)),
	})
	if err != nil {
		return Answer{}, settle(err, !tool.Hints.Reads(), operation)
	}
	if reply.Error != "" {
		return Answer{JSON: reply.Error, Failed: true, ProtocolError: true}, nil
	}
	var end struct {
		ResultType string `json:"resultType"`
		IsError    bool   `json:"isError"`
	}
	// A result that is not JSON is told so by whoever cleans it.
	_ = json.Unmarshal([]byte(reply.Result), &end)
	return Answer{JSON: reply.Result, Failed: end.IsError, InputRequired: end.ResultType == InputRequired}, nil
}
