// Package api is the tracker's handlers: they say who acts, resolve names against the company, call the store once and convert
// the answer.
package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/object"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/search"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Handler serves TrackerService. It is safe for concurrent use.
type Handler struct {
	trackerv1connect.UnimplementedTrackerServiceHandler
	Store *store.Store
	// Org answers the company in force: nil when none is, false before that is known.
	Org func() (*org.Org, bool)
	// Colleagues finds whom a text names when it is no handle.
	Colleagues Colleagues
	Now        func() time.Time
	// Objects keeps the bytes of files.
	Objects object.Store
	// Lagging reports whether searches are more than 5 s behind the writes; nil when nothing can lag.
	Lagging func() bool
	// Search is the index that items are found in by their words.
	Search *search.Index
}

var _ trackerv1connect.TrackerServiceHandler = (*Handler)(nil)

// caller answers the company and who acts. Seats come through the door alone: nobody else may sign for one.
func (h *Handler) caller(ctx context.Context) (*org.Org, item.Actor, error) {
	principal, err := rpc.RequireKind(ctx, rpc.KindSeat, rpc.KindPerson, rpc.KindOperator, rpc.KindService)
	if err != nil {
		return nil, item.Actor{}, err
	}
	if principal.GetKind() == rpc.KindSeat && principal.GetIssuer() != "toolregistry" {
		return nil, item.Actor{}, fault.New(fault.Forbidden, "a seat calls the tracker through the tool registry, not through %s", principal.GetIssuer())
	}
	o, ok := h.Org()
	if !ok || o == nil {
		return nil, item.Actor{}, fault.New(fault.Unavailable, "no company is active yet, so there are no projects: apply a company document first")
	}
	return o, actor(principal), nil
}

func actor(p *rpc.Principal) item.Actor {
	switch p.GetKind() {
	case rpc.KindSeat:
		return item.Actor{Name: p.GetSeat(), Kind: "agent", Seat: p.GetSeat(), Turn: p.GetTurn().GetTurnId()}
	case rpc.KindPerson:
		return item.Actor{Name: p.GetSeat(), Kind: "human", Seat: p.GetSeat()}
	case rpc.KindOperator:
		name := p.GetDisplayName()
		if name == "" {
			name = p.GetId()
		}
		return item.Actor{Name: name, Kind: "operator"}
	default:
		return item.Actor{Name: p.GetId(), Kind: "system"}
	}
}

// act is who writes now.
func (h *Handler) act(o *org.Org, by item.Actor) store.Act {
	return store.Act{By: by, At: h.now(), Org: o}
}

// operation names the write that a call is.
func operation(ctx context.Context, tool string, request proto.Message) ops.Operation {
	return ops.Operation{ID: rpc.OperationID(ctx), Caller: rpc.Caller(ctx), Tool: tool, Digest: ops.Digest(request)}
}
