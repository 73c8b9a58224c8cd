package events

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
)

// ApprovalTopic carries [toolregistryv1.ApprovalEvent]; the key is the seat that asked.
const ApprovalTopic = "bullpen.toolregistry.approval.v1"

// EncodeApproval makes the event that an approval is owed where it stands. Its id is the approval's and the fact's, as each fact
// is told once.
func EncodeApproval(a *approval.Approval, sequence int64, at time.Time) (outbox.Message, error) {
	event := &toolregistryv1.ApprovalEvent{OccurTime: timestamppb.New(at), Sequence: sequence}
	told := portable(ApprovalToProto(a))
	fact := "settled"
	if a.State == approval.Waiting {
		fact = "requested"
		event.Fact = &toolregistryv1.ApprovalEvent_ApprovalRequested{
			ApprovalRequested: &toolregistryv1.ApprovalRequested{Approval: told},
		}
	} else {
		event.Fact = &toolregistryv1.ApprovalEvent_ApprovalSettled{
			ApprovalSettled: &toolregistryv1.ApprovalSettled{Approval: told},
		}
	}
	id := uuid.NewSHA1(a.ID, []byte(fact))
	event.EventId = id.String()
	payload, err := proto.Marshal(event)
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode the event of approval %s: %w", a.ID, err)
	}
	return outbox.Message{Topic: ApprovalTopic, Key: a.Asker.Seat, EventID: id, Type: ApprovalTopic, Payload: payload}, nil
}

// maxTextBytes is what an event's texts may take together, so that it fits a message with all else that is in it.
const maxTextBytes = bus.MaxValueBytes - 64<<10

// portable answers what an event carries: a text that no message can take is described by its size and digest, and whoever must
// read it reads the audit. Texts are never cut.
func portable(a *toolregistryv1.Approval) *toolregistryv1.Approval {
	for _, text := range []*string{&a.ArgumentsJson, &a.Result} {
		if len(a.GetArgumentsJson())+len(a.GetResult()) <= maxTextBytes {
			break
		}
		if len(*text) > maxTextBytes/2 {
			sum := sha256.Sum256([]byte(*text))
			*text = fmt.Sprintf("(%d bytes, SHA-256 %x…, too long for a message; the audit has it whole)", len(*text), sum[:4])
		}
	}
	return a
}

// ApprovalToProto answers an approval as people and other services see it: secrets in the arguments are redacted.
func ApprovalToProto(a *approval.Approval) *toolregistryv1.Approval {
	out := &toolregistryv1.Approval{
		ApprovalId:      a.ID.String(),
		State:           string(a.State),
		Seat:            a.Asker.Seat,
		TurnId:          a.Asker.TurnID,
		ConversationKey: a.Asker.ConversationKey,
		Tool:            a.Tool,
		Source:          a.Source,
		ArgumentsJson:   a.Shown,
		Rule:            a.Rule,
		Reason:          a.Reason,
		CreateTime:      timestamppb.New(a.CreatedAt),
		ExpireTime:      timestamppb.New(a.ExpiresAt),
		DecidedBy:       a.DecidedBy,
		Note:            a.Note,
		CallStatus:      a.Call.Status,
		Result:          a.Call.Result,
		AuditId:         a.Call.AuditID,
		OperationId:     a.OperationID,
		Reached:         a.Call.Reached,
	}
	if !a.DecidedAt.IsZero() {
		out.DecideTime = timestamppb.New(a.DecidedAt)
	}
	return out
}
