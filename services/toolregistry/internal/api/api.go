// Package api answers the service's RPCs: who may ask what, and how it is written on the wire.
package api

import (
	"context"
	"log/slog"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/audit"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/desk"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/seatcache"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/servers"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/skill"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

// Host is what the handler asks of mcphost; its generated client is one.
type Host interface {
	ListServers(ctx context.Context, req *mcphostv1.ListServersRequest) (*mcphostv1.ListServersResponse, error)
	RestartServer(ctx context.Context, req *mcphostv1.RestartServerRequest) (*mcphostv1.RestartServerResponse, error)
}

// Options are what a handler needs.
type Options struct {
	Door  *door.Door
	Seats *seatcache.Cache
	Store *store.Store
	// Approvals are the questions to people, and Desk where they are answered.
	Approvals *store.Approvals
	Desk      *desk.Desk
	Host      Host
	// Audit holds the calls that are not in the store yet.
	Audit *audit.Writer
	// Skills answers the tool skills in force, nil while they are not known.
	Skills func() *skill.Set
	// Company answers the active revision, at least as new as the named one when that can be had, and nil when there is none.
	Company func(ctx context.Context, revision string) *companyv1.Company
	Cleaner *hygiene.Cleaner
	Log     *slog.Logger
}

// Handler implements the service.
type Handler struct {
	Options
	lists lists
}

var _ toolregistryv1connect.ToolRegistryServiceHandler = (*Handler)(nil)

// New makes a handler.
func New(o Options) *Handler { return &Handler{Options: o} }

// CallTool implements the RPC of that name.
func (h *Handler) CallTool(ctx context.Context, req *toolregistryv1.CallToolRequest) (*toolregistryv1.CallToolResponse, error) {
	from, ok := rpc.PrincipalFrom(ctx)
	if !ok {
		return nil, fault.New(fault.Forbidden, "This call names no caller.")
	}
	answer, err := h.Door.Call(ctx, from, callFromProto(req))
	if err != nil {
		return nil, err
	}
	return answerToProto(answer), nil
}

// ListMcpServers implements the RPC of that name.
func (h *Handler) ListMcpServers(ctx context.Context, _ *toolregistryv1.ListMcpServersRequest) (*toolregistryv1.ListMcpServersResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService); err != nil {
		return nil, err
	}
	company := h.Company(ctx, "")
	reported, err := h.Host.ListServers(ctx, &mcphostv1.ListServersRequest{})
	all := servers.Summarise(company, reported)
	if err != nil {
		h.Log.WarnContext(ctx, "mcp servers cannot be listed", "error", err)
		for _, server := range all {
			server.Reason = "the service that runs MCP servers cannot be reached"
		}
	}
	return &toolregistryv1.ListMcpServersResponse{Servers: all}, nil
}
