// Package api is the knowledge base's handlers: they say who acts, resolve names against the company, call the store once and
// convert the answer.
package api

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/convert"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/org"
	noun "github.com/bullpenhq/bullpen/services/knowledge/internal/page"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/store"
)

const defaultLimit = 50

// Handler serves KnowledgeService. It is safe for concurrent use.
type Handler struct {
	Store *store.Store
	// Org answers the company in force: nil when none is, false before that is known.
	Org func() (*org.Org, bool)
	Now func() time.Time
}

var _ knowledgev1connect.KnowledgeServiceHandler = (*Handler)(nil)

// caller answers the company and who acts. Seats come through the door alone: nobody else may sign for one.
func (h *Handler) caller(ctx context.Context) (*org.Org, noun.Author, error) {
	p, err := rpc.RequireKind(ctx, rpc.KindSeat, rpc.KindPerson, rpc.KindOperator, rpc.KindService)
	if err != nil {
		return nil, noun.Author{}, err
	}
	if p.GetKind() == rpc.KindSeat && p.GetIssuer() != "toolregistry" {
		return nil, noun.Author{}, fault.New(fault.Forbidden, "a seat calls the knowledge base through the tool registry, not through %s", p.GetIssuer())
	}
	o, ok := h.Org()
	if !ok || o == nil {
		return nil, noun.Author{}, fault.New(fault.Unavailable, "no company is active yet, so there are no containers: apply a company document first")
	}
	return o, author(p), nil
}

func author(p *rpc.Principal) noun.Author {
	switch p.GetKind() {
	case rpc.KindSeat:
		return noun.Author{Name: p.GetSeat(), Kind: "agent", Seat: p.GetSeat(), Turn: p.GetTurn().GetTurnId()}
	case rpc.KindPerson:
		return noun.Author{Name: p.GetSeat(), Kind: "human", Seat: p.GetSeat()}
	case rpc.KindOperator:
		if p.GetDisplayName() != "" {
			return noun.Author{Name: p.GetDisplayName(), Kind: "operator"}
		}
		return noun.Author{Name: p.GetId(), Kind: "operator"}
	default:
		return noun.Author{Name: p.GetId(), Kind: "system"}
	}
}

// WritePage implements the contract.
func (h *Handler) WritePage(ctx context.Context, req *knowledgev1.WritePageRequest) (*knowledgev1.WritePageResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	container, err := o.Container(req.GetContainer(), by.Seat)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	p := &noun.Page{ID: id, Container: container, Title: req.GetTitle(), Body: req.GetBody(), Labels: append([]string{}, req.GetLabels()...)}
	// In the precision that Postgres keeps, so that what is answered equals what is read back.
	if err := noun.New(p, by, o.Reserved(container), h.Now().Truncate(time.Microsecond)); err != nil {
		return nil, err
	}
	draft := store.Draft{Page: p, Parent: req.GetParent(), Message: req.GetMessage(), By: by}
	for _, handle := range noun.Mentions(p.Body) {
		if o.Has(handle) {
			draft.Mentions = append(draft.Mentions, handle)
		}
	}
	res := &knowledgev1.WritePageResponse{}
	op := ops.Operation{ID: rpc.OperationID(ctx), Caller: rpc.Caller(ctx), Tool: "write_page", Digest: ops.Digest(req)}
	err = h.Store.InsertPage(ctx, op, res, draft, func(at ops.Position) {
		res.Outcome, res.Position, res.Version, res.Revision = "applied", at.String(), p.Version, p.Revision
		res.Id, res.Container, res.Title = p.ID.String(), p.Container, p.Title
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// GetPage implements the contract.
func (h *Handler) GetPage(ctx context.Context, req *knowledgev1.GetPageRequest) (*knowledgev1.GetPageResponse, error) {
	if _, _, err := h.caller(ctx); err != nil {
		return nil, err
	}
	p, err := h.Store.PageByName(ctx, req.GetPage())
	if err != nil {
		return nil, err
	}
	around, err := h.Store.Surroundings(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	res := &knowledgev1.GetPageResponse{
		Page:              convert.Page(p),
		Ancestors:         convert.Links(around.Ancestors),
		Children:          convert.Links(around.Children[:min(len(around.Children), store.ChildrenShown)]),
		ChildrenTruncated: len(around.Children) > store.ChildrenShown,
		LinkedFrom:        convert.Links(around.LinkedFrom),
	}
	res.Page.Body = &p.Body
	for _, r := range around.Revisions {
		res.Revisions = append(res.Revisions, convert.Revision(r))
	}
	return res, nil
}

// ListPages implements the contract.
func (h *Handler) ListPages(ctx context.Context, req *knowledgev1.ListPagesRequest) (*knowledgev1.ListPagesResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	filter := store.Filter{Title: req.GetTitle(), Label: req.GetLabel()}
	if req.GetContainer() != "" {
		if filter.Container, err = o.Container(req.GetContainer(), by.Seat); err != nil {
			return nil, err
		}
	}
	if req.GetParent() != "" {
		parent, err := h.Store.PageByName(ctx, req.GetParent())
		if err != nil {
			if fault.ClassOf(err) == fault.NotFound {
				return nil, fault.New(fault.Invalid, "parent names no page: there is no %q", req.GetParent()).WithField("parent")
			}
			return nil, err
		}
		filter.Parent = &parent.ID
	}
	list := proto.CloneOf(req)
	list.After, list.Limit = "", 0
	bind := fmt.Sprintf("list_pages %x", ops.Digest(list))
	var after *store.Cursor
	if req.GetAfter() != "" {
		after = &store.Cursor{}
		if err := page.Decode(req.GetAfter(), bind, after); err != nil {
			if f, ok := fault.As(err); ok {
				return nil, f.WithField("after")
			}
			return nil, err
		}
	}
	limit := req.GetLimit()
	if limit == 0 {
		limit = defaultLimit
	}
	pages, next, err := h.Store.ListPages(ctx, filter, after, limit)
	if err != nil {
		return nil, err
	}
	res := &knowledgev1.ListPagesResponse{Count: int32(len(pages)), Complete: true}
	for _, p := range pages {
		res.Pages = append(res.Pages, convert.Page(p))
	}
	if next != nil {
		res.NextCursor, err = page.Encode(bind, next)
	}
	return res, err
}

// SearchKnowledge implements the contract.
func (h *Handler) SearchKnowledge(ctx context.Context, req *knowledgev1.SearchKnowledgeRequest) (*knowledgev1.SearchKnowledgeResponse, error) {
	o, _, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	words := noun.Words(req.GetQuery())
	pages, err := h.Store.Search(ctx, words, o.Skills)
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return &knowledgev1.SearchKnowledgeResponse{
			State: "nothing_matched",
			Note:  "The whole knowledge base was searched and no page holds any of these words. Try other words, or list_pages.",
		}, nil
	}
	res := &knowledgev1.SearchKnowledgeResponse{State: "matched", Note: "The best pages, best first; get_page reads one whole."}
	for _, p := range pages {
		res.Hits = append(res.Hits, &knowledgev1.SearchHit{
			Page: p.ID.String(), Container: p.Container, Title: p.Title, Snippet: noun.Snippet(p.Body, words),
		})
	}
	return res, nil
}
