package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/secrets"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/session"
)

// catalogue is the tools of an instance.
type catalogue struct {
	tools    []string // JSON
	hints    map[string]hints
	digest   string
	protocol string
}

// hints are what a server says of a tool; nil for what it does not say.
type hints struct {
	ReadOnly   *bool `json:"readOnlyHint"`
	Idempotent *bool `json:"idempotentHint"`
}

func catalogueOf(tools []session.Tool, r *secrets.Redactor, protocol string) catalogue {
	c := catalogue{tools: make([]string, 0, len(tools)), hints: make(map[string]hints, len(tools)), protocol: protocol}
	sum := sha256.New()
	for _, t := range tools {
		text := r.JSON(t.JSON)
		c.tools = append(c.tools, string(text))
		c.hints[t.Name] = hintsOf(t.JSON)
		sum.Write(text)
		sum.Write([]byte{0})
	}
	c.digest = hex.EncodeToString(sum.Sum(nil))
	return c
}

func hintsOf(tool json.RawMessage) hints {
	var shape struct {
		Annotations hints `json:"annotations"`
	}
	if json.Unmarshal(tool, &shape) != nil {
		return hints{} // hints of another shape say nothing
	}
	return shape.Annotations
}

// repeatable reports whether a tool may be called again when it is not known whether it was carried out: it only reads, or doing
// it twice is doing it once. The operator's word, by raw or prefixed name, wins over the server's.
func repeatable(s *companyv1.McpServer, tool string, h hints) bool {
	if o, ok := override(s, tool); ok {
		if o.ReadOnly != nil {
			h.ReadOnly = o.ReadOnly
		}
		if o.Idempotent != nil {
			h.Idempotent = o.Idempotent
		}
	}
	return h.ReadOnly != nil && *h.ReadOnly || h.Idempotent != nil && *h.Idempotent
}

func override(s *companyv1.McpServer, tool string) (*companyv1.ToolAnnotations, bool) {
	if o, ok := s.GetToolAnnotations()[tool]; ok {
		return o, true
	}
	o, ok := s.GetToolAnnotations()[s.GetToolPrefix()+tool]
	return o, ok
}
