package fleet

import (
	"context"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/secrets"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
)

const (
	// consentPoll is how often an instance that waits for an operator's consent looks whether it was given at another node.
	consentPoll = 2 * time.Second
	// maxHidden is how many of the latest tokens are taken out of what an instance says; those before them have ended.
	maxHidden = 16
)

// authorization is how a token is had, templates unfilled; nil for none.
type authorization struct {
	Grant, ClientID, ClientSecret string
	Scopes                        []string
}

func authorizationOf(s *companyv1.McpServer) *authorization {
	a := s.GetAuthorization()
	if a == nil || s.GetTransport() == stdio {
		return nil
	}
	return &authorization{Grant: a.GetGrant(), ClientID: a.GetClientId(), ClientSecret: a.GetClientSecret(), Scopes: a.GetScopes()}
}

// fill adds what is a template.
func (a *authorization) fill(filler *secrets.Filler) *authorization {
	if a == nil {
		return nil
	}
	c := *a
	filler.Add(c.ClientSecret, func(v string) { c.ClientSecret = v })
	return &c
}

// access answers the access to a server that wants a token; nil for one that does not. p is filled.
func (f *Fleet) access(p *spec, id identity, hide func(...string)) (*authorize.Access, error) {
	if p.authorization == nil {
		return nil, nil
	}
	return f.options.Authorizer.For(authorize.Server{
		Name: id.server, Seat: id.seat, URL: p.url, Headers: p.variables, SSE: p.transport == sse, Grant: p.authorization.Grant,
		ClientID: p.authorization.ClientID, ClientSecret: p.authorization.ClientSecret, Scopes: p.authorization.Scopes, Hide: hide,
	})
}

// authorize gets a token for the instance, where its server wants one, before anything else is asked of it.
func (i *instance) authorize(ctx context.Context, p *spec) (err error) {
	if i.access, err = i.fleet.access(p, i.id, i.hide); err != nil || i.access == nil {
		return err
	}
	return i.access.Prepare(ctx)
}

// hide takes more values out of what the instance says.
func (i *instance) hide(values ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hidden = append(i.hidden, values...)
	i.hidden = i.hidden[max(0, len(i.hidden)-maxHidden):]
	i.redactor = i.resolved.With(i.hidden...)
}

// consented reports whether what the instance waited for has come.
func (i *instance) consented(ctx context.Context) bool {
	has, err := i.access.Granted(ctx)
	if err != nil && ctx.Err() == nil {
		i.log.Warn("cannot look whether an operator has consented; it is looked again", "error", i.clean(err.Error()))
	}
	return has && i.change(func(m *server.Machine, now time.Time) bool { return m.Forgive(now) })
}

// Granted has the instances look for a token that an operator's consent brought.
func (f *Fleet) Granted(server, seat string) {
	f.mu.Lock()
	i := f.instances[identity{server, seat}]
	f.mu.Unlock()
	if i != nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.wakeLocked()
	}
}

// Access answers the access to a declared server, as a seat or for the company.
//
// Faults: not_found for a server that there is not, or that the seat has no credentials for; invalid for one that declares no
// authorization; unavailable when its credentials cannot be resolved.
func (f *Fleet) Access(ctx context.Context, name, seat string) (*authorize.Access, error) {
	f.mu.Lock()
	s := declaredServer(f.company, name)
	own, has := credentials(f.company, seat, name)
	f.mu.Unlock()
	id := identity{server: name}
	switch {
	case s == nil:
		return nil, fault.New(fault.NotFound, "The company declares no MCP server %q.", name).WithField("server")
	case authorizationOf(s) == nil:
		return nil, fault.New(fault.Invalid, "The MCP server %q declares no authorization.", name).WithField("server")
	case s.GetShared():
		own = nil
	case seat == "" || !has:
		return nil, fault.New(fault.NotFound, "The MCP server %q runs once for each seat that has credentials for it, and %s.", name, without(seat)).WithField("seat")
	default:
		id.seat = seat
	}
	filled, filler := specOf(s, own).fill()
	if _, err := filler.Fill(ctx, f.options.Company); err != nil {
		return nil, fault.New(fault.Unavailable, "The credentials of the MCP server %q cannot be resolved: %s", name, sentence(err)).WithCause(err)
	}
	access, err := f.access(filled, id, nil)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The MCP server %q cannot be authorised: %s.", name, err).WithField("server")
	}
	return access, nil
}
