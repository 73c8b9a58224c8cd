package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Routes adds `GET /tools`, `GET /mcp-servers` and what is under `/tools/changes` and `/approvals`: the lists over plain HTTP, in the
// shape that the reference describes. They are answered by the RPCs of s, called in process with the request's own credentials, so
// there is one place that decides who may see what.
func Routes(mux *http.ServeMux, s *connect.Server) {
	client := toolregistryv1connect.NewToolRegistryServiceClient(connect.NewClient(rpc.InProcess(s)))
	mux.HandleFunc("GET /tools", func(w http.ResponseWriter, r *http.Request) {
		answer, err := client.ListTools(withCredentials(r), &toolregistryv1.ListToolsRequest{
			Seat: r.URL.Query().Get("seat"), Source: r.URL.Query().Get("source"),
		})
		if err != nil {
			refuse(w, err)
			return
		}
		write(w, http.StatusOK, toolsToJSON(answer))
	})
	mux.HandleFunc("GET /mcp-servers", func(w http.ResponseWriter, r *http.Request) {
		answer, err := client.ListMcpServers(withCredentials(r), &toolregistryv1.ListMcpServersRequest{})
		if err != nil {
			refuse(w, err)
			return
		}
		write(w, http.StatusOK, serversToJSON(answer))
	})
	changeRoutes(mux, client)
	approvalRoutes(mux, client)
}

func withCredentials(r *http.Request) context.Context {
	ctx, info := connect.NewClientContext(r.Context())
	for _, header := range []string{"Authorization", "Bullpen-Principal"} {
		if values := r.Header.Values(header); len(values) > 0 {
			info.RequestHeader().SetValues(header, values)
		}
	}
	return ctx
}

type toolJSON struct {
	Name          string          `json:"name"`
	WireName      string          `json:"wire_name"`
	Title         string          `json:"title,omitempty"`
	Description   string          `json:"description"`
	Source        string          `json:"source"`
	Annotations   hintsJSON       `json:"annotations"`
	Delivers      string          `json:"delivers"`
	Surfaces      []string        `json:"surfaces,omitempty"`
	Audiences     []string        `json:"audiences"`
	EngineLocal   bool            `json:"engine_local"`
	ArgumentCount int32           `json:"argument_count"`
	InputSchema   json.RawMessage `json:"input_schema"`
	OutputSchema  json.RawMessage `json:"output_schema"`
	Digest        string          `json:"digest"`
	Change        string          `json:"change"`
	Quarantine    string          `json:"quarantine"`
	// By provider type: the schema that takes input_schema's place there, and why the tool cannot be shown there.
	ProviderSchemas    map[string]json.RawMessage `json:"provider_schemas"`
	ProviderQuarantine map[string]string          `json:"provider_quarantine"`
}

// hintsJSON writes a hint that nobody claimed as null: unknown is an answer, not a soft no.
type hintsJSON struct {
	ReadOnly    *bool `json:"read_only"`
	Destructive *bool `json:"destructive"`
	Idempotent  *bool `json:"idempotent"`
	OpenWorld   *bool `json:"open_world"`
}

type missingJSON struct {
	Server string `json:"server"`
	State  string `json:"state"`
	Reason string `json:"reason"`
}

type listJSON struct {
	Tools          []toolJSON    `json:"tools"`
	Digest         string        `json:"digest"`
	MissingServers []missingJSON `json:"missing_servers"`
}

func toolsToJSON(answer *toolregistryv1.ListToolsResponse) listJSON {
	list := listJSON{Tools: []toolJSON{}, Digest: answer.GetDigest(), MissingServers: []missingJSON{}}
	for _, t := range answer.GetTools() {
		list.Tools = append(list.Tools, toolToJSON(t))
	}
	for _, m := range answer.GetMissingServers() {
		list.MissingServers = append(list.MissingServers, missingJSON{m.GetServer(), m.GetState(), m.GetReason()})
	}
	return list
}

