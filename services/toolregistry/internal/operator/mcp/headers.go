package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// checkEnvelope holds a request's headers against its body: whoever stands between us and the client has decided by the headers.
func checkEnvelope(header http.Header, m jsonrpc.Message) *jsonrpc.Error {
	meta := metaOf(m)
	version, hasVersion := meta.Text(metaVersion)
	said := header.Get(headerVersion)
	_, hasCapabilities := meta.Object(metaCapabilities)
	switch {
	case said == "":
		return mismatch("The header %s is missing.", headerVersion)
	case !hasVersion:
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "`params._meta` must have the member %q, a string.", metaVersion)
	case !hasCapabilities:
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "`params._meta` must have the member %q, an object.", metaCapabilities)
	case said != version:
		return mismatch("The header %s says %q and the body %q.", headerVersion, said, version)
	case version != newest:
		return jsonrpc.Errorf(jsonrpc.UnsupportedVersion, "The revision %q is not served in this way.", version).
			WithData(map[string]any{"supported": versions(), "requested": version})
	}
	if method := header.Get("Mcp-Method"); method != m.Method {
		return mismatch("The header Mcp-Method says %q and the body %q.", method, m.Method)
	}
	member, named := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[m.Method]
	if !named {
		return nil
	}
	name, _ := m.Params.Text(member)
	if said, ok := decoded(header.Get("Mcp-Name")); !ok || said != name {
		return mismatch("The header Mcp-Name says %q and the body %q.", header.Get("Mcp-Name"), name)
	}
	return nil
}

// repeated answers a header of the protocol that has several values, of which whoever stands between may have gone by another than
// the first; empty when there is none.
func repeated(header http.Header) string {
	for name, values := range header {
		if len(values) > 1 && strings.HasPrefix(name, "Mcp-") {
			return name
		}
	}
	return ""
}

func mismatch(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.HeaderMismatch, format, args...)
}

// decoded reads a header's value, which may be written in base64 between two marks.
func decoded(value string) (string, bool) {
	inside, marked := strings.CutPrefix(value, "=?base64?")
	inside, closed := strings.CutSuffix(inside, "?=")
	if !marked || !closed {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(inside)
	return string(text), err == nil
}

// checkParameters holds the headers of a call against the arguments that its tool mirrors into them.
func (s *Server) checkParameters(ctx context.Context, header http.Header, m jsonrpc.Message) *jsonrpc.Error {
	if m.Method != "tools/call" {
		return nil
	}
	name, _ := m.Params.Text("name")
	seen := s.Surface(ctx)
	if seen == nil {
		return nil
	}
	tool, ok := seen.Lookup(name)
	if !ok || !strings.Contains(tool.Schema, "x-mcp-header") {
		return nil
	}
	schema, _ := rawjson.Parse([]byte(tool.Schema))
	arguments, _ := m.Params.Object("arguments")
	return checkMirrored(header, schema, arguments, 0)
}

// maxDepth is how deep a schema's properties are looked through.
const maxDepth = 16

func checkMirrored(header http.Header, schema, arguments rawjson.Object, depth int) *jsonrpc.Error {
	properties, _ := schema.Object("properties")
	if depth == maxDepth {
		return nil
	}
	for _, property := range properties {
		described, err := rawjson.Parse(property.Value)
		if err != nil {
			continue
		}
		if mirror, ok := described.Text("x-mcp-header"); ok {
			if failed := checkOne(header, "Mcp-Param-"+mirror, property.Name, arguments.Get(property.Name)); failed != nil {
				return failed
			}
		}
		inner, _ := arguments.Object(property.Name)
		if failed := checkMirrored(header, described, inner, depth+1); failed != nil {
			return failed
		}
	}
	return nil
}

func checkOne(header http.Header, name, argument string, value json.RawMessage) *jsonrpc.Error {
	said, there := header.Get(name), len(header.Values(name)) > 0
	if value == nil || string(value) == "null" {
		if there {
			return mismatch("The header %s is there, and the argument `%s` is not.", name, argument)
		}
		return nil
	}
	if !there {
		return mismatch("The header %s is missing, and the argument `%s` is there.", name, argument)
	}
	text, ok := decoded(said)
	if !ok || !same(text, value) {
		return mismatch("The header %s does not say what the argument `%s` says.", name, argument)
	}
	return nil
}

// maxWhole is the largest whole number that every reader of JSON reads alike.
const maxWhole = 1<<53 - 1

// same compares a header's text with an argument: a string, a truth value or a whole number.
func same(text string, value json.RawMessage) bool {
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return false
	}
	switch v := decoded.(type) {
	case string:
		return text == v
	case bool:
		return text == strconv.FormatBool(v)
	case float64:
		number, err := strconv.ParseFloat(text, 64)
		return err == nil && number == v && v == math.Trunc(v) && math.Abs(v) <= maxWhole
	default:
		return false
	}
}

// capabilityOf is what a client must have declared to be asked by a method.
func capabilityOf(method string) (capability string, known bool) {
	switch method {
	case "elicitation/create":
		return "elicitation", true
	case "sampling/createMessage":
		return "sampling", true
	case "roots/list":
		return "roots", true
	default:
		return "", false
	}
}

// undeclared refuses a result that asks the client for what it never said it could do.
func undeclared(q *request, result rawjson.Object) *jsonrpc.Error {
	declared, _ := rawjson.Parse([]byte(q.capabilities))
	asked, _ := result.Object("inputRequests")
	missing := rawjson.Object{}
	for _, ask := range asked {
		wants, _ := rawjson.Parse(ask.Value)
		method, _ := wants.Text("method")
		capability, known := capabilityOf(method)
		if !known {
			return jsonrpc.Errorf(jsonrpc.InternalError, "The server asks for %q, which is nothing that a client can be asked.", method)
		}
		if !declared.Has(capability) {
			missing = missing.With(capability, json.RawMessage("{}"))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.SortFunc(missing, func(a, b rawjson.Member) int { return strings.Compare(a.Name, b.Name) })
	return jsonrpc.Errorf(jsonrpc.MissingCapability, "This needs a client that can be asked: %s.", names(missing)).
		WithData(map[string]json.RawMessage{"requiredCapabilities": missing.Bytes()})
}

func names(o rawjson.Object) string {
	var all []string
	for _, m := range o {
		all = append(all, m.Name)
	}
	return strings.Join(all, ", ")
}
