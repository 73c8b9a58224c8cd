package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// roomWait is how long a call waits for a seat's instance to make room for its own.
const roomWait = 30 * time.Second

// instanceOf answers the instance for a server and, when it is a template, a seat, starting it when it does not run. A seat that
// another node holds is refused with [SeatHeld].
func (f *Fleet) instanceOf(ctx context.Context, name, seat string) (*instance, error) {
	f.mu.Lock()
	s := declaredServer(f.company, name)
	own, has := credentials(f.company, seat, name)
	id := identity{server: name}
	if !s.GetShared() {
		id.seat = seat
	}
	i := f.instances[id]
	running, ending := f.launch != nil, f.ending
	f.mu.Unlock()
	switch {
	case !running:
		return nil, notRunning(ending)
	case s == nil:
		return nil, fault.New(fault.NotFound, "The company declares no MCP server %q.", name).WithField("server")
	case s.GetShared():
		if i == nil {
			return nil, fault.New(fault.Unavailable, "The MCP server %q is being started: try again in a moment.", name)
		}
		return i, nil
	case seat == "" || !has:
		return nil, fault.New(fault.NotFound, "The MCP server %q runs once for each seat that has credentials for it, and %s.", name, without(seat)).WithField("seat")
	}
	if i != nil && f.leases.held(seat) {
		return i, nil
	}
	f.leases.pin(seat)
	defer f.leases.unpin(seat)
	if err := f.hold(ctx, seat); err != nil {
		return nil, err
	}
	return f.beginSeat(ctx, id, specOf(s, own))
}

func without(seat string) string {
	if seat == "" {
		return "none was named"
	}
	return "the seat " + seat + " has none"
}

// notRunning is retriable elsewhere: nothing was done.
func notRunning(ending bool) *fault.Error {
	f := fault.New(fault.Unavailable, "The host of MCP servers is starting or ending: try again in a moment.")
	if ending {
		f = f.WithReason(Ending)
	}
	return f
}

// beginSeat starts a seat's instance, unless somebody else just did. At the ceiling, idle ones of seats end first, the one that
// was not used for longest before the others, and the start waits until a process has ended.
func (f *Fleet) beginSeat(ctx context.Context, id identity, p spec) (*instance, error) {
	ctx, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	waits := false
	defer func() {
		if waits {
			f.queue.Add(-1)
		}
	}()
	for {
		i, freed, err := f.tryBegin(id, p)
		if i != nil || err != nil {
			return i, err
		}
		if !waits {
			waits = true
			f.queue.Add(1)
			continue // what ended before anybody knew that somebody waits said nothing
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, fault.New(fault.Unavailable, "This node runs %d MCP servers, which is its limit, and none became free in time: try again later.",
				f.options.MaxChildren).WithReason("TOO_MANY_SERVERS").WithCause(ctx.Err())
		}
	}
}

// tryBegin answers an instance, or what is closed when there may be room for one.
func (f *Fleet) tryBegin(id identity, p spec) (*instance, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.launch == nil {
		return nil, nil, notRunning(f.ending)
	}
	if i := f.instances[id]; i != nil {
		return i, nil, nil
	}
	if len(f.alive) >= f.options.MaxChildren {
		f.makeRoom()
		return nil, f.freed, nil
	}
	i := newInstance(f, id, p)
	f.begin(i)
	return i, nil, nil
}

// makeRoom ends as many idle instances of seats as there are waiting for room, those included that are ending already. It is
// called under the lock.
func (f *Fleet) makeRoom() {
	short := max(int(f.queue.Load()), 1) - (len(f.alive) - len(f.instances))
	if short <= 0 {
		return
	}
	var idle []*instance
	for id, i := range f.instances {
		if id.seat != "" && !i.busy() {
			idle = append(idle, i)
		}
	}
	slices.SortFunc(idle, func(a, b *instance) int { return a.idleSince().Compare(b.idleSince()) })
	for _, i := range idle[:min(short, len(idle))] {
		f.retire(i, patience)
	}
}

// announceRoom wakes who waits for room. It is called under the lock.
func (f *Fleet) announceRoom() {
	if f.queue.Load() > 0 {
		close(f.freed)
		f.freed = make(chan struct{})
	}
}

// idle is told that an instance has nothing to do.
func (f *Fleet) idle() {
	if f.queue.Load() > 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.announceRoom()
	}
}
