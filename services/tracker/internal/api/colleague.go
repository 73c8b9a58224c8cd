package api

import (
	"context"
	"slices"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

// Colleagues is the company's roster, as far as the tracker asks it.
type Colleagues interface {
	LookupColleague(ctx context.Context, request *companyv1.LookupColleagueRequest) (*companyv1.LookupColleagueResponse, error)
}

// reasonNobody is the reason of the refusal of a text that fits no colleague.
const reasonNobody = "NO_SUCH_COLLEAGUE"

// colleague answers the handle that a text names, so that nothing is ever stored under a name nobody has. A handle is known at once;
// a role name or a contact id is looked up. argument is the one that the text came in.
func (h *Handler) colleague(ctx context.Context, o *org.Org, argument, text string) (string, error) {
	handle := strings.TrimPrefix(strings.TrimSpace(text), "@")
	if o.Has(handle) {
		return handle, nil
	}
	response, err := h.Colleagues.LookupColleague(ctx, &companyv1.LookupColleagueRequest{Query: handle})
	if err != nil {
		if f := rpc.FromError(err); f.Class == fault.NotFound || f.Class == fault.Invalid {
			return "", fault.New(fault.Invalid, "%s names nobody: there is no colleague %q; there are %s", argument, text, strings.Join(o.Handles(), ", ")).
				WithField(argument).WithReason(reasonNobody)
		}
		return "", fault.New(fault.Unavailable, "cannot look up %q now: %s", text, "the company service does not answer").WithField(argument).WithCause(err)
	}
	if found := response.GetColleague(); found != nil {
		return found.GetHandle(), nil
	}
	var candidates []string
	for _, c := range response.GetCandidates() {
		candidates = append(candidates, c.GetHandle())
	}
	return "", fault.New(fault.Invalid, "%s is ambiguous: %q fits %s; give one of these handles", argument, text, strings.Join(candidates, ", ")).WithField(argument)
}

// mentioned parts what a text names into the handles of colleagues and warnings about names nobody has. A unit, by its id, is its lead.
func mentioned(o *org.Org, names []string) (colleagues, warnings []string) {
	for _, name := range names {
		handle := name
		if !o.Has(name) {
			handle = o.LeadOf(name)
		}
		switch {
		case handle == "":
			warnings = append(warnings, "@"+name+" is nobody's handle and no unit that has a lead, so nobody was told; lookup_colleague finds handles")
		case !slices.Contains(colleagues, handle):
			colleagues = append(colleagues, handle)
		}
	}
	return colleagues, warnings
}
