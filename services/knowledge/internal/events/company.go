package events

import (
	"context"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/org"
)

// CompanyTopic announces that another company revision is in force.
const CompanyTopic = "bullpen.company.revision.v1"

// Company is the company service, as far as the knowledge base reads it.
type Company interface {
	GetCompany(ctx context.Context, request *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error)
}

// LoadOrg reads the company in force.
func LoadOrg(ctx context.Context, company Company) (*org.Org, error) {
	response, err := company.GetCompany(ctx, &companyv1.GetCompanyRequest{})
	if err != nil {
		return nil, err
	}
	c := response.GetCompany()
	o := &org.Org{Revision: c.GetRevisionId(), Epoch: c.GetEpoch(), Units: map[string]string{}}
	o.Reserve(c.GetSkillsContainer())
	for _, s := range c.GetSeats() {
		o.Units[s.GetHandle()] = s.GetUnitId()
	}
	for _, u := range c.GetUnits() {
		if u.GetSpace() != "" {
			o.Containers = append(o.Containers, org.Container{Key: u.GetSpace(), Name: u.GetName(), Purpose: u.GetPurpose(), Unit: u.GetUnitId()})
		}
	}
	return o, nil
}
