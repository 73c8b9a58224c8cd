// Package api is mcphost's handlers: they say who may ask, call the fleet or read the reports, and convert the answer.
package api

import (
	"context"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/fleet"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// Handler serves McpHostService for this node. It is safe for concurrent use.
type Handler struct {
	Fleet *fleet.Fleet
	Store *store.Store
	// Authorizer has what operators are asked to consent to.
	Authorizer *authorize.Authorizer
	// Company answers the company in force, nil when there is none, and false before that is known.
	Company func() (*companyv1.Company, bool)
}

var _ mcphostv1connect.McpHostServiceHandler = (*Handler)(nil)

// company answers what is declared, to a caller who may know.
func (h *Handler) company(ctx context.Context) (*companyv1.Company, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindService); err != nil {
		return nil, err
	}
	company, known := h.Company()
	if !known {
		return nil, fault.New(fault.Unavailable, "The company service has not answered yet, so no MCP server is known: ask again in a moment.")
	}
	// The fleet follows too, but whoever asks here must not find it a step behind.
	h.Fleet.Apply(company)
	return company, nil
}

// ListServers implements [mcphostv1connect.McpHostServiceHandler].
func (h *Handler) ListServers(ctx context.Context, _ *mcphostv1.ListServersRequest) (*mcphostv1.ListServersResponse, error) {
	company, err := h.company(ctx)
	if err != nil {
		return nil, err
	}
	reports, err := h.Store.Reports(ctx, fleet.Silence)
	if err != nil {
		return nil, err
	}
	live, err := h.Store.Live(ctx, fleet.Silence)
	if err != nil {
		return nil, err
	}
	pages, err := h.Authorizer.Pages(ctx)
	if err != nil {
		return nil, err
	}
	return &mcphostv1.ListServersResponse{Servers: serversToProto(company.GetMcpServers(), reports, pages), Nodes: nodesToProto(live)}, nil
}

// ListServerTools implements [mcphostv1connect.McpHostServiceHandler].
func (h *Handler) ListServerTools(ctx context.Context, r *mcphostv1.ListServerToolsRequest) (*mcphostv1.ListServerToolsResponse, error) {
	company, err := h.company(ctx)
	if err != nil {
		return nil, err
	}
	if r.GetServer() != "" && !declares(company, r.GetServer()) {
		return nil, unknownServer(r.GetServer()).WithField("server")
	}
	views := h.Fleet.Tools(ctx, r.GetSeat(), r.GetServer(), r.GetWait().AsDuration())
	return toolsToProto(views, r.GetKnownDigest()), nil
}

// CallServerTool implements [mcphostv1connect.McpHostServiceHandler].
func (h *Handler) CallServerTool(ctx context.Context, r *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
	return h.call(ctx, r, false)
}

// call makes a call; doubted says that a lost node may have carried it out.
func (h *Handler) call(ctx context.Context, r *mcphostv1.CallServerToolRequest, doubted bool) (*mcphostv1.CallServerToolResponse, error) {
	company, err := h.company(ctx)
	if err != nil {
		return nil, err
	}
	if !declares(company, r.GetServer()) {
		return nil, unknownServer(r.GetServer())
	}
	result, err := h.Fleet.Call(ctx, fleet.Call{
		Server: r.GetServer(), Tool: r.GetTool(), Seat: r.GetSeat(), Arguments: r.GetArgumentsJson(), Timeout: r.GetTimeout().AsDuration(),
		Doubted: doubted,
	})
	if err != nil {
		return nil, err
	}
	return &mcphostv1.CallServerToolResponse{ResultJson: result.JSON, Failed: result.Failed}, nil
}

// ReleaseSeat implements [mcphostv1connect.McpHostServiceHandler].
func (h *Handler) ReleaseSeat(ctx context.Context, r *mcphostv1.ReleaseSeatRequest) (*mcphostv1.ReleaseSeatResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindService); err != nil {
		return nil, err
	}
	ended, err := h.Fleet.Release(ctx, r.GetSeat())
	return &mcphostv1.ReleaseSeatResponse{Ended: int32(ended)}, err
}

func declares(company *companyv1.Company, name string) bool {
	for _, s := range company.GetMcpServers() {
		if s.GetName() == name {
			return true
		}
	}
	return false
}

func unknownServer(name string) *fault.Error {
	return fault.New(fault.NotFound, "The company declares no MCP server %q.", name)
}
