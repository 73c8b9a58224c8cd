package api

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
)

// TurnToProto answers a turn without its journal, as lists and events carry it.
func TurnToProto(t journal.Turn) *turnv1.Turn {
	state := "done"
	if t.Running {
		state = "running"
	}
	return &turnv1.Turn{
		TurnId: t.ID, WorkKey: t.WorkKey, Seat: t.Seat, ConversationKey: t.ConversationKey, Obligation: t.Obligation, Surface: t.Surface,
		RevisionId: t.RevisionID, State: state, Outcome: t.Outcome, ErrorKind: t.ErrorKind, Summary: t.Summary, Resumes: t.Resumes,
		RoundCount: t.Rounds, CallCount: t.Calls, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, Title: t.Title,
		Scripted: t.Scripted, ReceiveTime: timeToProto(t.ReceiveAt), StartTime: timeToProto(t.StartAt), EndTime: timeToProto(t.EndAt),
	}
}

func roundToProto(r journal.Round) *turnv1.Round {
	round := &turnv1.Round{
		Number: int32(r.Number), Provider: r.Provider, Model: r.Model, Text: r.Text, StopReason: r.Stop, InputTokens: r.InputTokens,
		CachedTokens: r.CachedTokens, OutputTokens: r.OutputTokens, StartTime: timeToProto(r.StartAt), EndTime: timeToProto(r.EndAt),
	}
	for _, c := range r.Calls {
		call := &turnv1.Call{
			CallId: c.ID, Tool: c.Tool, Source: c.Source, ArgumentsJson: c.Args, State: string(c.State),
			RefusalClass: string(c.Result.Class), Outcome: c.Result.Outcome, Delivered: c.Result.Delivered, OperationId: c.OperationID,
			StartTime: timeToProto(c.StartAt), EndTime: timeToProto(c.EndAt),
		}
		if c.State.Ended() {
			call.Result = proto.String(c.Result.Text)
		}
		round.Calls = append(round.Calls, call)
	}
	return round
}

func mailToProto(m mailbox.Mail) *turnv1.Mail {
	sender := m.Sender.Name
	if sender == "" {
		sender = m.Sender.ID
	}
	return &turnv1.Mail{
		DeliveryId: m.DeliveryID, Seat: m.Seat, ConversationKey: m.ConversationKey, State: string(m.State), Reason: m.Reason,
		Attempts: m.Attempts, TurnId: m.TurnID, Sender: sender, WakeReason: m.WakeReason, Subject: m.Subject, Body: m.Body, Url: m.URL,
		OccurTime: timeToProto(m.OccurAt), ReceiveTime: timeToProto(m.ReceiveAt),
	}
}

func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
