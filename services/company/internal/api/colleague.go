package api

import (
	"context"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/roster"
)

// LookupColleague implements the tool.
func (h *Handler) LookupColleague(ctx context.Context, req *companyv1.LookupColleagueRequest) (*companyv1.LookupColleagueResponse, error) {
	if err := colleague(ctx); err != nil {
		return nil, err
	}
	c, err := h.companies.active(ctx)
	if err != nil {
		return nil, err
	}
	out := &companyv1.LookupColleagueResponse{}
	matches := c.roster.Lookup(req.GetQuery())
	switch len(matches) {
	case 0:
		return nil, fault.New(fault.NotFound, "Nobody here goes by that `query`. Ask again with one of these handles: %s.",
			strings.Join(c.roster.Handles(), ", ")).WithField("query")
	case 1:
		out.Colleague = colleagueToProto(c.roster, matches[0])
	default:
		for _, m := range matches {
			out.Candidates = append(out.Candidates, colleagueToProto(c.roster, m))
		}
	}
	return out, nil
}

func colleagueToProto(r *roster.Roster, m roster.Match) *companyv1.Colleague {
	s := m.Seat
	contacts := map[string]string{}
	for kind, id := range s.Contacts {
		contacts[kind] = id
	}
	if s.Email != "" {
		contacts["email"] = s.Email
	}
	return &companyv1.Colleague{
		Handle: s.Handle, Name: s.Name, Kind: s.Kind, Unit: r.UnitName(s), Contacts: contacts, How: how(s), Matched: m.By,
	}
}

// how says how to reach a colleague, and what to expect.
func how(s *document.Seat) string {
	if s.Kind == document.KindAgent {
		return "An agent: mention @" + s.Handle + " or assign them a work item. That wakes them in a turn of their own, and the " +
			"answer comes there, not in this call."
	}
	text := "A person: mention them by a contact above where they read, or assign them a work item, and finish without waiting. " +
		"They answer when they can, and their answer wakes you."
	if s.Availability != "" {
		text += " Availability: " + s.Availability + "."
	}
	return text
}
