package events

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/delivery"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// ApprovalTopic carries toolregistryv1.ApprovalEvent, keyed by seat.
const ApprovalTopic = "bullpen.toolregistry.approval.v1"

// AcceptApproval puts what became of a call that waited for a person into the mailbox of the seat that made it, in the
// conversation in which it was made. That a call waits is no news to the seat: its turn was told.
func AcceptApproval(ctx context.Context, tx pgx.Tx, m bus.Message) error {
	event := &toolregistryv1.ApprovalEvent{}
	if err := proto.Unmarshal(m.Value, event); err != nil {
		return fault.New(fault.Invalid, "The message is no event of an approval.").WithCause(err)
	}
	approval := event.GetApprovalSettled().GetApproval()
	if approval == nil {
		return nil
	}
	if _, err := uuid.Parse(event.GetEventId()); err != nil {
		return fault.New(fault.Invalid, "The event's id %q is no UUID.", event.GetEventId())
	}
	if approval.GetSeat() == "" {
		return fault.New(fault.Invalid, "The approval names no seat.")
	}
	asked := store.Asked{}
	if _, err := uuid.Parse(approval.GetTurnId()); err == nil {
		if asked, err = store.AskedBy(ctx, tx, approval.GetTurnId()); err != nil {
			return err
		}
	}
	return store.AcceptMail(ctx, tx, decisionMail(event, approval, asked))
}

// decisionMail writes the mail: the decision, the call, its whole result, and what the turn was about that made it.
func decisionMail(event *toolregistryv1.ApprovalEvent, a *toolregistryv1.Approval, asked store.Asked) mailbox.Mail {
	at := event.GetOccurTime().AsTime()
	m := mailbox.Mail{
		DeliveryID: event.GetEventId(), Seat: a.GetSeat(), ConversationKey: a.GetConversationKey(), Source: "approvals",
		Surface: asked.Surface, Obligation: owedStill(a, asked), Addressed: true, WakeReason: "approval",
		Sender:  mailbox.Sender{ID: a.GetDecidedBy(), Name: a.GetDecidedBy(), Bot: a.GetDecidedBy() == "system"},
		Subject: asked.Title, MessageID: a.GetApprovalId(), OccurAt: at, ReceiveAt: at,
	}
	if m.ConversationKey == "" {
		m.ConversationKey = "event:" + m.DeliveryID
	}
	var text strings.Builder
	text.WriteString(decision(a))
	if a.GetNote() != "" {
		fmt.Fprintf(&text, "\n\nThey say: %s", a.GetNote())
	}
	fmt.Fprintf(&text, "\n\nThe call, as you made it: `%s` with\n%s", a.GetTool(), a.GetArgumentsJson())
	if a.GetResult() != "" {
		fmt.Fprintf(&text, "\n\nIts result:\n%s", a.GetResult())
	}
	for _, one := range asked.Mail {
		m.Depth = max(m.Depth, one.Depth)
	}
	if len(asked.Mail) > 0 {
		fmt.Fprintf(&text, "\n\nWhat you were working on when you made it:\n\n%s", mailbox.Merge(asked.Mail).Text)
	}
	m.Body = text.String()
	return m
}

// decision is the sentence that says what became of the call, and what to make of it.
func decision(a *toolregistryv1.Approval) string {
	call := fmt.Sprintf("Your call of `%s`, which waited for a person (approval %s), ", a.GetTool(), a.GetApprovalId())
	switch a.GetState() {
	case "denied":
		return call + fmt.Sprintf("was denied by %s. It was not made. Go on without it, or in another way.", a.GetDecidedBy())
	case "expired":
		return call + "was not made: nobody decided in time. Make it again if it is still wanted, or go on without it."
	case "cancelled":
		return call + fmt.Sprintf("was not made: %s took the question back. Go on without it.", a.GetDecidedBy())
	}
	switch a.GetCallStatus() {
	case "ok":
		return call + fmt.Sprintf("was approved by %s and made. Do not make it again.", a.GetDecidedBy())
	case "refused":
		return call + fmt.Sprintf("was approved by %s, but the tool refused it. It was not made.", a.GetDecidedBy())
	case "unknown":
		return call + fmt.Sprintf("was approved by %s, but its outcome is unknown: it may or may not have happened. Look before you make it "+
			"again.", a.GetDecidedBy())
	default:
		return call + fmt.Sprintf("was approved by %s, but it failed.", a.GetDecidedBy())
	}
}

// owedStill answers what is owed to whoever asked: what the turn owed that made the call, unless the call itself was the answer
// and has been put there.
func owedStill(a *toolregistryv1.Approval, asked store.Asked) string {
	answered := a.GetCallStatus() == "ok" && slices.ContainsFunc(a.GetReached(), func(surface string) bool {
		return surface == asked.Surface || asked.Surface == "" || surface == delivery.Asked && !delivery.Own(asked.Surface)
	})
	switch {
	case asked.Obligation == "":
		return delivery.ObligationNone
	case asked.Obligation == delivery.ObligationTool && answered:
		return delivery.ObligationNone
	default:
		return asked.Obligation
	}
}

// ApprovalConsumer takes what became of calls in and tells wake whose mail came, after it is committed.
func ApprovalConsumer(deps ConsumerDeps) *inbox.Consumer {
	return inbox.NewConsumer(deps.Pool, waking{Bus: deps.Bus, wake: deps.Wake}, inbox.Options{
		Topic: ApprovalTopic, Group: "turn-approvals", Handler: AcceptApproval, Log: deps.Log, Metrics: deps.Metrics, Tracer: deps.Tracer,
	})
}
