package api

import (
	"context"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/fleet"
)

// Exchange implements [mcphostv1connect.McpHostServiceHandler].
func (h *Handler) Exchange(ctx context.Context, r *mcphostv1.ExchangeRequest, stream mcphostv1connect.McpHostServiceExchangeServerStream) error {
	company, err := h.company(ctx)
	if err != nil {
		return err
	}
	if !declares(company, r.GetServer()) {
		return unknownServer(r.GetServer()).WithField("server")
	}
	reply, err := h.Fleet.Exchange(ctx, fleet.Exchange{
		Server: r.GetServer(), Seat: r.GetSeat(), Method: r.GetMethod(), Params: r.GetParamsJson(),
		Capabilities: r.GetClientCapabilitiesJson(), LogLevel: r.GetLogLevel(), Timeout: r.GetTimeout().AsDuration(),
		Notify: func(n string) error {
			return stream.Send(&mcphostv1.ExchangeResponse{Message: &mcphostv1.ExchangeResponse_NotificationJson{NotificationJson: n}})
		},
	})
	if err != nil {
		return err
	}
	if reply.Error != "" {
		return stream.Send(&mcphostv1.ExchangeResponse{Message: &mcphostv1.ExchangeResponse_ErrorJson{ErrorJson: reply.Error}})
	}
	return stream.Send(&mcphostv1.ExchangeResponse{Message: &mcphostv1.ExchangeResponse_ResultJson{ResultJson: reply.Result}})
}
