// Package events is the tracker's side of the bus: what it publishes.
package events

import (
	"maps"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Topic carries every fact about items and projects; the key is the item's id, or the project's key for a fact about a project alone.
const Topic = "bullpen.tracker.item.v1"

// Encode is the store's [store.Encoder].
func Encode(e store.Event) (outbox.Message, error) {
	if e.Item == nil {
		return encodeProject(e)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return outbox.Message{}, err
	}
	body := &trackerv1.ItemEvent{
		EventId:   id.String(),
		OccurTime: timestamppb.New(e.Change.At),
		Sequence:  e.Position.Sequence,
	}
	item := convert.Item(e.Item, e.Change.At)
	item.Body = nil
	change := convert.Change(forAnybody(e.Entry()))
	routing := routing(e)
	switch {
	case e.Change.Kind == "purged":
		body.Fact = &trackerv1.ItemEvent_ItemPurged{ItemPurged: &trackerv1.ItemPurged{
			ItemId: e.Item.ID.String(), Key: e.Item.Key(), Project: e.Item.Project, Change: change, Routing: bare(e),
		}}
	case e.Change.Kind == "created":
		body.Fact = &trackerv1.ItemEvent_ItemCreated{ItemCreated: &trackerv1.ItemCreated{Item: item, Change: change, Routing: routing}}
	case e.Comment != nil:
		body.Fact = &trackerv1.ItemEvent_ItemCommented{ItemCommented: &trackerv1.ItemCommented{
			Item: item, Comment: convert.Comment(e.Comment), Change: change, Routing: routing,
		}}
	default:
		body.Fact = &trackerv1.ItemEvent_ItemUpdated{ItemUpdated: &trackerv1.ItemUpdated{Item: item, Change: change, Routing: routing}}
	}
	payload, err := proto.Marshal(body)
	return outbox.Message{Topic: Topic, Key: e.Item.ID.String(), EventID: id, Type: Topic, Payload: payload}, err
}

// forAnybody is a row as everybody may read it: what an event says is told to agents.
func forAnybody(e store.Entry) store.Entry {
	for name, f := range e.Change.Fields {
		if f.Hidden {
			e.Change.Fields = maps.Clone(e.Change.Fields)
			e.Change.Fields[name] = f.Concealed()
		}
	}
	return e
}

// bare is the snapshot of a change that no item can say more of.
func bare(e store.Event) *trackerv1.RoutingSnapshot {
	return &trackerv1.RoutingSnapshot{
		Actor: e.Change.By.Seat, ActorToken: actorToken(e.Change.By), Concerns: concerns(e.Concerns), Lead: e.Lead,
	}
}

func routing(e store.Event) *trackerv1.RoutingSnapshot {
	return &trackerv1.RoutingSnapshot{
		Actor:            e.Change.By.Seat,
		Assignee:         e.Item.Assignee,
		PreviousAssignee: e.Change.PreviousAssignee,
		Reporter:         e.Item.Reporter,
		Watchers:         e.Item.Watchers,
		Mentioned:        e.Mentions,
		Lead:             e.Lead,
		RoutingLead:      e.RoutingLead,
		Muted:            e.Item.Muted,
		Reason:           e.Change.Reason,
		Concerns:         concerns(e.Concerns),
		ActorToken:       actorToken(e.Change.By),
	}
}
