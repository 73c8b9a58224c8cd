package surface

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Ready is the state of a server whose tools can be called.
const Ready = "ready"

// What became of a tool's definition since it was first seen.
const (
	// Changed: it is another one.
	Changed = "changed"
	// Held: it is another one, and waits for an operator.
	Held = "held"
)

// Server is what one MCP server brings to a surface.
type Server struct {
	// Name is the server's in the company document.
	Name string
	// Own says that it runs as the seat.
	Own bool
	// State is [Ready] or what it is instead, with the Reason.
	State, Reason string
	// Prefix stands before every tool's name.
	Prefix string
	// Surfaces are what it declares it reaches.
	Surfaces []string
	// Tools are its tools in its own order.
	Tools []*Definition
	// Overrides are the operator's word on tools, by raw or by prefixed name; the prefixed one wins.
	Overrides map[string]Hints
	// Changed has the digests of definitions that are not known; Hold makes their tools wait for an operator.
	Changed map[string]bool
	Hold    bool
}

// tools makes the server's rows. A tool that cannot be used is quarantined alone; the others stay.
func (s Server) tools() []*Tool {
	tools := make([]*Tool, 0, len(s.Tools))
	seen := map[string]bool{}
	for i, definition := range s.Tools {
		tool := s.tool(i, definition)
		if tool.Quarantine == "" && seen[tool.Name] {
			tool.Quarantine = "the server lists two tools of this name"
		}
		seen[tool.Name] = true
		tools = append(tools, tool)
	}
	return tools
}

func (s Server) tool(index int, d *Definition) *Tool {
	t := &Tool{
		Name: s.Prefix + d.Raw, Raw: d.Raw, Title: d.Title, Description: d.Description, Source: Source(s.Name), Server: s.Name, Own: s.Own,
		Schema: d.Schema, OutputSchema: d.OutputSchema, JSON: d.JSON, Arguments: d.Arguments, Hints: d.Hints, Delivers: s.Name,
		Surfaces: s.Surfaces, Audiences: []string{"seat"}, Shown: d.Shown, Definition: d.Digest, Check: d.Check, Quarantine: d.Fault,
	}
	if !s.Own {
		// Nobody's identity is in it, so it is as much an operator's as a seat's.
		t.Audiences = append(t.Audiences, "operator")
	}
	switch fault, instead := nameFault(t.Name); {
	case !d.read:
		t.Name = fmt.Sprintf("%s#%d", s.Name, index+1)
	case d.Raw == "":
		t.Name, t.Quarantine = s.Prefix+"(unnamed)", "the server gives it no name"
	case fault != "":
		t.Name, t.Quarantine = instead, fault
	}
	t.Hints = t.Hints.Over(s.Overrides[t.Raw])
	if t.Name != t.Raw {
		t.Hints = t.Hints.Over(s.Overrides[t.Name])
	}
	if t.Hints.Reads() {
		t.Delivers = ""
	}
	if s.Changed[d.Digest] {
		t.Change = Changed
		if s.Hold {
			t.Change = Held
		}
	}
	t.Digest = Digest(t.Name, t.Description, t.Schema)
	return t
}

// visible takes out of a server's text what nobody sees and terminals obey: control characters other than the tab and the end
// of a line, and those that turn the direction of what follows.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		default:
			return r
		}
	}, text)
}

// Digest is how a change of what is shown is noticed.
func Digest(parts ...string) string {
	h := sha256.New()
	addParts(h, parts...)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// addParts writes parts so that no two lists of them read alike.
func addParts(h hash.Hash, parts ...string) {
	var length []byte
	for _, part := range parts {
		length = append(strconv.AppendInt(length[:0], int64(len(part)), 10), ':')
		_, _ = h.Write(length)
		_, _ = io.WriteString(h, part)
	}
}
