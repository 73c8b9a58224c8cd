package api

import (
	"context"
	"errors"
	"net/url"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/fleet"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/peer"
)

// AuthorizeServer implements [mcphostv1connect.McpHostServiceHandler], for this node.
func (h *Handler) AuthorizeServer(ctx context.Context, r *mcphostv1.AuthorizeServerRequest) (*mcphostv1.AuthorizeServerResponse, error) {
	if _, err := h.company(ctx); err != nil {
		return nil, err
	}
	access, err := h.Fleet.Access(ctx, r.GetServer(), r.GetSeat())
	if err != nil {
		return nil, err
	}
	if r.GetCallbackUrl() != "" {
		return h.complete(ctx, r)
	}
	page, authorized, err := access.Begin(ctx)
	if err != nil {
		return nil, unauthorised(r.GetServer(), err)
	}
	return &mcphostv1.AuthorizeServerResponse{AuthorizationUrl: page, Authorized: authorized}, nil
}

// complete takes the address at which a browser came back, for browsers that cannot reach us there.
func (h *Handler) complete(ctx context.Context, r *mcphostv1.AuthorizeServerRequest) (*mcphostv1.AuthorizeServerResponse, error) {
	back, err := url.Parse(r.GetCallbackUrl())
	if err != nil {
		return nil, fault.New(fault.Invalid, "callback_url is no address: give the whole one that the browser came back to.").WithField("callback_url")
	}
	done, err := h.Authorizer.Complete(ctx, back.Query())
	switch {
	case err != nil:
		return nil, unauthorised(r.GetServer(), err)
	case done.Server != r.GetServer() || done.Seat != r.GetSeat():
		return nil, fault.New(fault.Invalid, "callback_url answered what was asked for the MCP server %q and the seat %q, which can be used now.", done.Server, done.Seat).
			WithField("callback_url")
	}
	return &mcphostv1.AuthorizeServerResponse{Authorized: true}, nil
}

func unauthorised(server string, err error) error {
	var refused *authorize.Refused
	if !errors.As(err, &refused) {
		return err
	}
	return fault.New(fault.Unavailable, "The MCP server %q cannot be authorised: %s.", server, refused).WithReason("NOT_AUTHORIZED").WithCause(err)
}

// AuthorizeServer implements [mcphostv1connect.McpHostServiceHandler], at the node that runs the seat's own servers.
func (r *Router) AuthorizeServer(ctx context.Context, q *mcphostv1.AuthorizeServerRequest) (answer *mcphostv1.AuthorizeServerResponse, err error) {
	err = r.route(ctx, fleet.Request{Server: q.GetServer(), Seat: q.GetSeat()}, moving, func(ctx context.Context) (err error) {
		answer, err = r.Handler.AuthorizeServer(ctx, q)
		return err
	}, func(ctx context.Context, c peer.Client) (err error) {
		answer, err = c.AuthorizeServer(ctx, q)
		return err
	})
	return answer, err
}
