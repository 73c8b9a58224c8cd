package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/opid"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// listing is the catalogue as it is written, made once for each surface.
type listing struct {
	surface *surface.Surface
	tools   json.RawMessage
	digest  string
}

// listing answers the catalogue as it is now, in an order that only a change of it changes.
func (s *Server) listing(ctx context.Context) *listing {
	seen := s.Surface(ctx)
	if made := s.listed.Load(); made != nil && made.surface == seen {
		return made
	}
	made := &listing{surface: seen}
	rows := []json.RawMessage{}
	if seen != nil {
		for _, tool := range seen.Tools() {
			if offered(tool) {
				rows = append(rows, s.row(tool))
			}
		}
	}
	made.tools = array(rows)
	sum := sha256.Sum256(made.tools)
	made.digest = hex.EncodeToString(sum[:])
	s.listed.Store(made)
	return made
}

// offered reports a tool that an operator can call.
func offered(tool *surface.Tool) bool {
	return tool.Quarantine == "" && tool.Change != surface.Held && !tool.EngineLocal && slices.Contains(tool.Audiences, catalogue.Operator)
}

func (s *Server) listTools(ctx context.Context, q *request) (reply, *jsonrpc.Error) {
	if failed := noCursor(q); failed != nil {
		return reply{}, failed
	}
	return reply{result: rawjson.Object{}.With("tools", s.listing(ctx).tools), cacheable: true}, nil
}

// row writes a tool: one of ours from its contract, a server's as the server wrote it, under its name here and with the
// operator's word on what it does.
func (s *Server) row(tool *surface.Tool) json.RawMessage {
	if tool.Source == surface.Builtin {
		return s.builtinRow(tool)
	}
	text, err := s.Cleaner.JSON(tool.JSON)
	if err != nil {
		text = tool.JSON
	}
	object, err := rawjson.Parse([]byte(text))
	if err != nil {
		return rawjson.Object{}.With("name", rawjson.Quote(tool.Name)).With("description", rawjson.Quote(tool.Description)).
			With("inputSchema", json.RawMessage(tool.Schema)).Bytes()
	}
	if name, _ := object.Text("name"); name != tool.Name {
		object = object.With("name", rawjson.Quote(tool.Name))
	}
	written, _ := object.Object("annotations")
	if annotated := annotations(written, tool.Hints); len(annotated) > 0 {
		object = object.With("annotations", annotated.Bytes())
	}
	return object.Bytes()
}

func (s *Server) builtinRow(tool *surface.Tool) json.RawMessage {
	object := rawjson.Object{}.With("name", rawjson.Quote(tool.Name))
	if tool.Title != "" {
		object = object.With("title", rawjson.Quote(tool.Title))
	}
	schema := json.RawMessage(tool.Schema)
	if s.Resumable(tool.Name) {
		schema = withOpID(schema)
	}
	return object.With("description", rawjson.Quote(tool.Description)).With("inputSchema", schema).
		With("annotations", annotations(nil, tool.Hints).Bytes()).Bytes()
}

// annotations writes the hints over what a server wrote. One that nobody claims stays unset: it is not a no.
func annotations(written rawjson.Object, hints surface.Hints) rawjson.Object {
	for _, hint := range []struct {
		name  string
		value *bool
	}{
		{"readOnlyHint", hints.ReadOnly},
		{"destructiveHint", hints.Destructive},
		{"idempotentHint", hints.Idempotent},
		{"openWorldHint", hints.OpenWorld},
	} {
		if hint.value == nil {
			continue
		}
		text := json.RawMessage("false")
		if *hint.value {
			text = json.RawMessage("true")
		}
		if string(written.Get(hint.name)) != string(text) {
			written = written.With(hint.name, text)
		}
	}
	return written
}

// opIDSchema describes the argument that only this surface has.
const opIDSchema = `{"type":"string","maxLength":128,"description":"Leave it out for a new call. To finish a call whose answer came back unknown ` +
	`or never came, send the very same call again with the op_id that it answered: it lands once. With any other argument it is refused."}`

func withOpID(schema json.RawMessage) json.RawMessage {
	object, err := rawjson.Parse(schema)
	if err != nil {
		return schema
	}
	properties, _ := object.Object("properties")
	return object.With("properties", properties.With("op_id", json.RawMessage(opIDSchema)).Bytes()).Bytes()
}

