package api

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/fleet"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/peer"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

const (
	// moving is how long a request waits for a seat to move to a node that serves it: longer than a lease.
	moving = 20 * time.Second
	// movePoll is how often it is looked whether it has.
	movePoll = 100 * time.Millisecond
	// glance is what a look at tools waits for that at the least, even for a caller who does not wait for servers.
	glance = time.Second
)

// Router serves McpHostService for all nodes: what is for a seat's own servers is served where the seat's lease is. It is safe for
// concurrent use.
//
//	request ─► handed on to us ─────────────────► served here, or refused
//	       └─► the seat is ours, or nobody's ───► served here
//	       └─► the seat is another node's ──────► handed on ─► refused: not (any more) its ─► look again
type Router struct {
	*Handler

	Peers *peer.Peers
	// Refresh reads the company again.
	Refresh func(ctx context.Context) error
}

var _ mcphostv1connect.McpHostServiceHandler = (*Router)(nil)

// route serves a request here, or where it belongs.
func (r *Router) route(ctx context.Context, q fleet.Request, patience time.Duration, here func(context.Context) error, there func(context.Context, peer.Client) error) error {
	handed, err := r.handed(ctx)
	switch {
	case err != nil:
		return err
	case handed:
		return here(ctx)
	}
	company, err := r.company(ctx)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		node, local, err := r.Fleet.Place(ctx, q)
		switch {
		case err != nil:
		case local:
			err = here(ctx)
		case node.URL == "":
			err = fleet.HeldElsewhere(q.Seat, node)
		default:
			err = r.Peers.Do(ctx, node, company.GetEpoch(), there)
		}
		if !moves(err) {
			return err
		}
		timer := time.NewTimer(movePoll)
		select {
		case <-timer.C:
		case <-waiting.Done():
			timer.Stop()
			return err
		}
	}
}

// handed reports whether another node handed a request on to this one, which then knows what the other knows.
func (r *Router) handed(ctx context.Context) (bool, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindService); err != nil {
		return false, err
	}
	from, handed, err := r.Peers.Incoming(ctx)
	if err != nil || !handed {
		return handed, err
	}
	if company, _ := r.Company(); company.GetEpoch() < from.Epoch {
		if err := r.Refresh(ctx); err != nil {
			return true, fault.New(fault.Unavailable, "The company service has not answered, so this node is behind: try again in a moment.").WithCause(err)
		}
	}
	return true, nil
}

// moves reports whether a request was refused by a node that is not, or not any more, the one to ask, or cannot know it. Nothing was
// done then.
func moves(err error) bool {
	f, ok := fault.As(err)
	return ok && f.Outcome == "" && slices.Contains([]string{fleet.SeatHeld, fleet.Ending, fleet.HolderUnknown, peer.Unreachable, peer.Stranger}, f.Reason)
}

// within bounds ctx by what the caller allows; 0 leaves it.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// ListServerTools implements [mcphostv1connect.McpHostServiceHandler]. When the node with the seat's own servers cannot be asked,
// the shared ones are answered all the same.
func (r *Router) ListServerTools(ctx context.Context, q *mcphostv1.ListServerToolsRequest) (answer *mcphostv1.ListServerToolsResponse, err error) {
	here := func(ctx context.Context) (err error) {
		answer, err = r.Handler.ListServerTools(ctx, q)
		return err
	}
	err = r.route(ctx, fleet.Request{Server: q.GetServer(), Seat: q.GetSeat()}, max(q.GetWait().AsDuration(), glance), here, func(ctx context.Context, c peer.Client) (err error) {
		answer, err = c.ListServerTools(ctx, q)
		return err
	})
	if f, ok := fault.As(err); moves(err) || ok && f.Reason == peer.Lost {
		err = here(ctx)
	}
	return answer, err
}

// CallServerTool implements [mcphostv1connect.McpHostServiceHandler].
func (r *Router) CallServerTool(ctx context.Context, q *mcphostv1.CallServerToolRequest) (answer *mcphostv1.CallServerToolResponse, err error) {
	ctx, cancel := within(ctx, q.GetTimeout().AsDuration())
	defer cancel()
	err = r.route(ctx, fleet.Request{Server: q.GetServer(), Seat: q.GetSeat()}, moving, func(ctx context.Context) (err error) {
		answer, err = r.Handler.CallServerTool(ctx, q)
		return err
	}, func(ctx context.Context, c peer.Client) (err error) {
		answer, err = c.CallServerTool(ctx, q)
		return err
	})
	if f, ok := fault.As(err); ok && f.Reason == peer.Lost {
		return r.repeat(ctx, q, f)
	}
	return answer, err
}

// repeat makes a call again that a node took with it when it was lost, if its tool may be called again, and answers lost if not.
func (r *Router) repeat(ctx context.Context, q *mcphostv1.CallServerToolRequest, lost *fault.Error) (answer *mcphostv1.CallServerToolResponse, err error) {
	if repeatable, known := r.Fleet.Repeatable(q.GetServer(), q.GetTool()); known && !repeatable {
		return nil, lost
	}
	err = r.route(ctx, fleet.Request{Server: q.GetServer(), Seat: q.GetSeat()}, moving, func(ctx context.Context) (err error) {
		answer, err = r.call(ctx, q, true)
		return err
	}, func(context.Context, peer.Client) error {
		return fleet.HeldElsewhere(q.GetSeat(), store.Node{}) // by the dead node still, or by one that would have to guess
	})
	if errors.Is(err, fleet.ErrUnrepeatable) || moves(err) {
		return nil, lost
	}
	return answer, err
}

// Exchange implements [mcphostv1connect.McpHostServiceHandler].
func (r *Router) Exchange(ctx context.Context, q *mcphostv1.ExchangeRequest, s mcphostv1connect.McpHostServiceExchangeServerStream) error {
	ctx, cancel := within(ctx, q.GetTimeout().AsDuration())
	defer cancel()
	return r.route(ctx, fleet.Request{Server: q.GetServer(), Seat: q.GetSeat(), Keeper: fleet.Keeper(q.GetParamsJson())}, moving, func(ctx context.Context) error {
		return r.Handler.Exchange(ctx, q, s)
	}, func(ctx context.Context, c peer.Client) error {
		messages, err := c.Exchange(ctx, q)
		if err != nil {
			return err
		}
		defer messages.Close()
		for {
			m, err := messages.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.Send(m); err != nil {
				return err
			}
		}
	})
}

// ReleaseSeat implements [mcphostv1connect.McpHostServiceHandler].
func (r *Router) ReleaseSeat(ctx context.Context, q *mcphostv1.ReleaseSeatRequest) (answer *mcphostv1.ReleaseSeatResponse, err error) {
	handed, err := r.handed(ctx)
	switch {
	case err != nil:
		return nil, err
	case handed:
		return r.Handler.ReleaseSeat(ctx, q)
	}
	node, local, err := r.Fleet.Holder(ctx, q.GetSeat())
	switch {
	case err != nil:
		return nil, err
	case local:
		return r.Handler.ReleaseSeat(ctx, q)
	case node.Name == "":
		return &mcphostv1.ReleaseSeatResponse{}, nil
	case node.URL == "":
		return nil, fleet.HeldElsewhere(q.GetSeat(), node)
	}
	err = r.Peers.Do(ctx, node, r.epoch(), func(ctx context.Context, c peer.Client) (err error) {
		answer, err = c.ReleaseSeat(ctx, q)
		return err
	})
	return answer, err
}

// epoch is that of the company this node knows.
func (r *Router) epoch() int32 {
	company, _ := r.Company()
	return company.GetEpoch()
}
