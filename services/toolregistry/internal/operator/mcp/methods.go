package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/upstream"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// request is what a client asks, whichever way it came.
type request struct {
	from   *rpc.Principal
	method string
	params rawjson.Object
	// capabilities are what the client can be asked for, JSON; logLevel the least severe message that it wants, empty for none.
	capabilities, logLevel string
	// progressToken is as the client wrote it; nil when it wants no progress.
	progressToken json.RawMessage
	// inputResponses and requestState are what it brings to a request that asked for input, the state as the server made it.
	inputResponses, requestState json.RawMessage
	// notify sends a notification about the request.
	notify func(method string, params json.RawMessage)
	modern bool
}

// reply is a result as its server wrote it.
type reply struct {
	result rawjson.Object
	// inputRequired says that the request is not over; cacheable that the result may be kept for a while.
	inputRequired, cacheable bool
}

// handle answers the methods that both eras know.
func (s *Server) handle(ctx context.Context, q *request) (reply, *jsonrpc.Error) {
	if capability := capabilityFor(q.method); capability != "" && !s.capabilities(ctx, q.modern).Has(capability) {
		return reply{}, unknownMethod(q.method)
	}
	switch q.method {
	case "server/discover":
		return s.discover(ctx)
	case "tools/list":
		return s.listTools(ctx, q)
	case "tools/call":
		return s.callTool(ctx, q)
	case "prompts/list":
		return s.list(ctx, q, upstream.Prompts)
	case "resources/list":
		return s.list(ctx, q, upstream.Resources)
	case "resources/templates/list":
		return s.list(ctx, q, upstream.Templates)
	case "prompts/get":
		return s.getPrompt(ctx, q)
	case "resources/read":
		return s.readResource(ctx, q)
	case "completion/complete":
		return s.completeArgument(ctx, q)
	default:
		return reply{}, unknownMethod(q.method)
	}
}

// capabilityFor is what must be declared for a method to exist; empty for one that always does.
func capabilityFor(method string) string {
	switch method {
	case "prompts/list", "prompts/get":
		return "prompts"
	case "resources/list", "resources/templates/list", "resources/read":
		return "resources"
	case "completion/complete":
		return "completions"
	default:
		return ""
	}
}

// capabilities are the tools, and what any of the shared servers can do.
func (s *Server) capabilities(ctx context.Context, isModern bool) rawjson.Object {
	has := map[string]bool{}
	subscribe := false
	for _, server := range s.Upstreams.Servers(ctx) {
		has["prompts"] = has["prompts"] || server.Capabilities.Prompts != nil
		has["completions"] = has["completions"] || server.Capabilities.Completions != nil
		has["logging"] = has["logging"] || server.Capabilities.Logging != nil
		if server.Capabilities.Resources != nil {
			has["resources"] = true
			subscribe = subscribe || server.Capabilities.Resources.Subscribe
		}
	}
	declared := rawjson.Object{}.With("tools", json.RawMessage(`{"listChanged":true}`))
	for _, name := range []string{"completions", "logging"} {
		if has[name] {
			declared = declared.With(name, json.RawMessage("{}"))
		}
	}
	if has["prompts"] {
		declared = declared.With("prompts", json.RawMessage(`{"listChanged":true}`))
	}
	if has["resources"] {
		resources := rawjson.Object{}.With("listChanged", json.RawMessage("true"))
		if subscribe {
			resources = resources.With("subscribe", json.RawMessage("true"))
		}
		declared = declared.With("resources", resources.Bytes())
	}
	return declared
}

// instructions joins what the shared servers say to their users.
func (s *Server) instructions(ctx context.Context) string {
	parts := []string{"The tools of this company: its work tracker, its knowledge base and the servers that it shares. What you write is written in the name of your token."}
	for _, server := range s.Upstreams.Servers(ctx) {
		if server.Instructions == "" {
			continue
		}
		if clean, err := s.Cleaner.Text(server.Instructions); err == nil {
			parts = append(parts, server.Name+": "+clean)
		}
	}
	return strings.Join(parts, "\n\n")
}

func (s *Server) discover(ctx context.Context) (reply, *jsonrpc.Error) {
	supported, err := json.Marshal(versions())
	if err != nil {
		return reply{}, jsonrpc.Errorf(jsonrpc.InternalError, "The revisions cannot be written.")
	}
	result := rawjson.Object{}.With("supportedVersions", supported).With("capabilities", s.capabilities(ctx, true).Bytes()).
		With("instructions", rawjson.Quote(s.instructions(ctx)))
	return reply{result: result, cacheable: true}, nil
}

// list answers a list whole, so there is no cursor that a client could have.
func (s *Server) list(ctx context.Context, q *request, kind upstream.Kind) (reply, *jsonrpc.Error) {
	if failed := noCursor(q); failed != nil {
		return reply{}, failed
	}
	items, failed := s.Upstreams.List(ctx, kind)
	if failed != nil {
		return reply{}, failed
	}
	rows := make([]json.RawMessage, 0, len(items))
	for _, item := range items {
		rows = append(rows, item.JSON)
	}
	return reply{result: rawjson.Object{}.With(kind.Member(), array(rows)), cacheable: true}, nil
}

