package api

import (
	"context"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// RestartMcpServer implements the RPC of that name.
func (h *Handler) RestartMcpServer(ctx context.Context, req *toolregistryv1.RestartMcpServerRequest) (*toolregistryv1.RestartMcpServerResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson); err != nil {
		return nil, err
	}
	answer, err := h.Host.RestartServer(ctx, &mcphostv1.RestartServerRequest{Server: req.GetServer(), Seat: req.GetSeat()})
	if err != nil {
		return nil, rpc.FromError(err)
	}
	return &toolregistryv1.RestartMcpServerResponse{Restarted: answer.GetRestarted()}, nil
}
