// Package peer carries a request from the node that got it to the node that is to serve it: as its own caller, unless that is
// another service, which nobody can speak for, under its own operation and deadline, and once. Who is to serve what is decided elsewhere.
//
// A request that was handed on names the node it is for. That node serves it or refuses it and never hands it on again, so no
// request can go in circles; a process that took over a dead node's address finds that it is not meant.
package peer

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect/v2"
	"go.opentelemetry.io/otel/trace"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

const (
	headerNode  = "Bullpen-Mcphost-Node"
	headerEpoch = "Bullpen-Mcphost-Epoch"
	// kept is how long a connection to a node that nothing is sent to is kept.
	kept = 10 * time.Minute
)

// Reasons of failures that are about the other node.
const (
	// Unreachable means that the node got nothing.
	Unreachable = "NODE_UNREACHABLE"
	// Lost means that the node was lost after it may have got the request; the outcome is unknown.
	Lost = "NODE_LOST"
	// Stranger means that another process has the address.
	Stranger = "NODE_CHANGED"
)

// Client is the service at another node.
type Client = mcphostv1connect.McpHostServiceClient

// Peers are the other nodes. They are safe for concurrent use.
type Peers struct {
	self, service string
	keys          *rpc.Keys
	tracer        trace.TracerProvider

	mu      sync.Mutex
	clients map[string]*client // by address
}

type client struct {
	Client
	transport *rpc.Transport
	used      time.Time
}

// New makes the peers of a node. Calls to them are signed with keys by service.
func New(self, service string, keys *rpc.Keys, tracer trace.TracerProvider) *Peers {
	return &Peers{self: self, service: service, keys: keys, tracer: tracer, clients: map[string]*client{}}
}

// Close drops all connections.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for address, c := range p.clients {
		c.transport.Close()
		delete(p.clients, address)
	}
}

func (p *Peers) client(address string) Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	c := p.clients[address]
	if c == nil {
		for other, o := range p.clients {
			if now.Sub(o.used) > kept {
				o.transport.Close()
				delete(p.clients, other)
			}
		}
		transport := rpc.HTTPTransport(address)
		c = &client{transport: transport, Client: mcphostv1connect.NewMcpHostServiceClient(
			rpc.NewClient(transport, rpc.ClientOptions{Service: p.service, Keys: p.keys, TracerProvider: p.tracer}))}
		p.clients[address] = c
	}
	c.used = now
	return c
}

// Do asks a node, in the name of the caller of ctx and under its operation. epoch is that of the company this node knows.
//
// What the node refuses comes as it is. Otherwise the fault is unavailable with reason [Unreachable], or with reason [Lost] and
// outcome unknown; the end of ctx is neither.
func (p *Peers) Do(ctx context.Context, node store.Node, epoch int32, ask func(context.Context, Client) error) error {
	out, info := connect.NewClientContext(ctx)
	info.RequestHeader().Set(headerNode, node.Name)
	info.RequestHeader().Set(headerEpoch, strconv.Itoa(int(epoch)))
	if principal, ok := rpc.PrincipalFrom(ctx); ok && principal.GetKind() != rpc.KindService { // a service signs for itself
		out = rpc.As(out, principal)
	}
	err := ask(rpc.WithOperation(out, rpc.OperationID(ctx)), p.client(node.URL))
	f := rpc.FromError(err)
	c, answered := errors.AsType[*connect.Error](err)
	switch {
	case f == nil:
		return nil
	case answered && c.IsRemote(), ctx.Err() != nil:
		return f
	case f.Outcome == "":
		return fault.New(fault.Unavailable, "The node %s, which is to serve this, cannot be reached; nothing was done: try again in a moment.", node.Name).
			WithReason(Unreachable).WithCause(err)
	default:
		return fault.New(fault.Unavailable, "The node %s was lost while it served this; it may or may not have been carried out.", node.Name).
			WithReason(Lost).WithOutcome(fault.OutcomeUnknown).WithCause(err)
	}
}

// probeTime bounds each of the two questions whether a node has ended.
const probeTime = time.Second

// Ended reports whether the process of a node is known to have ended: nobody takes connections at its address, or another process
// does. A node that is stopped, slow or out of reach may go on with what it was at.
func (p *Peers) Ended(ctx context.Context, node store.Node) bool {
	at, err := url.Parse(node.URL)
	if err != nil {
		return false
	}
	address := at.Host
	if at.Port() == "" {
		address = net.JoinHostPort(at.Hostname(), at.Scheme) // the port's name
	}
	connection, err := (&net.Dialer{Timeout: probeTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = connection.Close()
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err = p.Do(ctx, node, 0, func(ctx context.Context, c Client) error {
		_, err := c.ReleaseSeat(ctx, &mcphostv1.ReleaseSeatRequest{Seat: nobody})
		return err
	})
	f, ok := fault.As(err)
	return ok && f.Reason == Stranger
}

// nobody is a seat that no company has.
const nobody = "-"

// Handed is what a request says that another node handed on.
type Handed struct {
	// Epoch is that of the company which the other node knows.
	Epoch int32
}

// Incoming answers what a request says about being handed on, false for one that was not, and refuses one that is for another
// node.
func (p *Peers) Incoming(ctx context.Context) (Handed, bool, error) {
	info, ok := connect.CallInfoForServerContext(ctx)
	if !ok {
		return Handed{}, false, nil
	}
	node := info.RequestHeader().Get(headerNode)
	switch node {
	case "":
		return Handed{}, false, nil
	case p.self:
		epoch, _ := strconv.ParseInt(info.RequestHeader().Get(headerEpoch), 10, 32) // without it, ours will do
		return Handed{Epoch: int32(epoch)}, true, nil
	}
	return Handed{}, true, fault.New(fault.Unavailable, "This is not the node %s any more; nothing was done: try again in a moment.", node).WithReason(Stranger)
}
