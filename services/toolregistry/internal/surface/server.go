package surface

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/inputschema"
)

// Ready is the state of a server whose tools can be called.
const Ready = "ready"

// maxNameBytes is the longest name that a call can carry.
const maxNameBytes = 256

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
	// Tools are its tools, each as the server wrote it, JSON.
	Tools []string
	// Overrides are the operator's word on tools, by raw or by prefixed name; the prefixed one wins.
	Overrides map[string]Hints
}

// wireTool is a tool as `tools/list` has it. Hints are pointers: what a server does not say must not become a no.
type wireTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations struct {
		Title       string `json:"title"`
		ReadOnly    *bool  `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  *bool  `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	} `json:"annotations"`
}

// tools reads the server's tools. One that cannot be used is quarantined alone; the others stay.
func (s Server) tools() []*Tool {
	var tools []*Tool
	seen := map[string]bool{}
	for i, text := range s.Tools {
		tool := s.tool(i, text)
		if tool.Quarantine == "" && seen[tool.Name] {
			tool.Quarantine = "the server lists two tools of this name"
		}
		seen[tool.Name] = true
		tools = append(tools, tool)
	}
	return tools
}

func (s Server) tool(index int, text string) *Tool {
	t := &Tool{
		Source: Source(s.Name), Server: s.Name, Own: s.Own, Delivers: s.Name, Surfaces: s.Surfaces, Audiences: []string{"seat"}, JSON: text,
	}
	if !s.Own {
		// Nobody's identity is in it, so it is as much an operator's as a seat's.
		t.Audiences = append(t.Audiences, "operator")
	}
	var wire wireTool
	if err := json.Unmarshal([]byte(text), &wire); err != nil {
		t.Name, t.Quarantine = fmt.Sprintf("%s#%d", s.Name, index+1), "the server does not describe it as a tool"
		return t
	}
	t.Raw, t.Name = wire.Name, s.Prefix+wire.Name
	t.Title, t.Description, t.Schema = visible(wire.Title), visible(wire.Description), string(wire.InputSchema)
	if t.Title == "" {
		t.Title = visible(wire.Annotations.Title)
	}
	t.Hints = Hints{wire.Annotations.ReadOnly, wire.Annotations.Destructive, wire.Annotations.Idempotent, wire.Annotations.OpenWorld}
	t.Hints = t.Hints.Over(s.Overrides[t.Raw])
	if t.Name != t.Raw {
		t.Hints = t.Hints.Over(s.Overrides[t.Name])
	}
	if t.Hints.Reads() {
		t.Delivers = ""
	}
	t.Arguments = inputschema.Arguments(wire.InputSchema)
	t.Digest = Digest(t.Name, t.Description, t.Schema)
	t.Check, t.Quarantine = s.check(t)
	return t
}

func (s Server) check(t *Tool) (*inputschema.Schema, string) {
	switch {
	case t.Raw == "":
		t.Name = s.Prefix + "(unnamed)"
		return nil, "the server gives it no name"
	case len(t.Name) > maxNameBytes:
		return nil, fmt.Sprintf("its name has %d bytes; a call carries at most %d", len(t.Name), maxNameBytes)
	case !printable(t.Name):
		t.Name = shown(t.Name)
		return nil, "its name has characters that cannot be written in a call"
	}
	compiled, err := inputschema.Compile([]byte(t.Schema))
	if err != nil {
		return nil, err.Error()
	}
	return compiled, ""
}

func printable(name string) bool {
	for _, r := range name {
		if r <= ' ' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// shown answers a form of a name that terminals and readers see as it is.
func shown(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.QuoteToASCII(name)
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
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
