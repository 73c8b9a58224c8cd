package door

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// Limits of a tool where the company says none.
const (
	builtinTimeout = 60 * time.Second
	serverTimeout  = 300 * time.Second
)

// dispatch calls whoever runs the tool, and measures it.
func (d *Door) dispatch(ctx context.Context, p *passage) (dispatch.Answer, error) {
	p.record.StartedAt = d.Now()
	defer func() { p.record.Duration = d.Now().Sub(p.record.StartedAt) }()
	if p.builtin == nil {
		limit := p.timeout(serverLimit(p.company, p.tool))
		if c := p.request.Conversation; c != nil {
			return d.Dispatch.Converse(ctx, p.tool, p.request.Arguments, p.caller.seat, p.request.OperationID, limit, d.overheard(*c))
		}
		return d.Dispatch.Server(ctx, p.tool, p.request.Arguments, p.caller.seat, p.request.OperationID, limit)
	}
	if !p.builtin.Writes() {
		p.record.OperationID = ""
	} else if p.record.OperationID == "" {
		// Even a write that nobody means to repeat has an operation: the answer `unknown` must be able to name it.
		p.record.OperationID = "call-" + uuid.NewString()
	}
	limit := seconds(p.company.GetTurnEngine().GetToolTimeoutSeconds(), builtinTimeout)
	return d.Dispatch.Builtin(ctx, p.builtin, p.input, p.caller.principal, p.record.OperationID, p.timeout(limit))
}

// overheard cleans what a caller hears of a call while it runs. What cannot be cleaned is not passed on.
func (d *Door) overheard(c dispatch.Conversation) dispatch.Conversation {
	notify := c.Notify
	c.Notify = func(notification string) {
		if clean, err := d.Cleaner.JSON(notification); err == nil && notify != nil {
			notify(clean)
		}
	}
	return c
}

// timeout is the tool's limit, or what the caller asked for when that is shorter.
func (p *passage) timeout(limit time.Duration) time.Duration {
	if p.request.Timeout > 0 {
		return min(p.request.Timeout, limit)
	}
	return limit
}

// serverLimit is how long a call of an MCP server's tool may take: the tool's own limit, by raw or prefixed name, or the server's.
func serverLimit(company *companyv1.Company, tool *surface.Tool) time.Duration {
	for _, server := range company.GetMcpServers() {
		if server.GetName() != tool.Server {
			continue
		}
		own := server.GetToolTimeoutSeconds()
		return seconds(cmp.Or(own[tool.Raw], own[tool.Name], server.GetRequestTimeoutSeconds()), serverTimeout)
	}
	return serverTimeout
}

func seconds(n int32, otherwise time.Duration) time.Duration {
	if n <= 0 {
		return otherwise
	}
	return time.Duration(n) * time.Second
}
