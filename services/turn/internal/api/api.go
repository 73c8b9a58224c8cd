// Package api answers the turn service's RPCs: what waits, what ran, and what could not be taken.
package api

import (
	"context"

	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// Engine is what the handlers ask of the engine.
type Engine interface {
	HeldBecause() string
	Wake(seats ...string)
}

// Dead are the event letters of this service.
type Dead interface {
	List(ctx context.Context, limit int) ([]*turnv1.DeadLetter, error)
	// Redrive takes letters again, all of them when ids is empty.
	Redrive(ctx context.Context, ids []string) (redriven, failed int, err error)
}

// Handler answers RPCs. It is safe for concurrent use.
type Handler struct {
	store  *store.Store
	engine Engine
	dead   Dead
}

var _ turnv1connect.TurnServiceHandler = (*Handler)(nil)

// New makes a handler.
func New(s *store.Store, e Engine, d Dead) *Handler { return &Handler{store: s, engine: e, dead: d} }

// mayRead refuses seats: what others work on reaches them through their tools.
func mayRead(ctx context.Context) error {
	_, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService)
	return err
}

// mayMend lets operators and services set work going again; a person's token reads.
func mayMend(ctx context.Context) error {
	_, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindService)
	return err
}

func limitOf(n int32) int {
	const usual = 50
	if n == 0 {
		return usual
	}
	return int(n)
}

// ListTurns implements the RPC.
func (h *Handler) ListTurns(ctx context.Context, req *turnv1.ListTurnsRequest) (*turnv1.ListTurnsResponse, error) {
	if err := mayRead(ctx); err != nil {
		return nil, err
	}
	bind := "list_turns\x00" + req.GetSeat() + "\x00" + req.GetConversationKey() + "\x00" + req.GetState()
	filter := store.TurnFilter{
		Seat: req.GetSeat(), ConversationKey: req.GetConversationKey(), State: req.GetState(), Limit: limitOf(req.GetLimit()) + 1,
	}
	if req.GetCursor() != "" {
		if err := page.Decode(req.GetCursor(), bind, &filter.Before); err != nil {
			return nil, err
		}
	}
	turns, err := h.store.ListTurns(ctx, filter)
	if err != nil {
		return nil, err
	}
	res := &turnv1.ListTurnsResponse{}
	if len(turns) == filter.Limit {
		turns = turns[:len(turns)-1]
		if res.NextCursor, err = page.Encode(bind, turns[len(turns)-1].ID); err != nil {
			return nil, err
		}
	}
	for _, t := range turns {
		res.Turns = append(res.Turns, TurnToProto(t))
	}
	return res, nil
}

// GetTurn implements the RPC.
func (h *Handler) GetTurn(ctx context.Context, req *turnv1.GetTurnRequest) (*turnv1.GetTurnResponse, error) {
	if err := mayRead(ctx); err != nil {
		return nil, err
	}
	t, err := h.store.Turn(ctx, req.GetTurnId())
	if err != nil {
		return nil, err
	}
	j, err := h.store.Journal(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	mail, err := h.store.Mail(ctx, t.MailIDs)
	if err != nil {
		return nil, err
	}
	res := &turnv1.GetTurnResponse{Turn: TurnToProto(t)}
	for _, r := range j.Rounds {
		res.Rounds = append(res.Rounds, roundToProto(r))
	}
	for _, m := range mail {
		res.Mail = append(res.Mail, mailToProto(m))
	}
	return res, nil
}

// ListMail implements the RPC.
func (h *Handler) ListMail(ctx context.Context, req *turnv1.ListMailRequest) (*turnv1.ListMailResponse, error) {
	if err := mayRead(ctx); err != nil {
		return nil, err
	}
	mail, err := h.store.ListMail(ctx, req.GetSeat(), req.GetState(), limitOf(req.GetLimit()))
	if err != nil {
		return nil, err
	}
	res := &turnv1.ListMailResponse{HeldBecause: h.engine.HeldBecause()}
	for _, m := range mail {
		res.Mail = append(res.Mail, mailToProto(m))
	}
	return res, nil
}

// ListDeadLetters implements the RPC.
func (h *Handler) ListDeadLetters(
	ctx context.Context, req *turnv1.ListDeadLettersRequest,
) (*turnv1.ListDeadLettersResponse, error) {
	if err := mayRead(ctx); err != nil {
		return nil, err
	}
	letters, err := h.dead.List(ctx, limitOf(req.GetLimit()))
	if err != nil {
		return nil, err
	}
	return &turnv1.ListDeadLettersResponse{DeadLetters: letters}, nil
}

// RedriveDeadLetters implements the RPC.
func (h *Handler) RedriveDeadLetters(
	ctx context.Context, req *turnv1.RedriveDeadLettersRequest,
) (*turnv1.RedriveDeadLettersResponse, error) {
	if err := mayMend(ctx); err != nil {
		return nil, err
	}
	redriven, failed, err := h.dead.Redrive(ctx, req.GetDeadLetterIds())
	if err != nil {
		return nil, err
	}
	return &turnv1.RedriveDeadLettersResponse{Redriven: int32(redriven), Failed: int32(failed)}, nil
}

// SubmitWork implements the RPC by refusing it: the engine takes a submission from the turn that makes it.
func (h *Handler) SubmitWork(context.Context, *turnv1.SubmitWorkRequest) (*turnv1.SubmitWorkResponse, error) {
	return nil, fault.New(fault.Forbidden, "submit_work ends a running turn and can be called only from inside it.")
}
