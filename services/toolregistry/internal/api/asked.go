package api

import (
	"context"
	"slices"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// asked settles who asks for a list of what, for which seat ("" for the company's), and in which company.
func (h *Handler) asked(ctx context.Context, named, what string) (from *rpc.Principal, seat string, company *companyv1.Company, err error) {
	from, ok := rpc.PrincipalFrom(ctx)
	if !ok {
		return nil, "", nil, fault.New(fault.Forbidden, "This call names no caller.")
	}
	if seat, err = seatOf(from, named); err != nil {
		return nil, "", nil, err
	}
	if company = h.Company(ctx, from.GetTurn().GetRevisionId()); company == nil {
		return nil, "", nil, fault.New(fault.Unavailable, "No company is active, so there are no %s yet. Put a company document first.", what).
			WithReason("NO_ACTIVE_REVISION")
	}
	if seat != "" && !slices.ContainsFunc(company.GetSeats(), func(s *companyv1.Seat) bool { return s.GetHandle() == seat }) {
		return nil, "", nil, fault.New(fault.NotFound, "The company has no seat `%s`.", seat).WithField("seat")
	}
	return from, seat, company, nil
}
