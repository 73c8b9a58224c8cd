package api

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/peer"
)

// RestartServer implements [mcphostv1connect.McpHostServiceHandler], for this node.
func (h *Handler) RestartServer(ctx context.Context, r *mcphostv1.RestartServerRequest) (*mcphostv1.RestartServerResponse, error) {
	company, err := h.company(ctx)
	if err != nil {
		return nil, err
	}
	if !declares(company, r.GetServer()) {
		return nil, unknownServer(r.GetServer()).WithField("server")
	}
	return &mcphostv1.RestartServerResponse{Restarted: int32(h.Fleet.Restart(r.GetServer(), r.GetSeat()))}, nil
}

// RestartServer implements [mcphostv1connect.McpHostServiceHandler], for all nodes. A node that cannot be asked is an error, after
// all others have done it.
func (r *Router) RestartServer(ctx context.Context, q *mcphostv1.RestartServerRequest) (*mcphostv1.RestartServerResponse, error) {
	handed, err := r.handed(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := r.Handler.RestartServer(ctx, q)
	if err != nil || handed {
		return answer, err
	}
	peers, err := r.Fleet.Peers(ctx)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "The other nodes cannot be looked up: %d instances were restarted on this one. Ask again.", answer.GetRestarted()).WithCause(err)
	}
	var restarted atomic.Int32
	restarted.Store(answer.GetRestarted())
	var group errgroup.Group
	for _, node := range peers {
		group.Go(func() error {
			return r.Peers.Do(ctx, node, r.epoch(), func(ctx context.Context, c peer.Client) error {
				there, err := c.RestartServer(ctx, q)
				restarted.Add(there.GetRestarted())
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fault.New(fault.Unavailable, "%d instances were restarted, but not every node could be asked: %s", restarted.Load(), rpc.FromError(err).Message).
			WithCause(errors.Unwrap(err))
	}
	return &mcphostv1.RestartServerResponse{Restarted: restarted.Load()}, nil
}
