package api

import (
	"context"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
	"github.com/bullpenhq/bullpen/services/company/internal/token"
)

const (
	// believed is how long an answer of VerifyToken may be kept: so long may a revoked token still work.
	believed = time.Minute

	issuer = "company"
)

// CreateToken implements the RPC. The ledger keeps the answer without the token's text, so the same operation again cannot be
// answered: it is refused, and says which token it made.
func (h *Handler) CreateToken(ctx context.Context, req *companyv1.CreateTokenRequest) (*companyv1.CreateTokenResponse, error) {
	p, err := writer(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.checkSeat(ctx, req.GetSeat()); err != nil {
		return nil, err
	}
	made, now := token.New(), h.now()
	kept := store.Token{
		ID: uuid.Must(uuid.NewV7()), Name: req.GetName(), Seat: req.GetSeat(), Hint: made.Hint, Hash: made.Hash,
		By: byline(p), CreatedAt: now,
	}
	if days := req.GetDays(); days > 0 {
		ends := now.AddDate(0, 0, int(days))
		kept.ExpiresAt = &ends
	}
	out := &companyv1.CreateTokenResponse{}
	replayed, err := h.store.Write(ctx, operation(ctx, "CreateToken", req), out, func(ctx context.Context, tx *store.Tx) error {
		out.Details = tokenToProto(kept)
		return tx.InsertToken(ctx, kept)
	})
	if err != nil {
		return nil, err
	}
	if replayed {
		return nil, fault.New(fault.Exists, "This operation has made the token %s before, and its text is kept nowhere. Revoke "+
			"it and make another, with a new operation id.", out.GetDetails().GetTokenId()).
			WithReason("TOKEN_ALREADY_SHOWN").WithFact("token_id", out.GetDetails().GetTokenId())
	}
	out.Token = made.Text
	return out, nil
}

// checkSeat demands that a token's seat is a person's.
func (h *Handler) checkSeat(ctx context.Context, handle string) error {
	if handle == "" {
		return nil
	}
	c, err := h.companies.active(ctx)
	if err != nil {
		return err
	}
	seat, ok := c.roster.Seat(handle)
	switch {
	case !ok:
		return fault.New(fault.Invalid, "No seat has the handle %q. A token is bound to a person's seat by its handle, or to "+
			"none.", handle).WithField("seat")
	case seat.Kind != document.KindHuman:
		return fault.New(fault.Invalid, "The seat %s is an agent's, and an agent bears no token. Bind the token to a person's "+
			"seat, or to none.", handle).WithField("seat")
	}
	return nil
}

// ListTokens implements the RPC.
func (h *Handler) ListTokens(ctx context.Context, _ *companyv1.ListTokensRequest) (*companyv1.ListTokensResponse, error) {
	if _, err := writer(ctx); err != nil {
		return nil, err
	}
	kept, err := h.store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	out := &companyv1.ListTokensResponse{}
	for _, k := range kept {
		out.Tokens = append(out.Tokens, tokenToProto(k))
	}
	return out, nil
}

// RevokeToken implements the RPC. Revoking a token twice is no mistake.
func (h *Handler) RevokeToken(ctx context.Context, req *companyv1.RevokeTokenRequest) (*companyv1.RevokeTokenResponse, error) {
	if _, err := writer(ctx); err != nil {
		return nil, err
	}
	id, err := parseID(req.GetTokenId(), "token_id")
	if err != nil {
		return nil, err
	}
	out := &companyv1.RevokeTokenResponse{}
	_, err = h.store.Write(ctx, operation(ctx, "RevokeToken", req), out, func(ctx context.Context, tx *store.Tx) error {
		found, err := tx.RevokeToken(ctx, id, h.now())
		if err == nil && !found {
			return fault.New(fault.NotFound, "No token has this id. List the tokens to find it.").WithField("token_id")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// VerifyToken implements the RPC of bullpen.tool.v1.PrincipalService. Every refusal reads the same to a stranger: whether a
// token never was, has ended or has lost its seat is not theirs to know.
func (h *Handler) VerifyToken(ctx context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
	if err := service(ctx); err != nil {
		return nil, err
	}
	if !token.WellFormed(req.GetToken()) {
		return nil, notLive()
	}
	kept, ok, err := h.store.TokenByHash(ctx, token.Hash(req.GetToken()))
	if err != nil {
		return nil, err
	}
	now := h.now()
	if !ok || !token.Matches(kept.Hash, req.GetToken()) || !lives(kept, now) {
		return nil, notLive()
	}
	p := &rpc.Principal{
		Kind: rpc.KindOperator, Id: kept.ID.String(), TokenId: kept.ID.String(), DisplayName: kept.Name, Issuer: issuer,
		IssueTime: timestamppb.New(now), ExpireTime: timestamppb.New(believedUntil(kept, now)),
	}
	if kept.Seat != "" {
		if err := h.asPerson(ctx, p, kept.Seat); err != nil {
			return nil, err
		}
	}
	return &toolv1.VerifyTokenResponse{Principal: p}, nil
}

// asPerson makes the principal the person whose seat the token is bound to, if that seat is still a person's.
func (h *Handler) asPerson(ctx context.Context, p *rpc.Principal, handle string) error {
	c, err := h.companies.active(ctx)
	if err != nil {
		return err
	}
	seat, ok := c.roster.Seat(handle)
	if !ok || seat.Kind != document.KindHuman {
		return notLive()
	}
	p.Kind, p.Id, p.Seat, p.DisplayName = rpc.KindPerson, handle, handle, seat.Name
	return nil
}

func notLive() error {
	return fault.New(fault.Forbidden, "The token is not valid, or no longer.").WithReason("TOKEN_NOT_LIVE")
}

func lives(k store.Token, now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

func believedUntil(k store.Token, now time.Time) time.Time {
	until := now.Add(believed)
	if k.ExpiresAt != nil && k.ExpiresAt.Before(until) {
		return *k.ExpiresAt
	}
	return until
}
