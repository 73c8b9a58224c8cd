// Package api answers the RPCs of the company service and of bullpen.tool.v1.PrincipalService.
//
// Who may ask what is settled first in each method, from the principal alone:
//
//	                              service   operator   person   seat
//	read the company and its past    ✓         ✓          ✓
//	check a document                 ✓         ✓          ✓
//	put one or a part of it          ✓         ✓
//	secrets, tokens                  ✓         ✓
//	lookup_colleague                 ✓         ✓          ✓      through the door
//	ResolveSecrets                mcphost, notification, turn
//	VerifyToken                      ✓
package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

// door is the service through which seats reach tools.
const door = "toolregistry"

// Handler answers. It is safe for concurrent use.
type Handler struct {
	store     *store.Store
	box       *sealed.Box
	getenv    func(string) string
	now       func() time.Time
	wake      func()
	companies *companies
}

var (
	_ companyv1connect.CompanyServiceHandler = (*Handler)(nil)
	_ toolv1connect.PrincipalServiceHandler  = (*Handler)(nil)
)

// Options is what a handler needs.
type Options struct {
	Store *store.Store
	// Box seals secrets; nil refuses what needs it.
	Box *sealed.Box
	// Getenv reads the environment of the process, for `${NAME}`.
	Getenv func(string) string
	Now    func() time.Time
	// Wake is called after a commit that announced something.
	Wake func()
}

// New answers a handler.
func New(o Options) *Handler {
	return &Handler{
		store: o.Store, box: o.Box, getenv: o.Getenv, now: o.Now, wake: o.Wake, companies: newCompanies(o.Store),
	}
}

// reader lets everybody ask but seats.
func reader(ctx context.Context) error {
	_, err := rpc.RequireKind(ctx, rpc.KindService, rpc.KindOperator, rpc.KindPerson)
	return err
}

// writer lets services and operators ask. A token that is bound to a person writes as that person, and the company's
// configuration is not a person's to write.
func writer(ctx context.Context) (*rpc.Principal, error) {
	return rpc.RequireKind(ctx, rpc.KindService, rpc.KindOperator)
}

// colleague lets everybody ask, seats only in a turn's call that came through the door.
func colleague(ctx context.Context) error {
	p, err := rpc.RequireKind(ctx, rpc.KindService, rpc.KindOperator, rpc.KindPerson, rpc.KindSeat)
	if err != nil {
		return err
	}
	if p.GetKind() == rpc.KindSeat && p.GetIssuer() != door {
		return fault.New(fault.Forbidden, "A seat reaches tools through the tool registry only.")
	}
	return nil
}

// service lets a service ask that signed for itself; with names, only those.
func service(ctx context.Context, names ...string) error {
	p, err := rpc.RequireKind(ctx, rpc.KindService)
	if err != nil {
		return err
	}
	if p.GetIssuer() != p.GetId() {
		return fault.New(fault.Forbidden, "The call is signed by %s in the name of %s; a service asks this for itself.", p.GetIssuer(), p.GetId())
	}
	for _, name := range names {
		if p.GetId() == name {
			return nil
		}
	}
	if len(names) > 0 {
		return fault.New(fault.Forbidden, "The service %s may not ask this.", p.GetId())
	}
	return nil
}

// byline is how a principal stands in records.
func byline(p *rpc.Principal) string { return p.GetKind() + ":" + p.GetId() }

// operation names the write that a call is.
func operation(ctx context.Context, tool string, request proto.Message) ops.Operation {
	return ops.Operation{ID: rpc.OperationID(ctx), Caller: rpc.Caller(ctx), Tool: tool, Digest: ops.Digest(request)}
}

// sealedOperation is operation for a request that holds a secret: the ledger keeps a keyed digest, which helps nobody guess.
func sealedOperation(ctx context.Context, tool string, request proto.Message, box *sealed.Box) ops.Operation {
	op := operation(ctx, tool, request)
	op.Digest = box.Digest(op.Digest)
	return op
}
