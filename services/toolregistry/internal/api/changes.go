package api

import (
	"context"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// ListToolChanges implements the RPC of that name. What several seats are shown alike is one change.
func (h *Handler) ListToolChanges(
	ctx context.Context, req *toolregistryv1.ListToolChangesRequest,
) (*toolregistryv1.ListToolChangesResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService); err != nil {
		return nil, err
	}
	company := h.Company(ctx, "")
	if company != nil {
		h.Seats.Refresh(ctx, company) // a change is noticed when somebody looks, and this is a look
	}
	changed, err := h.Store.ListChangedTools(ctx, req.GetServer())
	if err != nil {
		return nil, err
	}
	response := &toolregistryv1.ListToolChangesResponse{}
	listed := map[[3]string]bool{}
	for _, c := range changed {
		key := [3]string{c.Server, c.Tool, c.Digest}
		if listed[key] || !has(company, c.Server, c.Seat) {
			continue
		}
		listed[key] = true
		response.Changes = append(response.Changes, &toolregistryv1.ToolChange{
			Server: c.Server, Tool: c.Tool, KnownJson: c.Known, CurrentJson: c.Current, Digest: c.Digest,
			Held: company.GetToolPolicy().GetHoldChangedTools(),
		})
	}
	return response, nil
}

// has reports whether a company still declares a server and, for a seat's instance, has the seat.
func has(company *companyv1.Company, server, seat string) bool {
	declared := false
	for _, s := range company.GetMcpServers() {
		declared = declared || s.GetName() == server
	}
	if seat == "" {
		return declared
	}
	for _, s := range company.GetSeats() {
		if s.GetHandle() == seat {
			return declared
		}
	}
	return false
}

// AcceptToolChange implements the RPC of that name.
func (h *Handler) AcceptToolChange(
	ctx context.Context, req *toolregistryv1.AcceptToolChangeRequest,
) (*toolregistryv1.AcceptToolChangeResponse, error) {
	from, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson)
	if err != nil {
		return nil, err
	}
	by := from.GetKind() + ":" + from.GetId()
	if err := h.Store.AcceptTool(ctx, req.GetServer(), req.GetTool(), req.GetDigest(), by); err != nil {
		return nil, err
	}
	h.Log.InfoContext(ctx, "tool_change_accepted", "server", req.GetServer(), "tool", req.GetTool(), "digest", req.GetDigest(), "by", by)
	// Other processes see it at their next look.
	h.Seats.Invalidate("")
	return &toolregistryv1.AcceptToolChangeResponse{}, nil
}
