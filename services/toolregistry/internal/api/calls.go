package api

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/events"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

const (
	// defaultCalls is how many calls a page has when nobody says.
	defaultCalls = 50
	// turnService is the only one that has journals.
	turnService = "turn"
)

// ListCalls implements the RPC of that name.
func (h *Handler) ListCalls(ctx context.Context, req *toolregistryv1.ListCallsRequest) (*toolregistryv1.ListCallsResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService); err != nil {
		return nil, err
	}
	filter := store.Filter{
		Seat: req.GetSeat(), Tool: req.GetTool(), TurnID: req.GetTurnId(), RefusalClass: req.GetRefusalClass(), Source: req.GetSource(),
		Status: req.GetStatus(), Text: req.GetText(),
	}
	if req.GetSince() != nil {
		filter.Since = req.GetSince().AsTime()
	}
	if req.GetUntil() != nil {
		filter.Until = req.GetUntil().AsTime()
	}
	bind := fmt.Sprintf("ListCalls %#v", filter)
	var after store.After
	if err := page.Decode(req.GetCursor(), bind, &after); err != nil {
		return nil, err
	}
	limit := int(req.GetLimit())
	if limit == 0 {
		limit = defaultCalls
	}
	records, next, err := h.callsOf(ctx, filter, after, limit)
	if err != nil {
		return nil, err
	}
	response := &toolregistryv1.ListCallsResponse{}
	if next != nil {
		if response.NextCursor, err = page.Encode(bind, *next); err != nil {
			return nil, err
		}
	}
	for _, r := range records {
		response.Calls = append(response.Calls, events.CallToProto(r))
	}
	return response, nil
}

// callsOf answers a page, and where the next one begins; nil on the last page.
func (h *Handler) callsOf(ctx context.Context, f store.Filter, after store.After, limit int) ([]*call.Record, *store.After, error) {
	if f.Text != "" {
		return h.Store.SearchCalls(ctx, f, after, limit)
	}
	records, more, err := h.Store.ListCalls(ctx, f, after, limit)
	if err != nil || !more {
		return records, nil, err
	}
	next := store.Behind(records[len(records)-1])
	return records, &next, nil
}

// GetCall implements the RPC of that name.
func (h *Handler) GetCall(ctx context.Context, req *toolregistryv1.GetCallRequest) (*toolregistryv1.GetCallResponse, error) {
	if _, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService); err != nil {
		return nil, err
	}
	id, err := uuid.Parse(req.GetAuditId())
	if err != nil {
		return nil, fault.New(fault.Invalid, "`audit_id` is a UUID.").WithField("audit_id")
	}
	r, err := h.Store.GetCall(ctx, id)
	if err != nil {
		return nil, err
	}
	return &toolregistryv1.GetCallResponse{Call: events.CallToProto(r)}, nil
}

// RestoreCalls implements the RPC of that name.
func (h *Handler) RestoreCalls(ctx context.Context, req *toolregistryv1.RestoreCallsRequest) (*toolregistryv1.RestoreCallsResponse, error) {
	from, err := rpc.RequireKind(ctx, rpc.KindService)
	if err != nil {
		return nil, err
	}
	if from.GetId() != turnService {
		return nil, fault.New(fault.Forbidden, "Only the turn service has journals to restore calls from.")
	}
	var records []*call.Record
	for i, c := range req.GetCalls() {
		r, err := h.recordFromJournal(c)
		if err != nil {
			return nil, err.WithField(fmt.Sprintf("calls[%d].%s", i, err.Field))
		}
		records = append(records, r)
	}
	restored, err := h.Store.RestoreCalls(ctx, records)
	if err != nil {
		return nil, err
	}
	return &toolregistryv1.RestoreCallsResponse{Restored: int32(restored)}, nil
}

// recordFromJournal reads a journal's account of a call, which nobody has cleaned yet.
func (h *Handler) recordFromJournal(c *toolregistryv1.CallRecord) (*call.Record, *fault.Error) {
	switch {
	case c.GetTurnId() == "":
		return nil, fault.New(fault.Invalid, "A restored call names its turn.").WithField("turn_id")
	case c.GetCallId() == "":
		return nil, fault.New(fault.Invalid, "A restored call has the id that the turn gave it.").WithField("call_id")
	case c.GetStartTime() == nil:
		return nil, fault.New(fault.Invalid, "A restored call says when it was dispatched.").WithField("start_time")
	}
	status := c.GetStatus()
	switch status {
	case call.OK, call.Refused, call.Failed, call.Parked:
	default:
		return nil, fault.New(fault.Invalid, "`status` is `ok`, `refused`, `failed` or `parked`, not %q.", status).WithField("status")
	}
	id, err := uuid.Parse(c.GetAuditId())
	if err != nil {
		id = call.RestoredID(c.GetTurnId(), c.GetCallId())
	}
	return &call.Record{
		ID: id, CallID: h.cleaned(c.GetCallId()), Principal: h.cleaned(c.GetPrincipal()), Seat: h.cleaned(c.GetSeat()), TurnID: h.cleaned(c.GetTurnId()),
		Tool: h.cleaned(c.GetTool()), Source: h.cleaned(c.GetSource()), Arguments: h.cleanedText(c.GetArgumentsJson()), Result: h.cleanedText(c.GetResult()),
		Status: status, RefusalClass: h.cleaned(c.GetRefusalClass()), Outcome: h.cleaned(c.GetOutcome()), OperationID: h.cleaned(c.GetOperationId()),
		Decision: h.cleaned(c.GetDecision()), Rule: h.cleaned(c.GetRule()), ApprovalID: h.cleaned(c.GetApprovalId()),
		StartedAt: c.GetStartTime().AsTime(), Duration: time.Duration(c.GetDurationMicros()) * time.Microsecond,
	}, nil
}

func (h *Handler) cleaned(text string) string {
	clean, err := h.Cleaner.Text(text)
	if err != nil {
		return fmt.Sprintf("(%d bytes of binary data)", len(text))
	}
	return clean
}

// cleanedText cleans inside the structure of JSON where there is one.
func (h *Handler) cleanedText(text string) string {
	if clean, err := h.Cleaner.JSON(text); err == nil {
		return clean
	}
	return h.cleaned(text)
}
