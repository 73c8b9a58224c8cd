package fleet

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/session"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

const (
	// heartbeat is how often a node says that it lives.
	heartbeat = 3 * time.Second
	sweep     = 10 * time.Minute
	retryMin  = 200 * time.Millisecond
)

// maxUpdated bounds the changed resources of one server that wait to be reported: a server may name more than anybody follows.
const maxUpdated = 1000

// reporter writes facts behind the instances' backs, so that none of them waits for Postgres. Facts about one instance that wait
// together become one: the table holds what is, and who hears an event looks here again anyway.
type reporter struct {
	store *store.Store
	log   *slog.Logger
	wake  chan struct{}

	mu      sync.Mutex
	order   []identity
	pending map[identity]store.Fact
	// owner is the instance that speaks for an identity: one that was replaced and takes its time to end does not.
	owner map[identity]*instance
}

func newReporter(o Options) *reporter {
	return &reporter{store: o.Store, log: o.Log, wake: make(chan struct{}, 1), pending: map[identity]store.Fact{}, owner: map[identity]*instance{}}
}

// own makes an instance the one that speaks for its identity.
func (r *reporter) own(i *instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner[i.id] = i
}

func (r *reporter) add(i *instance, f store.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner[i.id] != i {
		return
	}
	if f.Report.State == server.Shutdown {
		delete(r.owner, i.id)
	}
	r.enqueue(i.id, f)
}

// enqueue is called under the lock.
func (r *reporter) enqueue(id identity, f store.Fact) {
	if before, waits := r.pending[id]; waits {
		f = join(before, f)
	} else {
		r.order = append(r.order, id)
	}
	r.pending[id] = f
	r.soon()
}

// soon makes the next report come at once.
func (r *reporter) soon() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// again reports every instance, as after the node was taken for dead.
func (r *reporter) again() {
	r.mu.Lock()
	owners := slices.Collect(maps.Values(r.owner))
	r.mu.Unlock()
	for _, i := range owners {
		i.report()
	}
}

func join(before, after store.Fact) store.Fact {
	after.StateChanged = after.StateChanged || before.StateChanged
	if after.Digest == "" {
		after.Digest = before.Digest
	}
	updated := before.Resources
	for _, uri := range after.Resources {
		if !slices.Contains(updated, uri) && len(updated) < maxUpdated {
			updated = append(updated, uri)
		}
	}
	after.Resources = updated
	after.PromptsChanged = after.PromptsChanged || before.PromptsChanged
	after.ResourcesChanged = after.ResourcesChanged || before.ResourcesChanged
	return after
}

// listsChanged reports that prompts or resources may be others. They are listed on demand, so there is nothing to compare.
func (i *instance) listsChanged(c session.Changes) {
	if !c.Prompts && !c.Resources {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fleet.reporter.add(i, store.Fact{Report: i.reportLocked(), PromptsChanged: c.Prompts, ResourcesChanged: c.Resources})
}

// resourceUpdated reports a change of a resource.
func (i *instance) resourceUpdated(uri string) {
	uri = i.clean(uri)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fleet.reporter.add(i, store.Fact{Report: i.reportLocked(), Resources: []string{uri}})
}

// run writes until ctx ends, and then once more.
func (r *reporter) run(ctx context.Context) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	swept := time.Now()
	for ctx.Err() == nil {
		r.flush(ctx)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-beat.C:
			if time.Since(swept) > sweep {
				swept = time.Now()
				if err := r.store.Sweep(ctx); err != nil && ctx.Err() == nil {
					r.log.Warn("cannot sweep silent nodes", "error", err)
				}
			}
		}
	}
	const limit = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	r.flush(ctx)
}

// flush writes what waits; with nothing, it is the heartbeat. What cannot be written waits on.
func (r *reporter) flush(ctx context.Context) {
	facts := r.take()
	forgotten, err := r.store.Record(ctx, facts)
	if err == nil {
		if forgotten {
			r.again()
		}
		return
	}
	r.putBack(facts)
	if ctx.Err() != nil {
		return
	}
	r.log.Warn("cannot report; it is tried again", "facts", len(facts), "error", err)
	timer := time.NewTimer(retryMin)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (r *reporter) take() []store.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	facts := make([]store.Fact, 0, len(r.order))
	for _, id := range r.order {
		facts = append(facts, r.pending[id])
	}
	r.order = nil
	clear(r.pending)
	return facts
}

// putBack joins what was taken with what came meanwhile.
func (r *reporter) putBack(facts []store.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.order {
		facts = append(facts, r.pending[id])
	}
	r.order = nil
	clear(r.pending)
	for _, f := range facts {
		r.enqueue(identity{f.Report.Server, f.Report.Seat}, f)
	}
}