func noCursor(q *request) *jsonrpc.Error {
	if q.params.Has("cursor") {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "This list has one page; leave `cursor` out.")
	}
	return nil
}

// array writes documents as one, each as it is.
func array(rows []json.RawMessage) json.RawMessage {
	text := []byte{'['}
	for i, row := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, row...)
	}
	return append(text, ']')
}

func (s *Server) getPrompt(ctx context.Context, q *request) (reply, *jsonrpc.Error) {
	name, _ := q.params.Text("name")
	prompt, ok := s.Upstreams.Find(ctx, upstream.Prompts, name)
	if !ok {
		return reply{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "There is no prompt %q.", name)
	}
	return s.ask(ctx, q, prompt.Server, q.params.With("name", rawjson.Quote(prompt.Raw)))
}

// readResource asks the server that has the resource, or one after the other where nobody lists it.
func (s *Server) readResource(ctx context.Context, q *request) (reply, *jsonrpc.Error) {
	uri, ok := q.params.Text("uri")
	if !ok {
		return reply{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "`uri` must be a string.")
	}
	failed := notFound(q, uri)
	for _, server := range s.Upstreams.Owners(ctx, uri) {
		answer, refused := s.ask(ctx, q, server, q.params)
		if refused == nil {
			answer.cacheable = !answer.inputRequired
			return answer, nil
		}
		if !isNotFound(refused) {
			return reply{}, refused
		}
		failed = refused
		if q.modern {
			failed.Code = jsonrpc.InvalidParams
		}
	}
	return reply{}, failed
}

func notFound(q *request, uri string) *jsonrpc.Error {
	code := jsonrpc.ResourceNotFound
	if q.modern {
		code = jsonrpc.InvalidParams
	}
	return jsonrpc.Errorf(code, "There is no resource %q.", uri).WithData(map[string]string{"uri": uri})
}

func isNotFound(failed *jsonrpc.Error) bool {
	return failed.Code == jsonrpc.InvalidParams || failed.Code == jsonrpc.ResourceNotFound
}

func (s *Server) completeArgument(ctx context.Context, q *request) (reply, *jsonrpc.Error) {
	ref, _ := q.params.Object("ref")
	if name, ok := ref.Text("name"); ok {
		if prompt, found := s.Upstreams.Find(ctx, upstream.Prompts, name); found {
			return s.ask(ctx, q, prompt.Server, q.params.With("ref", ref.With("name", rawjson.Quote(prompt.Raw)).Bytes()))
		}
		return reply{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "There is no prompt %q.", name)
	}
	uri, _ := ref.Text("uri")
	if template, found := s.Upstreams.Find(ctx, upstream.Templates, uri); found {
		return s.ask(ctx, q, template.Server, q.params)
	}
	return reply{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "`ref` must name a prompt, or the template of a resource, that is listed.")
}

// ask sends a request on to a server.
func (s *Server) ask(ctx context.Context, q *request, server upstream.Server, params rawjson.Object) (reply, *jsonrpc.Error) {
	text, failed := s.Upstreams.Ask(ctx, server, dispatch.Request{
		Method: q.method, Params: params.Without("_meta", "inputResponses", "requestState"), Conversation: q.conversation(),
	})
	if failed != nil {
		return reply{}, failed
	}
	result, err := rawjson.Parse(text)
	if err != nil {
		return reply{}, jsonrpc.Errorf(jsonrpc.InternalError, "The server `%s` answered a result that cannot be read: %s.", server.Name, err)
	}
	kind, _ := result.Text("resultType")
	return reply{result: result, inputRequired: kind == dispatch.InputRequired}, nil
}

// conversation is what the client adds to a request that goes on to a server.
func (q *request) conversation() dispatch.Conversation {
	c := dispatch.Conversation{
		InputResponses: q.inputResponses, RequestState: q.requestState, Capabilities: q.capabilities, LogLevel: q.logLevel, Notify: q.relay,
	}
	meta, _ := q.params.Object("_meta")
	meta = slices.DeleteFunc(slices.Clone(meta), func(m rawjson.Member) bool {
		return strings.HasPrefix(m.Name, metaPrefix)
	})
	if len(meta) > 0 {
		c.Meta = meta.Bytes()
	}
	return c
}

// relay hands on what a server says about a request: progress under the client's own token, and messages where it wants any.
// Whatever else a server says belongs to no request of this client.
func (q *request) relay(notification string) {
	message, err := rawjson.Parse([]byte(notification))
	if err != nil {
		return
	}
	params, ok := message.Object("params")
	if !ok {
		return
	}
	switch method, _ := message.Text("method"); method {
	case "notifications/progress":
		if q.progressToken != nil {
			q.notify(method, params.With("progressToken", q.progressToken).Bytes())
		}
	case "notifications/message":
		if q.logLevel != "" {
			q.notify(method, params.Bytes())
		}
	}
}
