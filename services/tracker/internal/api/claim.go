package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// defaultClaim is how long a claim holds when nobody says so.
const defaultClaim = 30 * time.Minute

// ClaimWorkItem implements the contract.
func (h *Handler) ClaimWorkItem(ctx context.Context, req *trackerv1.ClaimWorkItemRequest) (*trackerv1.ClaimWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	hold := defaultClaim
	if req.GetMinutes() > 0 {
		hold = time.Duration(req.GetMinutes()) * time.Minute
	}
	act := h.act(o, by)
	c := store.Claim{Name: req.GetItem(), Until: act.At.Add(hold), Release: req.GetRelease(), Act: act}
	if c.Name == "" {
		if c.Project, err = projectOf(o, by, req.GetProject()); err != nil {
			return nil, err
		}
	}
	res := &trackerv1.ClaimWorkItemResponse{}
	err = h.Store.ClaimItem(ctx, operation(ctx, "claim_work_item", req), res, c, func(done store.Claimed) error {
		res.Outcome = h.landed(done.At)
		if done.At != (ops.Position{}) {
			res.Position = done.At.String()
		}
		if done.Item == nil {
			res.Warnings = []string{"nothing in " + c.Project + " is ready for you: what is open there waits for something else, or is somebody else's"}
			return nil
		}
		res.Version, res.Item = done.Item.Version, convert.Brief(done.Item, o.Clock(act.At))
		res.Item.Blocked = done.Blocked
		switch {
		case c.Release && done.At == ops.Position{}:
			res.Warnings = []string{"nobody had claimed " + done.Item.Key()}
		case !c.Release:
			res.ExpireTime = timestamppb.New(done.Item.Claim.Until)
			if done.Blocked {
				res.Warnings = []string{done.Item.Key() + " waits for something that is not finished: see its waiting_on"}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.show(ctx, res)
	return res, nil
}

// show puts the whole item in the place of what the ledger keeps of it. The claim stands whether the item can be read or not, so a reading
// that fails leaves what is there.
func (h *Handler) show(ctx context.Context, res *trackerv1.ClaimWorkItemResponse) {
	if res.GetItem() == nil {
		return
	}
	read, err := h.GetWorkItem(ctx, &trackerv1.GetWorkItemRequest{Item: res.GetItem().GetId(), Include: []string{"fields"}})
	if err == nil {
		res.Item = read.GetItem()
		return
	}
	if fits(res, "") != nil {
		res.Item.Checklists = nil
		res.Warnings = append(res.Warnings, "its checklists are too long to be shown here: get_work_item shows the item")
	}
}