// callTool passes a call through the door.
func (s *Server) callTool(ctx context.Context, q *request) (reply, *jsonrpc.Error) {
	name, ok := q.params.Text("name")
	if !ok || name == "" {
		return reply{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "`name` must be the name of a tool.")
	}
	arguments, ok := q.params.Object("arguments")
	if !ok && q.params.Has("arguments") {
		return reply{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "`arguments` must be an object in which no name stands twice.")
	}
	c := q.conversation()
	made := door.Request{Tool: name, Arguments: string(arguments.Bytes()), Conversation: &c}
	if q.params.Has("arguments") {
		made.Arguments = string(q.params.Get("arguments"))
	}
	opID := ""
	if s.Resumable(name) {
		brought := arguments.Get("op_id")
		if brought != nil {
			made.Arguments = string(arguments.Without("op_id").Bytes())
		}
		made.Operation = func(tool *catalogue.Tool, input proto.Message) (id string, err error) {
			opID, err = s.operation(q, tool.Name, brought, ops.Digest(input))
			return opID, err
		}
	}
	answer, err := s.Door.Call(ctx, q.from, made)
	if err != nil {
		return refusal(err, opID)
	}
	return s.answered(answer, opID)
}

// operation is the one that a client brings back, or a new one.
func (s *Server) operation(q *request, tool string, brought json.RawMessage, digest []byte) (string, error) {
	call := opid.Call{Holder: holderOf(q.from), Tool: tool, Digest: digest}
	if brought == nil || string(brought) == "null" {
		return s.opIDs.Mint(call), nil
	}
	id := ""
	if err := json.Unmarshal(brought, &id); err != nil {
		return "", fault.New(fault.Invalid, "`op_id` must be a string.").WithField("op_id")
	}
	if err := s.opIDs.Check(id, call); err != nil {
		return "", err // whatever it is, it names no operation
	}
	return id, nil
}

// answered writes what a tool answered. A server's result is its own.
func (s *Server) answered(a *door.Answer, opID string) (reply, *jsonrpc.Error) {
	switch {
	case a.ProtocolError:
		failed := &jsonrpc.Error{}
		if err := json.Unmarshal([]byte(a.JSON), failed); err != nil || failed.Code == 0 {
			return reply{}, jsonrpc.Errorf(jsonrpc.InternalError, "The server failed without an error that can be read.")
		}
		return reply{}, failed
	case a.JSON == "":
		return reply{result: content(a.Text, true)}, nil
	}
	object, err := rawjson.Parse([]byte(a.JSON))
	if err != nil {
		return reply{result: content("The tool's answer cannot be read: "+err.Error()+".", true)}, nil
	}
	if a.Source != surface.Builtin {
		return reply{result: object, inputRequired: a.InputRequired}, nil
	}
	if opID != "" {
		object = object.With("op_id", rawjson.Quote(opID))
	}
	return reply{result: content(string(object.Bytes()), false).With("structuredContent", object.Bytes())}, nil
}

// content is a result of one text.
func content(text string, failed bool) rawjson.Object {
	block := rawjson.Object{}.With("type", rawjson.Quote("text")).With("text", rawjson.Quote(text))
	result := rawjson.Object{}.With("content", array([]json.RawMessage{block.Bytes()}))
	if failed {
		result = result.With("isError", json.RawMessage("true"))
	}
	return result
}

// refusal writes a refused call: an error of the protocol for a tool that is not there, otherwise a result that a model reads,
// with the class beside the sentence for a program.
func refusal(err error, opID string) (reply, *jsonrpc.Error) {
	f, ok := fault.As(err)
	if !ok {
		return reply{}, jsonrpc.Errorf(jsonrpc.InternalError, "The call failed; trying again later may work.")
	}
	if f.Class == fault.NotFound && f.Field == "tool" {
		return reply{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "%s", f.Message)
	}
	text := f.Message
	if f.Outcome == fault.OutcomeUnknown && opID != "" {
		text = strings.TrimSuffix(text, ".") + ". Send the same call again with op_id \"" + opID + "\": it lands once."
	}
	said := rawjson.Object{}.With("class", rawjson.Quote(string(f.Class))).With("message", rawjson.Quote(f.Message))
	for _, member := range []rawjson.Member{
		{Name: "field", Value: rawjson.Quote(f.Field)},
		{Name: "reason", Value: rawjson.Quote(f.Reason)},
		{Name: "outcome", Value: rawjson.Quote(f.Outcome)},
		{Name: "op_id", Value: rawjson.Quote(opID)},
	} {
		if string(member.Value) != `""` {
			said = said.With(member.Name, member.Value)
		}
	}
	if facts, err := json.Marshal(f.Facts); err == nil && len(f.Facts) > 0 {
		said = said.With("facts", facts)
	}
	return reply{result: content(text, true).With("structuredContent", rawjson.Object{}.With("error", said.Bytes()).Bytes())}, nil
}
