package door

import (
	"context"
	"strings"
)

// read checks the arguments: a tool's of ours against its contract, an MCP server's against the schema that it wrote.
func (d *Door) read(_ context.Context, p *passage) (err error) {
	if p.builtin != nil {
		p.input, err = p.builtin.Decode(p.request.Arguments)
		return err
	}
	if strings.TrimSpace(p.request.Arguments) == "" {
		p.request.Arguments = "{}"
	}
	return p.tool.Check.Check(p.request.Arguments)
}
