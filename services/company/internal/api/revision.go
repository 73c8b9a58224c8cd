package api

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

const (
	// shownProblems is how many a refusal repeats; CheckCompany lists them all.
	shownProblems = 5

	defaultPage   = 50
	bindRevisions = "company.ListRevisions"
)

// CheckCompany implements the RPC.
func (h *Handler) CheckCompany(ctx context.Context, req *companyv1.CheckCompanyRequest) (*companyv1.CheckCompanyResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	return &companyv1.CheckCompanyResponse{Problems: Problems(req.GetDocument())}, nil
}

// Problems answers everything that is wrong with a document, in its order.
func Problems(text string) []*companyv1.Problem {
	_, problems := document.Parse(text)
	out := make([]*companyv1.Problem, 0, len(problems))
	for _, p := range problems {
		out = append(out, problemToProto(p))
	}
	return out
}

// PutCompany implements the RPC.
func (h *Handler) PutCompany(ctx context.Context, req *companyv1.PutCompanyRequest) (*companyv1.PutCompanyResponse, error) {
	p, err := writer(ctx)
	if err != nil {
		return nil, err
	}
	if _, problems := document.Parse(req.GetDocument()); len(problems) > 0 {
		return nil, refuseProblems(problems)
	}
	put := revision.Put{
		Document: req.GetDocument(), Summary: req.GetSummary(), By: byline(p), IfMatch: req.GetIfMatch(), At: h.now(),
	}
	if put.Parent, err = parseID(req.GetParentRevisionId(), "parent_revision_id"); err != nil {
		return nil, err
	}
	out := &companyv1.PutCompanyResponse{}
	_, err = h.store.Write(ctx, operation(ctx, "PutCompany", req), out, func(ctx context.Context, tx *store.Tx) error {
		r, unchanged, err := tx.Put(ctx, put)
		if err != nil {
			return err
		}
		out.Revision, out.Unchanged = revisionToProto(r), unchanged
		return nil
	})
	if f, ok := fault.As(err); ok && f.Reason == revision.ReasonAdvanced {
		return nil, h.keepLoser(ctx, put, f)
	}
	if err != nil {
		return nil, err
	}
	h.wake()
	return out, nil
}

// keepLoser stores a document that lost the race, so that nothing its author wrote is gone.
func (h *Handler) keepLoser(ctx context.Context, put revision.Put, refusal *fault.Error) error {
	id, err := h.store.KeepInert(ctx, put)
	if err != nil {
		return err
	}
	return refusal.WithFact(revision.FactStored, id.String())
}

// refuseProblems answers the first problems in a sentence each.
func refuseProblems(problems []document.Problem) *fault.Error {
	lines := make([]string, 0, shownProblems+1)
	for _, p := range problems[:min(len(problems), shownProblems)] {
		lines = append(lines, p.String())
	}
	if more := len(problems) - shownProblems; more > 0 {
		lines = append(lines, strconv.Itoa(more)+" more; CheckCompany lists them all")
	}
	return fault.New(fault.Invalid, "The document is refused, and nothing was stored.\n%s", strings.Join(lines, "\n")).
		WithField("document").WithReason(reasonProblems).WithFact("problems", strconv.Itoa(len(problems)))
}

// GetCompany implements the RPC.
func (h *Handler) GetCompany(ctx context.Context, req *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	r, err := h.revision(ctx, req.GetRevisionId())
	if err != nil {
		return nil, err
	}
	c, err := h.companies.of(ctx, r)
	if err != nil {
		return nil, err
	}
	return &companyv1.GetCompanyResponse{Company: c.message}, nil
}

// GetDocument implements the RPC.
func (h *Handler) GetDocument(ctx context.Context, req *companyv1.GetDocumentRequest) (*companyv1.GetDocumentResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	r, err := h.revision(ctx, req.GetRevisionId())
	if err != nil {
		return nil, err
	}
	text, err := h.store.Document(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return &companyv1.GetDocumentResponse{Document: text, Revision: revisionToProto(r)}, nil
}

// revision answers the one with this id, or the active one for an empty id.
func (h *Handler) revision(ctx context.Context, id string) (revision.Revision, error) {
	if id == "" {
		r, ok, err := h.store.Active(ctx)
		if err == nil && !ok {
			err = revision.None()
		}
		return r, err
	}
	parsed, err := parseID(id, "revision_id")
	if err != nil {
		return revision.Revision{}, err
	}
	r, ok, err := h.store.Revision(ctx, parsed)
	if err == nil && !ok {
		err = revision.Unknown("revision_id")
	}
	return r, err
}

// ListRevisions implements the RPC.
func (h *Handler) ListRevisions(ctx context.Context, req *companyv1.ListRevisionsRequest) (*companyv1.ListRevisionsResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	var before uuid.UUID
	if err := page.Decode(req.GetCursor(), bindRevisions, &before); err != nil {
		return nil, err
	}
	limit := int(req.GetLimit())
	if limit == 0 {
		limit = defaultPage
	}
	// One more tells whether there is another page.
	revisions, err := h.store.ListRevisions(ctx, before, limit+1)
	if err != nil {
		return nil, err
	}
	out := &companyv1.ListRevisionsResponse{}
	for _, r := range revisions[:min(limit, len(revisions))] {
		out.Revisions = append(out.Revisions, revisionToProto(r))
	}
	if len(revisions) > limit {
		out.NextCursor, err = page.Encode(bindRevisions, revisions[limit-1].ID)
	}
	return out, err
}

// parseID reads an id; an empty text is [uuid.Nil].
func parseID(text, field string) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, fault.New(fault.Invalid, "`%s` must be an id as it was answered, such as %s.", field, uuid.Nil).
			WithField(field).WithCause(err)
	}
	return id, nil
}
