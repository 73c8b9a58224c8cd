// Package door is the one way to a tool. Whoever calls, a call passes the same stages, each in a file of its own:
//
//	identify   who calls, for which seat, in which turn             caller.go
//	resolve    which tool the name means on that surface            resolve.go
//	permit     is it for this kind of caller, can it be called      permit.go
//	judge      what the company's policy says without arguments     decide.go
//	read       the arguments, against contract or schema            arguments.go
//	weigh      what the policy says of these arguments              decide.go
//	park       where it asks a person: the call waits, not made     park.go
//	dispatch   to whoever runs it, with deadline and operation      dispatch.go
//	clean      what came back, failures too                         answer.go
//	record     in the audit, whatever happened                      answer.go
//
// A stage that refuses ends the call before anything was done; from dispatch on, a failure says whether the tool may have done
// its work all the same.
package door

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/toolrule"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/audit"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/policy"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/seatcache"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// Options are what a door needs; all but Metrics are required.
type Options struct {
	Catalogue *catalogue.Catalogue
	// Company answers the active revision, at least as new as the named one when that can be had, and nil when there is none.
	Company func(ctx context.Context, revision string) *companyv1.Company
	// Asked answers the revision that is active at this moment, nil when there is none. Faults: unavailable.
	Asked    func(ctx context.Context) (*companyv1.Company, error)
	Seats    *seatcache.Cache
	Dispatch *dispatch.Dispatcher
	Cleaner  *hygiene.Cleaner
	Audit    *audit.Writer
	// Approvals keeps the calls that wait for a person.
	Approvals Approvals
	Log       *slog.Logger
	Now       func() time.Time
	Metrics   prometheus.Registerer
}

// Door calls tools. Safe for concurrent use.
type Door struct {
	Options
	metrics metrics
	rules   rules
}

// New makes a door.
func New(o Options) *Door {
	return &Door{Options: o, metrics: newMetrics(o.Metrics)}
}

// Request is a call as its caller makes it.
type Request struct {
	Tool, Arguments string
	// OperationID is empty for a call that is not repeated.
	OperationID string
	// CallID is the caller's own.
	CallID string
	// Seat is whom a service that holds it calls as.
	Seat string
	// Timeout shortens the tool's own limit; 0 does not.
	Timeout time.Duration
	// NotOffered says that the caller's turn was not given the tool: the call ends in the refusal that says why.
	NotOffered bool
	// Conversation is for a caller who speaks the protocol of MCP servers; nil for one who wants the end of the call only.
	Conversation *dispatch.Conversation
	// Operation names the operation of a write of ours once its arguments have been read, or refuses it; nil leaves OperationID.
	Operation func(tool *catalogue.Tool, input proto.Message) (id string, err error)
}

// Answer is what a tool answered, clean.
type Answer struct {
	// Text is what a model reads; JSON the result as the tool gave it.
	Text, JSON string
	// Failed says that an MCP server called it a failure.
	Failed bool
	// ProtocolError says that JSON is an error of the protocol, InputRequired that it asks the caller for something.
	ProtocolError, InputRequired bool
	// Receipt is a write's; nil for others.
	Receipt *toolv1.Receipt
	// Source is where the tool comes from; Delivered where the call put something in front of somebody.
	Source, Delivered string
	AuditID           uuid.UUID
	Duration          time.Duration
	// ApprovalID is what the call waits for; empty when it was made.
	ApprovalID string
}

// passage is one call on its way through the stages.
type passage struct {
	request Request
	from    *rpc.Principal
	record  *call.Record

	caller  caller
	company *companyv1.Company
	tool    *surface.Tool
	builtin *catalogue.Tool // nil for an MCP tool
	input   proto.Message   // of a builtin
	// decision is the policy's.
	decision policy.Decision
	// synchronous calls are in no turn's journal: they are recorded before they are answered.
	synchronous bool
}

// Call passes a call through all stages. Its errors are faults with the call's id in the fact `audit_id`.
func (d *Door) Call(ctx context.Context, from *rpc.Principal, request Request) (*Answer, error) {
	p := &passage{request: request, from: from, record: d.open(from, request)}
	for _, stage := range []func(context.Context, *passage) error{d.identify, d.resolve, d.permit, d.judge, d.offered, d.read, d.weigh} {
		if err := stage(ctx, p); err != nil {
			return nil, d.refuse(ctx, p, err)
		}
	}
	if p.decision.Effect == toolrule.Ask {
		return d.park(ctx, p)
	}
	raw, err := d.dispatch(ctx, p)
	if err != nil {
		return nil, d.refuse(ctx, p, err)
	}
	return d.answer(ctx, p, raw), nil
}

// open begins the record of a call, of which nothing is believed yet but who signed it.
func (d *Door) open(from *rpc.Principal, request Request) *call.Record {
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New()
	}
	return &call.Record{
		ID:          id,
		CallID:      d.cleaned(request.CallID),
		Principal:   from.GetKind() + ":" + from.GetId(),
		Tool:        d.cleaned(request.Tool),
		Arguments:   d.cleanedArguments(request.Arguments),
		OperationID: request.OperationID,
		StartedAt:   d.Now(),
	}
}
