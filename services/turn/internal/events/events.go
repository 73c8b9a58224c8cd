// Package events is what the turn service hears and says: deliveries in, facts about turns out.
package events

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/api"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

const (
	// TurnTopic carries turnv1.TurnEvent, keyed by seat.
	TurnTopic = "bullpen.turn.turn.v1"
	// DeliveryTopic carries notificationv1.DeliveryEvent, keyed by seat.
	DeliveryTopic = "bullpen.notification.delivery.v1"
)

// Encoders make the facts about turns.
func Encoders() store.Encoders {
	return store.Encoders{
		Started: encoder(func(e *turnv1.TurnEvent, t *turnv1.Turn) {
			e.Fact = &turnv1.TurnEvent_TurnStarted{TurnStarted: &turnv1.TurnStarted{Turn: t}}
		}),
		Resumed: encoder(func(e *turnv1.TurnEvent, t *turnv1.Turn) {
			e.Fact = &turnv1.TurnEvent_TurnResumed{TurnResumed: &turnv1.TurnResumed{Turn: t}}
		}),
		Completed: encoder(func(e *turnv1.TurnEvent, t *turnv1.Turn) {
			e.Fact = &turnv1.TurnEvent_TurnCompleted{TurnCompleted: &turnv1.TurnCompleted{Turn: t}}
		}),
	}
}

func encoder(fact func(*turnv1.TurnEvent, *turnv1.Turn)) store.Encode {
	return func(t journal.Turn, sequence int64, at time.Time) (outbox.Message, error) {
		id, err := uuid.NewV7()
		if err != nil {
			return outbox.Message{}, fmt.Errorf("mint an event id: %w", err)
		}
		event := &turnv1.TurnEvent{EventId: id.String(), OccurTime: timestamppb.New(at), Sequence: sequence}
		fact(event, api.TurnToProto(t))
		payload, err := proto.Marshal(event)
		if err != nil {
			return outbox.Message{}, fmt.Errorf("encode the event: %w", err)
		}
		return outbox.Message{Topic: TurnTopic, Key: t.Seat, EventID: id, Type: TurnTopic, Payload: payload}, nil
	}
}

// Accept puts an addressed delivery into its seat's mailbox and does nothing else.
func Accept(ctx context.Context, tx pgx.Tx, m bus.Message) error {
	event := &notificationv1.DeliveryEvent{}
	if err := proto.Unmarshal(m.Value, event); err != nil {
		return fault.New(fault.Invalid, "The message is no delivery event.").WithCause(err)
	}
	delivery := event.GetDeliveryAddressed().GetDelivery()
	if delivery == nil {
		// A fact that this build does not know; it concerns somebody else.
		return nil
	}
	mail, err := mailFrom(delivery)
	if err != nil {
		return err
	}
	return store.AcceptMail(ctx, tx, mail)
}

func mailFrom(d *notificationv1.Delivery) (mailbox.Mail, error) {
	if _, err := uuid.Parse(d.GetDeliveryId()); err != nil {
		return mailbox.Mail{}, fault.New(fault.Invalid, "The delivery's id %q is no UUID.", d.GetDeliveryId())
	}
	switch d.GetObligation() {
	case "tool", "engine", "none":
	default:
		return mailbox.Mail{}, fault.New(fault.Invalid, "The delivery says %q of what is owed; it must be tool, engine or none.",
			d.GetObligation())
	}
	if d.GetSeat() == "" {
		return mailbox.Mail{}, fault.New(fault.Invalid, "The delivery names no seat.")
	}
	m := mailbox.Mail{
		DeliveryID: d.GetDeliveryId(), Seat: d.GetSeat(), ConversationKey: d.GetConversationKey(), Source: d.GetSource(),
		Surface: d.GetSurface(), Obligation: d.GetObligation(), Addressed: d.GetAddressed(), WakeReason: d.GetReason(),
		Sender: mailbox.Sender{
			ID: d.GetSender().GetVendorId(), Name: d.GetSender().GetName(), Seat: d.GetSender().GetSeat(), Bot: d.GetSender().GetBot(),
		},
		Subject: d.GetSubject(), Body: d.GetBody(), URL: d.GetUrl(), MessageID: d.GetMessageId(), Depth: d.GetDelegationDepth(),
		OccurAt: d.GetOccurTime().AsTime(), ReceiveAt: d.GetReceiveTime().AsTime(),
	}
	if m.ConversationKey == "" {
		// What belongs to no conversation never merges with anything.
		m.ConversationKey = "event:" + m.DeliveryID
	}
	return m, nil
}

// Consumer takes deliveries in and tells wake whose mail came, after it is committed.
func Consumer(deps ConsumerDeps) *inbox.Consumer {
	return inbox.NewConsumer(deps.Pool, waking{Bus: deps.Bus, wake: deps.Wake}, inbox.Options{
		Topic: DeliveryTopic, Group: "turn-mailbox", Handler: Accept, Log: deps.Log, Metrics: deps.Metrics, Tracer: deps.Tracer,
	})
}