func toolToJSON(t *toolregistryv1.Tool) toolJSON {
	a, schemas := t.GetAnnotations(), map[string]json.RawMessage{}
	for provider, schema := range t.GetProviderSchemas() {
		schemas[provider] = raw(schema)
	}
	quarantine := t.GetProviderQuarantine()
	if quarantine == nil {
		quarantine = map[string]string{}
	}
	return toolJSON{
		Name: t.GetName(), WireName: t.GetWireName(), Title: t.GetTitle(), Description: t.GetDescription(), Source: t.GetSource(),
		Annotations: hintsJSON{ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld},
		Delivers:    t.GetDelivers(), Surfaces: t.GetSurfaces(), Audiences: t.GetAudiences(), EngineLocal: t.GetEngineLocal(),
		ArgumentCount: t.GetArgumentCount(), InputSchema: raw(t.GetInputSchemaJson()), OutputSchema: raw(t.GetOutputSchemaJson()),
		Digest: t.GetDigest(), Change: t.GetChange(), Quarantine: t.GetQuarantine(), ProviderSchemas: schemas, ProviderQuarantine: quarantine,
	}
}

// raw answers a document as it was written, and null for what is none.
func raw(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return json.RawMessage("null")
}

type serverJSON struct {
	Server    string     `json:"server"`
	State     string     `json:"state"`
	Shared    bool       `json:"shared"`
	Transport string     `json:"transport"`
	Nodes     []nodeJSON `json:"nodes"`
	Reason    string     `json:"reason,omitempty"`
	Seat      string     `json:"seat,omitempty"`
	ToolCount int32      `json:"tool_count"`
	// AuthorizationURL is where an operator must consent first.
	AuthorizationURL string `json:"authorization_url,omitempty"`
}

type nodeJSON struct {
	Node       string     `json:"node"`
	State      string     `json:"state"`
	Instances  int32      `json:"instances"`
	Ready      int32      `json:"ready"`
	Reason     string     `json:"reason,omitempty"`
	ReportTime *time.Time `json:"report_time,omitempty"`
}

func serversToJSON(answer *toolregistryv1.ListMcpServersResponse) map[string][]serverJSON {
	all := []serverJSON{}
	for _, s := range answer.GetServers() {
		server := serverJSON{
			s.GetServer(), s.GetState(), s.GetShared(), s.GetTransport(), []nodeJSON{}, s.GetReason(), s.GetSeat(), s.GetToolCount(), s.GetAuthorizationUrl(),
		}
		for _, n := range s.GetNodes() {
			node := nodeJSON{n.GetNode(), n.GetState(), n.GetInstances(), n.GetReady(), n.GetReason(), nil}
			if n.GetReportTime() != nil {
				at := n.GetReportTime().AsTime()
				node.ReportTime = &at
			}
			server.Nodes = append(server.Nodes, node)
		}
		all = append(all, server)
	}
	return map[string][]serverJSON{"servers": all}
}

// refuse writes the refusal of an RPC with the status that fits its code.
func refuse(w http.ResponseWriter, err error) {
	f := rpc.FromError(err)
	status := http.StatusServiceUnavailable
	if c, ok := errors.AsType[*connect.Error](err); ok {
		switch c.Code() {
		case connect.CodeUnauthenticated:
			status = http.StatusUnauthorized
			w.Header().Set("WWW-Authenticate", "Bearer")
		case connect.CodePermissionDenied:
			status = http.StatusForbidden
		case connect.CodeInvalidArgument:
			status = http.StatusBadRequest
		case connect.CodeNotFound:
			status = http.StatusNotFound
		default:
			if f.Class == fault.Conflict || f.Class == fault.AlreadyAnswered || f.Class == fault.StaleVersion {
				status = http.StatusConflict
			}
		}
	}
	write(w, status, map[string]string{"class": string(f.Class), "message": f.Message, "field": f.Field, "reason": f.Reason})
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // the reader has gone
}
