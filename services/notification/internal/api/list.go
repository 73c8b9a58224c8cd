package api

import (
	"context"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/notification/internal/events"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

// place is where a list goes on: before this sequence.
type place struct {
	Before int64 `json:"b"`
}

func bind(list string, filters ...string) string {
	return list + "\x00" + strings.Join(filters, "\x00")
}

// cut answers one page of what was read one longer than the page, and the
// cursor of the next.
func cut[T any](found []T, limit int, list string, sequence func(T) int64) ([]T, string, error) {
	if len(found) <= limit {
		return found, "", nil
	}
	found = found[:limit]
	cursor, err := page.Encode(list, place{Before: sequence(found[limit-1])})
	return found, cursor, err
}

// ListDeliveries lists deliveries, newest first.
func (h *Handler) ListDeliveries(ctx context.Context, req *notificationv1.ListDeliveriesRequest) (*notificationv1.ListDeliveriesResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	list := bind("deliveries", req.GetSeat(), req.GetConversationKey())
	var from place
	if err := page.Decode(req.GetCursor(), list, &from); err != nil {
		return nil, err
	}
	limit := limitOf(req.GetLimit())
	found, err := h.o.Store.ListDeliveries(ctx, req.GetSeat(), req.GetConversationKey(), from.Before, limit+1)
	if err != nil {
		return nil, err
	}
	res := &notificationv1.ListDeliveriesResponse{}
	shown, next, err := cut(found, limit, list, events.Sequence)
	if err != nil {
		return nil, err
	}
	res.NextCursor = next
	for _, d := range shown {
		res.Deliveries = append(res.Deliveries, events.DeliveryToProto(d))
	}
	return res, nil
}

// ListOutbound lists outbound messages, newest first.
func (h *Handler) ListOutbound(ctx context.Context, req *notificationv1.ListOutboundRequest) (*notificationv1.ListOutboundResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	list := bind("outbound", req.GetSeat(), req.GetState())
	var from place
	if err := page.Decode(req.GetCursor(), list, &from); err != nil {
		return nil, err
	}
	limit := limitOf(req.GetLimit())
	found, err := h.o.Store.ListOutbound(ctx, req.GetSeat(), req.GetState(), from.Before, limit+1)
	if err != nil {
		return nil, err
	}
	res := &notificationv1.ListOutboundResponse{}
	shown, next, err := cut(found, limit, list, func(m *store.Outbound) int64 { return m.Sequence })
	if err != nil {
		return nil, err
	}
	res.NextCursor = next
	for _, m := range shown {
		res.Messages = append(res.Messages, outboundToProto(m))
	}
	return res, nil
}

func outboundToProto(m *store.Outbound) *notificationv1.OutboundMessage {
	out := &notificationv1.OutboundMessage{
		MessageId: m.ID.String(), Seat: m.Seat, ConversationKey: m.ConversationKey, Surface: m.Surface, State: m.State,
		Attempts: int32(m.Attempts), Detail: m.Detail, Url: m.URL, CreateTime: timestamppb.New(m.CreatedAt), TurnId: m.TurnID,
	}
	if m.PostedAt != nil {
		out.PostTime = timestamppb.New(*m.PostedAt)
	}
	return out
}
