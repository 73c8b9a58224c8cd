package fleet

import (
	"context"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Restart ends a server's instances on this node, or a seat's one, and answers how many. Calls under way finish first. A shared
// server is started again at once, a seat's at its next use; each start resolves credentials anew.
func (f *Fleet) Restart(server, seat string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	restarted := 0
	for id, i := range f.instances {
		if id.server != server || seat != "" && id.seat != seat {
			continue
		}
		f.retire(i, patience)
		restarted++
		if s := declaredServer(f.company, server); s.GetShared() && f.launch != nil {
			f.begin(newInstance(f, id, specOf(s, nil)))
		}
	}
	return restarted
}

// Release ends a seat's own instances and waits for their end; the seat's lease goes with them, unless the seat is in use again.
func (f *Fleet) Release(ctx context.Context, seat string) (int, error) {
	f.mu.Lock()
	var all []*instance
	for id, i := range f.instances {
		if id.seat == seat {
			all = append(all, i)
			f.retire(i, patience)
		}
	}
	f.letGo()
	f.mu.Unlock()
	for _, i := range all {
		select {
		case <-i.done:
		case <-ctx.Done():
			return len(all), fault.New(fault.Unavailable, "The servers of %s are ending, but calls under way keep them: ask again.", seat).WithCause(ctx.Err())
		}
	}
	return len(all), nil
}

// Repeatable reports whether a tool may be called again when it is not known whether it was carried out, and false for known when
// neither the operator nor an instance on this node says anything of it.
func (f *Fleet) Repeatable(server, tool string) (may, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := declaredServer(f.company, server)
	if repeatable(s, tool, hints{}) {
		return true, true
	}
	if o, ok := override(s, tool); ok && o.ReadOnly != nil && o.Idempotent != nil {
		return false, true
	}
	for id, i := range f.instances {
		if id.server != server {
			continue
		}
		i.mu.Lock()
		h, has := i.catalogue.hints[tool]
		i.mu.Unlock()
		if has {
			return repeatable(s, tool, h), true
		}
	}
	return false, false
}
