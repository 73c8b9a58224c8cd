// Package surface decides which tools a caller sees and which of them a name means. It is pure: it knows neither contracts nor
// the network, and the same facts always give the same surface.
//
// A tool has two names: the canonical one, and one that every model provider takes ([WireName]); a call takes either. Names are
// given out in one order: the engine's own tools, the servers that run as the seat itself, the company's tools, the servers that
// the company shares; servers in the order of the document, and within each of these canonical names before wire names. The
// first one has the name. Whoever comes later is not hidden but quarantined: it stands in the list with the reason and cannot be
// called, so that a tool that went missing is seen where it went. The engine's own tools come before everything, because a
// server that took the name of the tool that ends a turn would keep the seat in it for ever.
package surface

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/inputschema"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/projection"
)

// Builtin is the source of the suite's own tools; a server's is [Server].
const Builtin = "builtin"

// Source answers the source of a server's tools: the bare name, never a seat's instance of it.
func Source(server string) string { return "mcp:" + server }

// Hints are what a tool claims of itself. Nil claims nothing, and is not a soft no.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Over answers the hints with those of other in their place wherever other claims something.
func (h Hints) Over(other Hints) Hints {
	for _, pair := range []struct{ to, from **bool }{
		{&h.ReadOnly, &other.ReadOnly},
		{&h.Destructive, &other.Destructive},
		{&h.Idempotent, &other.Idempotent},
		{&h.OpenWorld, &other.OpenWorld},
	} {
		if *pair.from != nil {
			*pair.to = *pair.from
		}
	}
	return h
}

// Reads reports a proven read: one that does not claim it may write.
func (h Hints) Reads() bool { return h.ReadOnly != nil && *h.ReadOnly }

// Tool is one row of a surface. It is shared and never changed.
type Tool struct {
	// Name is what it is called by; Raw is the server's own name for it.
	Name, Raw string
	// Wire is the name that every model provider takes; empty for a tool that does not have its name.
	Wire string
	// Title is for people.
	Title string
	// Description is what a model reads.
	Description string
	// Source is [Builtin] or [Source] of Server.
	Source, Server string
	// Own says that the server runs as the seat.
	Own bool
	// Schema is the JSON Schema of the arguments, byte for byte as the server wrote it.
	Schema string
	// OutputSchema is the result's; empty when the tool declares none.
	OutputSchema string
	// Shown is what becomes of the schema for each model provider, where that is something.
	Shown map[string]projection.Result
	// JSON is the tool as its server wrote it; empty for the suite's own.
	JSON string
	// Arguments counts what the schema's root names.
	Arguments int
	// Hints are the tool's, the operator's word over them.
	Hints Hints
	// Delivers is where a successful call puts something in front of somebody.
	Delivers string
	// Surfaces are what the server declares it reaches.
	Surfaces []string
	// Audiences are who it is offered to.
	Audiences []string
	// EngineLocal tools are run by the turn engine.
	EngineLocal bool
	// Digest changes with name, description or schema.
	Digest string
	// Definition is the digest of what the server says of it; empty for the suite's own.
	Definition string
	// Change is empty, [Changed] or [Held].
	Change string
	// Quarantine says why the tool cannot be called; empty when it can.
	Quarantine string
	// Check is the compiled schema of an MCP tool that is not quarantined.
	Check *inputschema.Schema
}

// Missing is a server that brings nothing now.
type Missing struct {
	Server, State, Reason string
}

// Surface is what one caller sees. Safe for concurrent use, as it never changes.
type Surface struct {
	tools   []*Tool
	names   registrar
	missing []Missing
	digest  string
}

// Tools answers every row, quarantined ones included: the suite's own in their order, then each server's in its own.
func (s *Surface) Tools() []*Tool { return s.tools }

// Missing answers the servers that bring nothing now.
func (s *Surface) Missing() []Missing { return s.missing }

// Digest changes when anything on the surface does.
func (s *Surface) Digest() string { return s.digest }

// Lookup answers the tool that a name means, canonical or wire. A quarantined tool is answered only when nothing else has the name.
func (s *Surface) Lookup(name string) (*Tool, bool) {
	t := s.names.holder(name)
	return t, t != nil
}

// Names answers every canonical name that can be called, in order.
func (s *Surface) Names() []string {
	var names []string
	for name, tool := range s.names.canonical {
		if tool.Quarantine == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Build settles a surface. builtins are the company's own tools, already without those that it does not run. servers are in the
// order of the document. Neither is changed.
func Build(builtins []*Tool, servers []Server) *Surface {
	s := &Surface{names: newRegistrar()}
	byServer := make([][]*Tool, len(servers))
	for i, server := range servers {
		byServer[i] = server.tools()
		if server.State != Ready {
			s.missing = append(s.missing, Missing{server.Name, server.State, server.Reason})
		}
	}
	for _, group := range claims(builtins, servers, byServer) {
		s.names.give(group)
	}
	s.tools = append(s.tools, builtins...)
	for _, tools := range byServer {
		s.tools = append(s.tools, tools...)
	}
	for i, tool := range s.tools {
		s.tools[i] = s.names.settle(tool)
	}
	s.digest = digestOf(s)
	return s
}

// claims answers groups of tools in the order in which they take names.
func claims(builtins []*Tool, servers []Server, byServer [][]*Tool) [][]*Tool {
	var engine, company []*Tool
	for _, tool := range builtins {
		if tool.EngineLocal {
			engine = append(engine, tool)
		} else {
			company = append(company, tool)
		}
	}
	groups := [][]*Tool{engine}
	for i, server := range servers {
		if server.Own {
			groups = append(groups, byServer[i])
		}
	}
	groups = append(groups, company)
	for i, server := range servers {
		if !server.Own {
			groups = append(groups, byServer[i])
		}
	}
	return groups
}

// digestOf covers all that a caller of the list can see.
func digestOf(s *Surface) string {
	h := sha256.New()
	for _, t := range s.tools {
		addParts(h, t.Name, t.Wire, t.Title, t.Source, t.Digest, t.Definition, t.Delivers, t.Change, t.Quarantine, hintText(t.Hints))
		addParts(h, t.Surfaces...)
		for _, provider := range slices.Sorted(maps.Keys(t.Shown)) {
			addParts(h, provider, t.Shown[provider].Schema, t.Shown[provider].Refused)
		}
	}
	for _, m := range s.missing {
		addParts(h, m.Server, m.State, m.Reason)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func hintText(h Hints) string {
	text := ""
	for _, hint := range []*bool{h.ReadOnly, h.Destructive, h.Idempotent, h.OpenWorld} {
		switch {
		case hint == nil:
			text += "?"
		case *hint:
			text += "y"
		default:
			text += "n"
		}
	}
	return text
}
