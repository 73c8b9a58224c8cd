package door

import (
	"context"
	"strings"
)

// read checks the arguments: a tool's of ours against its contract, an MCP server's against the schema that it wrote.
func (d *Door) read(_ context.Context, p *passage) (err error) {
	if p.builtin != nil {
		if p.input, err = p.builtin.Decode(p.request.Arguments); err != nil {
			return err
		}
		if p.request.Operation != nil && p.builtin.Writes() {
			p.record.OperationID, err = p.request.Operation(p.builtin, p.input)
		}
		return err
	}
	if strings.TrimSpace(p.request.Arguments) == "" {
		p.request.Arguments = "{}"
	}
	return p.tool.Check.Check(p.request.Arguments)
}
