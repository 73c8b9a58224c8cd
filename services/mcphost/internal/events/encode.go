// Package events speaks with the bus: it makes the events of this service and knows the topic it follows.
package events

import (
	"fmt"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

const (
	// Topic carries [mcphostv1.ServerEvent]; the key is the server's name.
	Topic = "bullpen.mcphost.server.v1"
	// CompanyTopic announces that another company revision is in force.
	CompanyTopic = "bullpen.company.revision.v1"
)

// Encode is the store's [store.EncodeFunc].
func Encode(f store.Fact, next func() (int64, error)) ([]outbox.Message, error) {
	var bodies []*mcphostv1.ServerEvent
	r := f.Report
	if f.StateChanged {
		bodies = append(bodies, &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_InstanceChanged{InstanceChanged: &mcphostv1.InstanceChanged{
			Server: r.Server, Node: r.Node, Seat: r.Seat, State: string(r.State), Reason: r.Reason,
		}}})
	}
	if f.Digest != "" {
		bodies = append(bodies, &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_CatalogueChanged{CatalogueChanged: &mcphostv1.CatalogueChanged{
			Server: r.Server, Seat: r.Seat, Digest: f.Digest,
		}}})
	}
	for _, uri := range f.Resources {
		bodies = append(bodies, &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_ResourceUpdated{ResourceUpdated: &mcphostv1.ResourceUpdated{
			Server: r.Server, Seat: r.Seat, Uri: uri,
		}}})
	}
	if f.PromptsChanged || f.ResourcesChanged {
		bodies = append(bodies, &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_ListsChanged{ListsChanged: &mcphostv1.ListsChanged{
			Server: r.Server, Seat: r.Seat, Prompts: f.PromptsChanged, Resources: f.ResourcesChanged,
		}}})
	}
	messages := make([]outbox.Message, 0, len(bodies))
	for _, body := range bodies {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("draw an event id: %w", err)
		}
		if body.Sequence, err = next(); err != nil {
			return nil, err
		}
		body.EventId, body.OccurTime = id.String(), timestamppb.New(r.At)
		payload, err := proto.Marshal(body)
		if err != nil {
			return nil, err
		}
		messages = append(messages, outbox.Message{Topic: Topic, Key: r.Server, EventID: id, Type: Topic, Payload: payload})
	}
	return messages, nil
}
