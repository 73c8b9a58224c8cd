package door

import (
	"context"
	"regexp"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
)

// turnService is the one service that holds seats: only what it signs can be a seat's call.
const turnService = "turn"

// caller is who a call is made as.
type caller struct {
	// principal goes on to whoever runs the tool.
	principal *rpc.Principal
	// audience is the kind of tools it may call.
	audience string
	// seat and turn are empty for operators.
	seat, turn string
}

// identify settles the caller, and waits where a turn's call must wait for the audit.
func (d *Door) identify(ctx context.Context, p *passage) error {
	who, err := callerOf(p.from, p.request.Seat)
	if err != nil {
		return err
	}
	p.caller = who
	p.record.Seat, p.record.TurnID = who.seat, who.turn
	if p.company = d.Company(ctx, p.from.GetTurn().GetRevisionId()); p.company == nil {
		return noCompany()
	}
	if who.seat != "" && who.audience == catalogue.Seat {
		if err := isAgent(p.company, who.seat); err != nil {
			return err
		}
	}
	if !operationID.MatchString(p.request.OperationID) {
		p.record.OperationID = ""
		return fault.New(fault.Invalid, "`operation_id` must be at most 128 letters, digits and `._:/@#-`.").WithField("operation_id")
	}
	if who.turn != "" {
		return d.Audit.Admit(ctx)
	}
	return nil
}

// operationID is what a ledger takes.
var operationID = regexp.MustCompile(`^[A-Za-z0-9._:/@#-]{0,128}$`)

func noCompany() error {
	return fault.New(fault.Unavailable, "No company is active, so there are no tools yet. Put a company document first.").WithReason("NO_ACTIVE_REVISION")
}

func callerOf(from *rpc.Principal, seat string) (caller, error) {
	switch from.GetKind() {
	case rpc.KindSeat:
		return seatCaller(from, seat)
	case rpc.KindService:
		return serviceCaller(from, seat)
	case rpc.KindPerson, rpc.KindOperator:
		if seat != "" {
			return caller{}, fault.New(fault.Forbidden, "Only the turn service calls as a seat; leave `seat` out.").WithField("seat")
		}
		return caller{principal: from, audience: catalogue.Operator}, nil
	default:
		return caller{}, fault.New(fault.Forbidden, "A caller of the kind %q has no tools.", from.GetKind())
	}
}

func seatCaller(from *rpc.Principal, seat string) (caller, error) {
	switch {
	case from.GetIssuer() != turnService:
		return caller{}, fault.New(fault.Forbidden, "A seat's call is signed by the turn service; this one is signed by %q.", from.GetIssuer())
	case seat != "" && seat != from.GetSeat():
		return caller{}, fault.New(fault.Forbidden, "A seat calls as itself; leave `seat` out.").WithField("seat")
	case from.GetTurn().GetTurnId() == "":
		return caller{}, outsideTurn()
	}
	return caller{principal: from, audience: catalogue.Seat, seat: from.GetSeat(), turn: from.GetTurn().GetTurnId()}, nil
}

func serviceCaller(from *rpc.Principal, seat string) (caller, error) {
	switch {
	case from.GetId() != turnService || from.GetIssuer() != turnService:
		return caller{}, fault.New(fault.Forbidden, "A service calls tools as the seat, the person or the token it works for, not as itself.")
	case seat == "":
		return caller{}, fault.New(fault.Forbidden, "The turn service calls tools as a seat; name it in `seat`.").WithField("seat")
	case from.GetTurn().GetTurnId() == "":
		return caller{}, outsideTurn()
	}
	as := &toolv1.PrincipalClaims{Kind: rpc.KindSeat, Id: seat, Seat: seat, DisplayName: seat, Turn: from.GetTurn()}
	return caller{principal: as, audience: catalogue.Seat, seat: seat, turn: from.GetTurn().GetTurnId()}, nil
}

func outsideTurn() error {
	return fault.New(fault.Forbidden, "A seat calls tools inside a turn only, and this call names none.").WithReason("OUTSIDE_TURN")
}

// isAgent refuses seats that have no turns.
func isAgent(company *companyv1.Company, handle string) error {
	for _, seat := range company.GetSeats() {
		if seat.GetHandle() != handle {
			continue
		}
		if seat.GetKind() != "agent" {
			return fault.New(fault.Forbidden, "The seat `%s` is held by a person, and only agents call tools as a seat.", handle)
		}
		return nil
	}
	return fault.New(fault.Forbidden, "The company has no seat `%s` now.", handle)
}
