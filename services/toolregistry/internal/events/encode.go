// Package events speaks with the bus: it makes the events of this service and listens for those of mcphost.
package events

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// Topic carries [toolregistryv1.CallEvent]; the key is the seat, or the principal outside one.
const Topic = "bullpen.toolregistry.call.v1"

// Encode makes the event that says how a call ended. Its id is the call's, so that a batch written twice tells it once.
func Encode(r *call.Record, sequence int64) (outbox.Message, error) {
	summary := CallToProto(r)
	summary.ArgumentsJson, summary.Result = "", ""
	payload, err := proto.Marshal(&toolregistryv1.CallEvent{
		EventId:   r.ID.String(),
		OccurTime: timestamppb.New(r.StartedAt.Add(r.Duration)),
		Sequence:  sequence,
		Fact:      &toolregistryv1.CallEvent_CallCompleted{CallCompleted: &toolregistryv1.CallCompleted{Call: summary}},
	})
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode the event of call %s: %w", r.ID, err)
	}
	return outbox.Message{Topic: Topic, Key: r.EventKey(), EventID: r.ID, Type: Topic, Payload: payload}, nil
}

// CallToProto answers a call, whole.
func CallToProto(r *call.Record) *toolregistryv1.CallRecord {
	return &toolregistryv1.CallRecord{
		AuditId:        r.ID.String(),
		CallId:         r.CallID,
		Principal:      r.Principal,
		Seat:           r.Seat,
		TurnId:         r.TurnID,
		Tool:           r.Tool,
		Source:         r.Source,
		ArgumentsJson:  r.Arguments,
		Result:         r.Result,
		Status:         r.Status,
		RefusalClass:   r.RefusalClass,
		Outcome:        r.Outcome,
		OperationId:    r.OperationID,
		Decision:       r.Decision,
		Rule:           r.Rule,
		ApprovalId:     r.ApprovalID,
		StartTime:      timestamppb.New(r.StartedAt),
		DurationMicros: r.Duration.Microseconds(),
	}
}
