// Package events turns this service's nouns into the contract's messages.
package events

import (
	"fmt"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

const (
	// Topic carries a DeliveryEvent for every delivery, keyed by seat.
	Topic = "bullpen.notification.delivery.v1"

	typeDelivery = "bullpen.notification.delivery.v1"
)

// Encode makes the event that a seat has mail.
func Encode(d *delivery.Delivery) (outbox.Message, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return outbox.Message{}, fmt.Errorf("draw an event id: %w", err)
	}
	payload, err := proto.Marshal(&notificationv1.DeliveryEvent{
		EventId: id.String(), OccurTime: timestamppb.New(d.ReceivedAt), Sequence: d.Sequence,
		Fact: &notificationv1.DeliveryEvent_DeliveryAddressed{
			DeliveryAddressed: &notificationv1.DeliveryAddressed{Delivery: DeliveryToProto(d)},
		},
	})
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode delivery event: %w", err)
	}
	return outbox.Message{Topic: Topic, Key: d.Seat, EventID: id, Type: typeDelivery, Payload: payload}, nil
}

// DeliveryToProto converts a delivery.
func DeliveryToProto(d *delivery.Delivery) *notificationv1.Delivery {
	return &notificationv1.Delivery{
		DeliveryId: d.ID.String(), Seat: d.Seat, ConversationKey: d.ConversationKey, Source: d.Source,
		Surface: surfaceOf(d), Position: d.Position,
		Obligation: d.Obligation, Addressed: d.Addressed, Reason: d.Reason,
		Sender: &notificationv1.Sender{
			VendorId: d.Sender.VendorID, Name: d.Sender.Name, Seat: d.Sender.Seat, Bot: d.Sender.Bot,
		},
		Subject: d.Subject, Body: d.Body, Url: d.URL, MessageId: d.MessageID, MessageRevision: d.MessageRevision,
		OccurTime: timestamppb.New(d.OccurredAt), ReceiveTime: timestamppb.New(d.ReceivedAt),
	}
}

// surfaceOf answers where an answer is owed: a vendor is its own surface.
func surfaceOf(d *delivery.Delivery) string {
	if d.Source == work.Source {
		return d.Surface
	}
	return d.Source
}

// Sequence is where a delivery stands in the order of all.
func Sequence(d *delivery.Delivery) int64 { return d.Sequence }
