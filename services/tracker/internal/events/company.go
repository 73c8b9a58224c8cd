package events

import (
	"context"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

// CompanyTopic announces that another company revision is in force.
const CompanyTopic = "bullpen.company.revision.v1"

// Company is the company service, as far as the tracker reads it.
type Company interface {
	GetCompany(ctx context.Context, request *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error)
}

// LoadOrg reads the company in force.
func LoadOrg(ctx context.Context, company Company) (*org.Org, error) {
	response, err := company.GetCompany(ctx, &companyv1.GetCompanyRequest{})
	if err != nil {
		return nil, err
	}
	return orgFromProto(response.GetCompany())
}

func orgFromProto(c *companyv1.Company) (*org.Org, error) {
	zone, err := time.LoadLocation(c.GetTimezone())
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the company's time zone %q is not known here", c.GetTimezone()).WithCause(err)
	}
	o := &org.Org{Revision: c.GetRevisionId(), Epoch: c.GetEpoch(), Zone: zone}
	for _, s := range c.GetSeats() {
		o.Seats = append(o.Seats, org.Seat{Handle: s.GetHandle(), Name: s.GetName(), Kind: s.GetKind(), Unit: s.GetUnitId()})
	}
	for _, u := range c.GetUnits() {
		o.Units = append(o.Units, org.Unit{ID: u.GetUnitId(), Name: u.GetName(), Parent: u.GetParentId(), Lead: u.GetLead()})
		if u.GetProject() != "" {
			o.Projects = append(o.Projects, org.Project{Key: u.GetProject(), Name: u.GetName(), Purpose: u.GetPurpose(), Unit: u.GetUnitId(), Lead: u.GetLead()})
		}
	}
	return o, nil
}
