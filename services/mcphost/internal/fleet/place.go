package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// Reasons of refusals that say: nothing was done here, another node is to be asked.
const (
	// SeatHeld means that another node holds the seat.
	SeatHeld = "SEAT_HELD"
	// Ending means that this node takes nothing more.
	Ending = "NODE_ENDING"
	// HolderUnknown means that this node cannot ask the database: another one may reach it, or it comes back.
	HolderUnknown = "HOLDER_UNKNOWN"
)

const (
	// Silence is how long a node that says nothing counts as alive.
	Silence = 15 * time.Second
	// watching is how often it is looked whether other nodes are gone, and alone whether there are any.
	watching, alone = 250 * time.Millisecond, time.Second
)

// Presence answers which of the other nodes are absent from the database; see libs/presence.
type Presence interface {
	Gone(ctx context.Context, nodes []string) ([]string, error)
}

// Request says what a request is for.
type Request struct {
	// Server may be empty for all that the seat may use, Seat for nobody.
	Server, Seat string
	// Keeper is the node where an earlier round of the request waits; empty for none. See [Keeper].
	Keeper string
}

// Place answers the node that is to serve a request, and true when it is this one: a template's children run where the seat's lease
// is, which is here when nobody has it.
func (f *Fleet) Place(ctx context.Context, r Request) (store.Node, bool, error) {
	f.mu.Lock()
	own, ending := f.own(r.Server, r.Seat), f.ending
	f.mu.Unlock()
	switch {
	case !own && r.Keeper != "" && r.Keeper != f.options.Node:
		return f.keeper(ctx, r.Keeper)
	case ending:
		return f.successor(ctx, r.Seat, own)
	case !own || f.leases.held(r.Seat):
		return store.Node{}, true, nil
	}
	f.leases.pin(r.Seat)
	defer f.leases.unpin(r.Seat)
	holder, err := f.leases.take(ctx, r.Seat)
	if err != nil {
		return store.Node{}, false, unknownHolder(r.Seat, err)
	}
	return holder, holder.Name == f.options.Node, nil
}

// keeper answers a node by name, and this one when that node is gone: the server may know the state as well.
func (f *Fleet) keeper(ctx context.Context, name string) (store.Node, bool, error) {
	peers, err := f.options.Store.Peers(ctx, Silence)
	if err != nil {
		return store.Node{}, false, fault.New(fault.Unavailable, "It cannot be found out where the request waits: try again.").WithCause(err)
	}
	if i := slices.IndexFunc(peers, func(n store.Node) bool { return n.Name == name }); i >= 0 {
		return peers[i], false, nil
	}
	return store.Node{}, true, nil
}

// own says whether a request is for children of the seat's own. It is called under the lock.
func (f *Fleet) own(server, seat string) bool {
	if seat == "" {
		return false
	}
	for _, s := range f.company.GetMcpServers() {
		if (server == "" || server == s.GetName()) && !s.GetShared() && has(f.company, seat, s.GetName()) {
			return true
		}
	}
	return false
}

// successor answers who serves when this node ends: the holder of the seat once that is another, or anybody.
func (f *Fleet) successor(ctx context.Context, seat string, own bool) (store.Node, bool, error) {
	if own {
		holder, err := f.options.Store.Holder(ctx, seat)
		if err != nil {
			return store.Node{}, false, unknownHolder(seat, err)
		}
		if holder.Name != "" {
			return holder, false, nil
		}
	}
	peers, err := f.options.Store.Peers(ctx, Silence)
	if err != nil || len(peers) == 0 {
		return store.Node{}, true, nil // which refuses
	}
	return peers[rand.IntN(len(peers))], false, nil
}

// Holder answers the node that holds a seat, true when it is this one, and the zero Node for none.
func (f *Fleet) Holder(ctx context.Context, seat string) (store.Node, bool, error) {
	if f.leases.held(seat) {
		return store.Node{}, true, nil
	}
	holder, err := f.options.Store.Holder(ctx, seat)
	if err != nil {
		return store.Node{}, false, unknownHolder(seat, err)
	}
	return holder, holder.Name == f.options.Node, nil
}

// Peers answers the other nodes that live and can be reached.
func (f *Fleet) Peers(ctx context.Context) ([]store.Node, error) {
	return f.options.Store.Peers(ctx, Silence)
}

// hold answers when this node holds the seat, or why it does not.
func (f *Fleet) hold(ctx context.Context, seat string) error {
	if f.leases.held(seat) {
		return nil
	}
	holder, err := f.leases.take(ctx, seat)
	switch {
	case err != nil:
		return unknownHolder(seat, err)
	case holder.Name == f.options.Node:
		return nil
	}
	return HeldElsewhere(seat, holder)
}

// HeldElsewhere is the refusal of a request for a seat that another node holds. Nothing was done.
func HeldElsewhere(seat string, holder store.Node) *fault.Error {
	return fault.New(fault.Unavailable, "Another node (%s) runs the MCP servers of %s and could not be asked; they move when it lets go: try again in a moment.",
		holder.Name, seat).WithReason(SeatHeld)
}

func unknownHolder(seat string, err error) *fault.Error {
	return fault.New(fault.Unavailable, "It cannot be found out which node runs the MCP servers of %s: try again.", seat).WithReason(HolderUnknown).WithCause(err)
}

// watch frees the seats of nodes that are gone, until ctx ends: their leases would free them too, but later.
func (f *Fleet) watch(ctx context.Context) {
	ticker := time.NewTicker(watching)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		others, err := f.options.Store.Others(ctx)
		if err != nil || len(others) == 0 {
			ticker.Reset(alone)
			continue // the renewal of leases says that the database is away
		}
		ticker.Reset(watching)
		gone, err := f.ended(ctx, others)
		if err != nil || len(gone) == 0 {
			continue
		}
		if err := f.options.Store.Bury(ctx, gone); err != nil {
			f.options.Log.Warn("cannot free the seats of nodes that are gone", "error", err)
			continue
		}
		f.options.Log.Info("nodes are gone, their seats are free", "nodes", gone)
	}
}

// ended answers which nodes are gone for certain. One that only lost its way to the database looks gone there, yet its children may
// act for its seats until their leases end: it is asked at its own address. One that said goodbye has none.
func (f *Fleet) ended(ctx context.Context, others []string) ([]string, error) {
	absent, err := f.options.Presence.Gone(ctx, others)
	if err != nil || len(absent) == 0 {
		return nil, err
	}
	nodes, err := f.options.Store.Addresses(ctx, absent)
	if err != nil {
		return nil, err
	}
	ended := make([]bool, len(nodes))
	var probes sync.WaitGroup
	for i, node := range nodes {
		probes.Go(func() { ended[i] = node.URL == "" || f.options.Ended(ctx, node) })
	}
	probes.Wait()
	var gone []string
	for i, node := range nodes {
		if ended[i] {
			gone = append(gone, node.Name)
		}
	}
	return gone, nil
}

// Running reports whether instances may run: not before Run, nor while it ends.
func (f *Fleet) Running() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.launch != nil
}

// withdraw tells the others that nothing is to be sent here any more.
func (f *Fleet) withdraw() {
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	f.options.Store.Withdraw()
	f.reporter.soon()
}
