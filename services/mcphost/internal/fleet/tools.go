package fleet

import (
	"context"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
)

// View is a server as a seat sees it.
type View struct {
	Server string
	// Own says that the instance is the seat's own.
	Own    bool
	State  server.State
	Reason string
	// Prefix and Surfaces are the company's word.
	Prefix   string
	Surfaces []string
	// Tools are JSON, each as the server wrote it. One that restarts still shows those it had.
	Tools  []string
	Digest string
	// Capabilities are what the server declares, JSON as it wrote them, and Instructions its word to its users; empty while it is not
	// ready.
	Capabilities, Instructions string
}

// Tools answers the servers that a seat may use, in document order, or one of them: the shared ones, and its own, which are started
// when they do not run. It waits at most wait for those that start.
func (f *Fleet) Tools(ctx context.Context, seat, only string, wait time.Duration) []View {
	// Taking a seat's lease is a look at Postgres, which even a caller who does not wait for servers waits for.
	const look = time.Second
	holding, cancel := context.WithTimeout(ctx, max(wait, look))
	defer cancel()
	waiting, cancel := context.WithTimeout(ctx, max(wait, 0))
	defer cancel()
	f.mu.Lock()
	company := f.company
	f.mu.Unlock()
	var views []View
	var found []*instance
	for _, s := range company.GetMcpServers() {
		if only != "" && only != s.GetName() || !s.GetShared() && !has(company, seat, s.GetName()) {
			continue
		}
		i, err := f.instanceOf(holding, s.GetName(), seat)
		v := View{Server: s.GetName(), Own: !s.GetShared(), Prefix: s.GetToolPrefix(), Surfaces: s.GetSurfaces(), State: server.Spawn}
		if err != nil {
			v.State, v.Reason = server.Failed, sentence(err)
		}
		views, found = append(views, v), append(found, i)
	}
	for n, i := range found {
		if i != nil {
			i.settle(waiting)
			i.show(&views[n])
		}
	}
	return views
}

func has(c *companyv1.Company, seat, name string) bool {
	_, ok := credentials(c, seat, name)
	return ok
}

// settle waits until the instance is ready or has failed.
func (i *instance) settle(ctx context.Context) {
	i.mu.Lock()
	i.calls++
	i.mu.Unlock()
	defer i.end()
	for {
		i.mu.Lock()
		state, _, _ := i.machine.State()
		changed := i.changed
		i.mu.Unlock()
		if state == server.Ready || state == server.Failed || state == server.Shutdown {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (i *instance) show(v *View) {
	i.mu.Lock()
	defer i.mu.Unlock()
	v.State, v.Reason, _ = i.machine.State()
	if v.State == server.Idle {
		v.State = server.Spawn
	}
	if v.State == server.Ready || !i.machine.Open() {
		v.Tools, v.Digest = i.catalogue.tools, i.catalogue.digest
	}
	if i.session != nil {
		v.Capabilities, v.Instructions = string(i.redactor.JSON(i.session.Capabilities())), i.redactor.Text(i.session.Instructions())
	}
}

func (i *instance) idleSince() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.calls > 0 {
		return i.fleet.options.Now()
	}
	return i.usedAt
}

func (i *instance) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls > 0
}

// Failing answers the servers that are down on this node and how many instances of each.
func (f *Fleet) Failing() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	failing := map[string]int{}
	for id, i := range f.instances {
		i.mu.Lock()
		if state, _, _ := i.machine.State(); state == server.Failed {
			failing[id.server]++
		}
		i.mu.Unlock()
	}
	return failing
}
