package api

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// elsewhere is the kind of an author who acted in another tracker: nobody here.
const elsewhere = "system"

// ImportWorkItems implements the contract.
func (h *Handler) ImportWorkItems(ctx context.Context, req *trackerv1.ImportWorkItemsRequest) (*trackerv1.ImportWorkItemsResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if by.Kind == "agent" {
		return nil, fault.New(fault.Forbidden, "items are imported by people and their programs, not by a seat: ask a person")
	}
	im := store.Import{
		Project: strings.ToUpper(req.GetProject()), Source: req.GetSource(), DryRun: req.GetDryRun(), Act: store.Act{By: by, At: h.now(), Org: o},
	}
	for _, one := range req.GetItems() {
		im.Arrivals = append(im.Arrivals, arrival(o, one, im.At))
	}
	at, err := h.Store.ImportItems(ctx, im)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.ImportWorkItemsResponse{}
	if at != (ops.Position{}) {
		res.Position = at.String()
	}
	for _, a := range im.Arrivals {
		res.Results = append(res.Results, became(a, im.DryRun))
	}
	return res, nil
}

// became says what became of an arrival.
func became(a *store.Arrival, dryRun bool) *trackerv1.ImportResult {
	out := &trackerv1.ImportResult{ExternalId: a.ExternalID, Outcome: "filed", Key: a.Key, Warnings: a.Warnings}
	switch {
	case a.Refused != nil:
		out.Outcome, out.Key, out.Problem = "refused", "", a.Refused.Error()
		if f, ok := fault.As(a.Refused); ok {
			out.Problem = f.Message
		}
	case a.There:
		out.Outcome = "there"
	case dryRun:
		out.Outcome = "would_file"
	}
	return out
}

// arrival reads an item as another tracker had it. What is wrong with it is its own affair: the others of the part are filed all the
// same.
func arrival(o *org.Org, one *trackerv1.ImportedItem, now time.Time) *store.Arrival {
	a := &store.Arrival{
		ExternalID: one.GetExternalId(), URL: one.GetUrl(), Type: orDefault(one.GetType(), "task"), Labels: one.GetLabels(), Parent: one.GetParent(),
		WaitingOn: one.GetWaitingOn(),
	}
	if one.GetFields() != nil && len(one.GetFields().GetFields()) > 0 {
		a.Warnings = append(a.Warnings, "custom fields are not imported and were left out")
	}
	a.Item, a.Refused = imported(o, one, now)
	if a.Refused != nil {
		return a
	}
	for _, c := range one.GetComments() {
		id, err := uuid.NewV7()
		if err != nil {
			a.Refused = err
			return a
		}
		a.Comments = append(a.Comments, &store.Comment{
			ID: id, Author: item.Actor{Name: orDefault(c.GetAuthor(), "unknown"), Kind: elsewhere}, Body: c.GetBody(), CreatedAt: moment(c.GetCreateTime(), a.Item.CreatedAt),
		})
	}
	return a
}

func imported(o *org.Org, one *trackerv1.ImportedItem, now time.Time) (*item.Item, error) {
	if err := rpc.Validate(one); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(one.GetTitle()) == "" {
		return nil, fault.New(fault.Invalid, "title must say something").WithField("title")
	}
	if one.GetAssignee() != "" && !o.Has(one.GetAssignee()) {
		return nil, fault.New(fault.Invalid, "assignee names nobody: there is no colleague %q; there are %s", one.GetAssignee(), strings.Join(o.Handles(), ", ")).WithField("assignee")
	}
	created := moment(one.GetCreateTime(), now)
	updated := moment(one.GetUpdateTime(), created)
	i := &item.Item{
		ID: id, Title: one.GetTitle(), Body: one.GetBody(), Status: one.GetStatus(), Priority: orDefault(one.GetPriority(), "none"),
		Reporter: orDefault(one.GetReporter(), "unknown"), ReporterKind: elsewhere, Assignee: one.GetAssignee(), EstimateMinutes: one.EstimateMinutes, Points: one.Points,
		CreatedAt: created, UpdatedAt: updated, StatusEnteredAt: updated,
	}
	if i.Due, err = item.ParseMoment("due", one.GetDue()); err != nil {
		return nil, err
	}
	if i.Assignee != "" {
		i.Watch(i.Assignee)
	}
	if !i.Open() {
		done := moment(one.GetDoneTime(), updated)
		i.DoneAt, i.StatusEnteredAt = &done, done
		if item.GroupOf(i.Status) == item.Closed {
			i.ClosedAt = &done
		}
	}
	return i, nil
}

// moment is a time of another tracker in the precision that is kept here.
func moment(at *timestamppb.Timestamp, otherwise time.Time) time.Time {
	if at == nil {
		return otherwise
	}
	return at.AsTime().Truncate(time.Microsecond)
}
