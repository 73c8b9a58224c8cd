package api

import (
	"context"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/person"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// own answers the handle whose record is the caller's. A person has one under both names: what is done with a token that is bound to
// their seat goes to the seat's record.
func own(by item.Actor) (string, error) {
	if by.Seat == "" {
		return "", fault.New(fault.Forbidden, "%s acts for no seat and has no record of its own: use a token that is bound to a person's seat", by.Name).
			WithReason("UNBOUND")
	}
	return by.Seat, nil
}

// whose answers the handle whose record is to be read: the caller's own when none is named. An agent reads nobody else's.
func (h *Handler) whose(ctx context.Context, o *org.Org, by item.Actor, handle string) (string, error) {
	if strings.TrimSpace(handle) == "" {
		return own(by)
	}
	found, err := h.colleague(ctx, o, "handle", handle)
	if err != nil {
		return "", err
	}
	if found != by.Seat && by.Kind == "agent" {
		return "", fault.New(fault.Forbidden, "what @%s keeps is shown to them and to people alone; leave handle out for your own", found).WithField("handle")
	}
	return found, nil
}

// kept answers the outcome of a write of somebody's record, which nothing has to catch up with.
func kept(at ops.Position) (outcome, position string) {
	if at == (ops.Position{}) {
		return unchanged, ""
	}
	return applied, at.String()
}

// GetPerson implements the contract.
func (h *Handler) GetPerson(ctx context.Context, req *trackerv1.GetPersonRequest) (*trackerv1.GetPersonResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	handle, err := h.whose(ctx, o, by, req.GetHandle())
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	v, err := h.Store.Person(ctx, handle)
	if err != nil {
		return nil, err
	}
	return convert.Person(v, h.Now()), nil
}

// SetPins implements the contract.
func (h *Handler) SetPins(ctx context.Context, req *trackerv1.SetPinsRequest) (*trackerv1.SetPinsResponse, error) {
	_, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	handle, err := own(by)
	if err != nil {
		return nil, err
	}
	views, err := setChange("views", req.GetViews())
	if err != nil {
		return nil, err
	}
	favorites, err := setChange("favorites", req.GetFavorites())
	if err != nil {
		return nil, err
	}
	res := &trackerv1.SetPinsResponse{}
	err = h.Store.SetPins(ctx, operation(ctx, "set_pins", req), res, handle, h.now(), views, favorites, func(r *person.Record, at ops.Position) {
		res.Outcome, res.Position = kept(at)
		res.Version = r.Version
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// SetPriorities implements the contract.
func (h *Handler) SetPriorities(ctx context.Context, req *trackerv1.SetPrioritiesRequest) (*trackerv1.SetPrioritiesResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	handle, err := h.orders(ctx, o, by, req.GetHandle())
	if err != nil {
		return nil, err
	}
	res := &trackerv1.SetPrioritiesResponse{Handle: handle}
	p := store.Priorities{Handle: handle, Items: req.GetItems(), IfMatch: req.IfMatch, Act: h.act(o, by)}
	err = h.Store.SetPriorities(ctx, operation(ctx, "set_priorities", req), res, p, func(r *person.Record, keys []string, at ops.Position) {
		res.Outcome, res.Position = kept(at)
		res.Version, res.Items = r.Version, keys
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// orders answers the handle whose order of work is to be set, or refuses: it is one's own, that of one's line, or a person's to set.
func (h *Handler) orders(ctx context.Context, o *org.Org, by item.Actor, handle string) (string, error) {
	if strings.TrimSpace(handle) == "" {
		return own(by)
	}
	found, err := h.colleague(ctx, o, "handle", handle)
	if err != nil {
		return "", err
	}
	if found == by.Seat || by.Person() || o.Leads(by.Seat, o.UnitOf(found)) {
		return found, nil
	}
	return "", fault.New(fault.Forbidden, "the order of @%s's work is theirs to set, their lead's or a person's: ask one of them", found).WithField("handle")
}
