package toolregistry

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/act"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/mcp"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/upstream"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// operator is the operator's side: `/operator/mcp` for assistants, `/operator/act/{tool}` for screens.
type operator struct {
	company *company
	mcp     *mcp.Server
	act     *act.Handler
	drained chan struct{}
}

// newOperator builds it on the door that everybody goes through.
func (s *Service) newOperator(tools *catalogue.Catalogue, entrance *door.Door, host upstream.Host, cleaner *hygiene.Cleaner) *operator {
	d := s.deps
	callers := rpc.NewCallers(d.Keys, tokens{toolv1connect.NewPrincipalServiceClient(d.Client("company"))}, d.Now)
	o := &operator{company: s.company, drained: make(chan struct{})}
	o.mcp = mcp.New(mcp.Options{
		Door: entrance,
		Surface: func(ctx context.Context) *surface.Surface {
			current := s.company.at(ctx, "")
			if current == nil {
				return nil
			}
			return s.seats.Surface(ctx, current, "")
		},
		Resumable: func(name string) bool {
			tool, ok := tools.Lookup(name)
			return ok && tool.Resumable
		},
		Upstreams: upstream.New(upstream.Options{Host: host, Company: s.company.at, Cleaner: cleaner, Log: d.Log, Now: d.Now}),
		Identify:  callers.Identify, Keys: d.Keys, Cleaner: cleaner, Log: d.Log, Now: d.Now,
	})
	o.act = act.New(act.Options{
		Door: entrance, Catalogue: tools, Company: s.company.at, Identify: callers.Identify, Draining: o.draining, Log: d.Log,
	})
	return o
}

// routes adds both addresses.
func (o *operator) routes(mux *http.ServeMux) {
	mux.Handle("/operator/mcp", o.mcp)
	mux.Handle("POST /operator/act/{tool}", o.act)
}

// run follows what changes the catalogue until ctx ends, and drains.
func (o *operator) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.mcp.Run(ctx) })
	group.Go(func() error {
		for {
			changed := o.company.follower.Changed()
			o.mcp.Changed()
			select {
			case <-changed:
			case <-ctx.Done():
				close(o.drained)
				return nil
			}
		}
	})
	return group.Wait()
}

func (o *operator) draining() bool {
	select {
	case <-o.drained:
		return true
	default:
		return false
	}
}

// serverChanged hears that a server is not what it was; a seat's own child is nothing of an operator's.
func (o *operator) serverChanged(seat string) {
	if seat == "" {
		o.mcp.Changed()
	}
}

// serverReady hears that a shared server began anew: it knows of nothing that was followed at it, and may have other things.
func (o *operator) serverReady(ctx context.Context, server string) {
	o.mcp.ListsChanged(true, true)
	o.mcp.Refollow(ctx, server)
}

// tokens verifies API tokens where they are kept.
type tokens struct {
	client toolv1connect.PrincipalServiceClient
}

// VerifyToken implements [rpc.TokenVerifier].
func (t tokens) VerifyToken(ctx context.Context, token string) (*rpc.Principal, error) {
	answer, err := t.client.VerifyToken(ctx, &toolv1.VerifyTokenRequest{Token: token})
	if err != nil {
		return nil, rpc.FromError(err)
	}
	return answer.GetPrincipal(), nil
}
